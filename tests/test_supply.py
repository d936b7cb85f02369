"""What `make install` and `make install-gpu` install is what pyproject.toml asks for, to the version."""

import importlib.metadata
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOUSE = Path(__file__).parents[1]
PROJECT = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
MAKEFILE = (HOUSE / "Makefile").read_text()
PINNED_TORCH = Requirement(re.search(r"^TORCH := (.+)$", MAKEFILE, re.MULTILINE)[1])
LOCKS = {"EXTRAS": "requirements.lock", "GPU_EXTRAS": "requirements-gpu.lock"}  # by their extras in the Makefile
TEXTS = {extras: (HOUSE / ".ci" / lock).read_text() for extras, lock in LOCKS.items()}


def asked_for(extras: str) -> list[str]:
    names = re.search(rf"^{extras} := (.+)$", MAKEFILE, re.MULTILINE)[1].split()
    lines = [*PROJECT["dependencies"], *(line for name in names for line in PROJECT["optional-dependencies"][name])]
    return [line for line in lines if line != "lakewright[lake]"]  # lake is among the extras itself


def locked_in(extras: str) -> list[Requirement]:
    lines = [line.removesuffix("\\").strip() for line in TEXTS[extras].splitlines() if re.match(r"[a-z0-9]", line)]
    return [Requirement(line) for line in lines]


NO_DATA = "Dependency not found on PyPI and could not be audited"  # pip-audit, of a mirror without vulnerability data
LOCKED = {extras: locked_in(extras) for extras in LOCKS}


def version_of(requirement: Requirement) -> str:
    (pin,) = requirement.specifier
    assert pin.operator == "==", f"{requirement} is not pinned"
    return pin.version


@pytest.mark.parametrize(("extras", "line"), [(extras, line) for extras in LOCKS for line in asked_for(extras)])
def test_a_lock_holds_what_is_asked_for(extras, line):
    asked = Requirement(line)
    name = canonicalize_name(asked.name)
    locked = [found for found in [*LOCKED[extras], PINNED_TORCH] if canonicalize_name(found.name) == name]
    assert locked, f"{name} is not in .ci/{LOCKS[extras]}; run `make lock`"
    for found in locked:
        assert asked.specifier.contains(version_of(found), prereleases=True), f"{found} is locked; run `make lock`"


@pytest.mark.parametrize("extras", LOCKS)
def test_every_locked_package_has_its_hashes(extras):
    assert len(LOCKED[extras]) > 100
    assert TEXTS[extras].count("--hash=sha256:") >= len(LOCKED[extras])
    parts = re.split(r"^(?=[a-z0-9])", TEXTS[extras], flags=re.MULTILINE)[1:]
    assert [part.splitlines()[0] for part in parts if "--hash=sha256:" not in part] == []


def test_the_lock_leaves_the_build_of_torch_to_the_host():
    ours = ("torch", "triton", "nvidia-", "cuda-")
    assert [found.name for found in LOCKED["EXTRAS"] if found.name.startswith(ours)] == []


def test_the_lock_of_gpu_hosts_has_torch_with_cuda_and_a_vllm_that_trl_talks_to():
    locked = {found.name: version_of(found) for found in LOCKED["GPU_EXTRAS"]}
    assert locked["torch"] == version_of(PINNED_TORCH)
    assert {"nvidia-cudnn-cu13", "nvidia-nccl-cu13", "triton", "jax-cuda13-plugin", "deepspeed"} <= locked.keys()
    wanted = [Requirement(line) for line in importlib.metadata.requires("trl") if line.startswith("vllm")]
    assert wanted[0].specifier.contains(locked["vllm"]), f"TRL asks for {wanted[0]}"


@pytest.mark.deep
def test_no_locked_package_has_a_known_weakness_where_the_registry_knows_of_any(capsys):
    done = subprocess.run(["make", "--silent", "audit"], cwd=HOUSE, capture_output=True, text=True, check=False)
    with capsys.disabled():
        print(done.stderr.strip() or done.stdout.strip())
    assert done.returncode == 0 or NO_DATA in done.stderr, done.stdout + done.stderr


def test_the_program_by_which_an_installation_ends_runs():
    names: dict[str, object] = {}
    exec(re.search(r"^COMPILED := (.+)$", MAKEFILE, re.MULTILINE)[1], names)  # here, where most of it is imported
    assert {"torch", "trl", "s"} <= names.keys()
