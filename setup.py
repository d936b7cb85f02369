"""The folders at the top of the repository are installed as subpackages of `lakewright`.

An index shows the README, where links into the repository lead nowhere: they become their text, and pictures are left
out.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

WINGS = ("core_jax", "policy", "engineer", "experiments")
PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")

setup(
    packages=[
        f"lakewright.{name}"
        for name in find_packages(
            include=[pattern for wing in WINGS for pattern in (wing, f"{wing}.*")],
        )
    ],
    package_dir={f"lakewright.{wing}": wing for wing in WINGS},
    long_description=LINK.sub(r"\1", PICTURE.sub("", Path("README.md").read_text(encoding="utf-8"))),
    long_description_content_type="text/markdown",
)
