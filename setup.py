"""The folders at the top of the repository are installed as subpackages of `lakewright`."""

from setuptools import find_packages, setup

WINGS = ("core_jax", "policy", "engineer", "experiments")

setup(
    packages=[
        f"lakewright.{name}"
        for name in find_packages(
            include=[pattern for wing in WINGS for pattern in (wing, f"{wing}.*")],
        )
    ],
    package_dir={f"lakewright.{wing}": wing for wing in WINGS},
)
