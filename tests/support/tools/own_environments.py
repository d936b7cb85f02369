"""Environments of their own for other people's tools whose dependencies clash with ours: made once, in build/."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.support.processes.commands import HOUSE, surroundings

GUESTS = HOUSE / "experiments" / "interop"
PLACE = HOUSE / "build" / "environments"


def own_environment(name: str, *requirements: str) -> Path:
    """The Python of an environment that has these versions of its own, and everything else from this one."""
    folder = PLACE / name
    python, marker = folder / "bin" / "python", folder / "requirements.txt"
    if not marker.exists() or marker.read_text() != "\n".join(requirements):
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *requirements], check=True)
        marker.write_text("\n".join(requirements))
    site = next((folder / "lib").glob("python3*")) / "site-packages"
    paths = [HOUSE, *(toml.parent for toml in GUESTS.glob("*/pyproject.toml")), GUESTS, sysconfig.get_path("purelib")]
    (site / "lakewright.pth").write_text("\n".join(map(str, paths)) + "\n")
    return python


def run_there(program: Path, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of such an environment; where it fails, its output is in the message.

    What the tools keep at home stays in build/, and uv, which verifiers installs where it is not found, is found.
    """
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = surroundings() | {"HOME": str(PLACE / "home"), "PATH": paths} | environment
    (PLACE / "home").mkdir(parents=True, exist_ok=True)
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done
