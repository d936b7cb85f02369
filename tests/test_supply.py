"""What `make install` installs is what pyproject.toml asks for, to the version."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOUSE = Path(__file__).parents[1]
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
MAKEFILE = (HOUSE / "Makefile").read_text()
LOCKED_EXTRAS = re.search(r"^EXTRAS := (.+)$", MAKEFILE, re.MULTILINE)[1].split()
PINNED_TORCH = Requirement(re.search(r"^TORCH := (.+)$", MAKEFILE, re.MULTILINE)[1])
LOCK = (HOUSE / ".ci" / "requirements.lock").read_text()
LINES = [line.removesuffix("\\").strip() for line in LOCK.splitlines() if re.match(r"[a-z0-9]", line)]
LOCKED = [Requirement(line) for line in LINES]
ASKED = [
    *PROJECT["dependencies"],
    *(line for extra in LOCKED_EXTRAS for line in PROJECT["optional-dependencies"][extra]),
]


def version_of(requirement: Requirement) -> str:
    (pin,) = requirement.specifier
    assert pin.operator == "==", f"{requirement} is not pinned"
    return pin.version


@pytest.mark.parametrize("line", ASKED)
def test_the_lock_holds_what_is_asked_for(line):
    asked = Requirement(line)
    name = canonicalize_name(asked.name)
    locked = [found for found in [*LOCKED, PINNED_TORCH] if canonicalize_name(found.name) == name]
    assert locked, f"{name} is not in .ci/requirements.lock; run `make lock`"
    for found in locked:
        assert asked.specifier.contains(version_of(found), prereleases=True), f"{found} is locked; run `make lock`"


def test_every_locked_package_has_its_hashes():
    assert len(LOCKED) > 100
    assert LOCK.count("--hash=sha256:") >= len(LOCKED)
    parts = re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE)[1:]
    assert [part.splitlines()[0] for part in parts if "--hash=sha256:" not in part] == []


def test_the_lock_leaves_the_build_of_torch_to_the_host():
    ours = ("torch", "triton", "nvidia-", "cuda-")
    assert [found.name for found in LOCKED if found.name.startswith(ours)] == []
