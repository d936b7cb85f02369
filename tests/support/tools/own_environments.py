"""Environments of their own for other people's tools whose dependencies clash with ours: made once, in build/."""

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from tests.support.processes.commands import HOUSE, surroundings

GUESTS = HOUSE / "docs" / "integrations"
PLACE = HOUSE / "build" / "environments"
WINGS = ("core_jax", "policy", "engineer", "experiments")


def own_environment(name: str, *requirements: str, without: Iterable[str] = ()) -> Path:
    """The Python of an environment that has these versions of its own, and everything else from this one.

    without: packages that are not installed there, whoever asks for them.
    """
    folder = PLACE / name
    python, marker, excludes = folder / "bin" / "python", folder / "requirements.txt", folder / "excludes.txt"
    if not marker.exists() or marker.read_text() != "\n".join(requirements):
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder], check=True)
        excludes.write_text("\n".join(without))
        install = [uv, "pip", "install", "--quiet", "--python", python, "--excludes", excludes]
        subprocess.run([*install, *requirements], check=True)
        marker.write_text("\n".join(requirements))
    ours = packages_of(python) / "lakewright"  # as the wings are installed
    ours.mkdir(exist_ok=True)
    for wing in WINGS:
        (ours / wing).unlink(missing_ok=True)
        (ours / wing).symlink_to(HOUSE / wing)
    paths = [HOUSE, *(toml.parent for toml in GUESTS.glob("*/pyproject.toml")), GUESTS, sysconfig.get_path("purelib")]
    (packages_of(python) / "lakewright.pth").write_text("\n".join(map(str, paths)) + "\n")
    return python


def packages_of(python: Path) -> Path:
    """The folder of the packages of such an environment."""
    return next((python.parents[1] / "lib").glob("python3*")) / "site-packages"


def installed_here() -> set[str]:
    """The names of the packages of this environment."""
    return {package.metadata["Name"] for package in importlib.metadata.distributions()}


def run_there(program: Path, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of such an environment; where it fails, its output is in the message."""
    env = surroundings_there(**environment)
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done


def surroundings_there(**environment: str) -> dict[str, str]:
    """The environment of a process of such an environment.

    What the tools keep at home stays in build/, and uv, which verifiers installs where it is not found, is found.
    """
    (PLACE / "home").mkdir(parents=True, exist_ok=True)
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return surroundings() | {"HOME": str(PLACE / "home"), "PATH": paths} | environment
