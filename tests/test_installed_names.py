"""The package beside folders of a user that have the names of our wings: ours are never taken for them."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
WINGS = ("core_jax", "policy", "engineer", "experiments")
SOURCES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
COMMAND = ("-m", "lakewright.experiments.cli")  # unlike the script `lakewright`, it looks for modules here first
KIND = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5")
GENERATE = ("generate", "--count", "2", *KIND, "--out", "boards.jsonl")
MODEL = ("model.hidden=32", "model.layers=1", "model.heads=2", "model.mlp=32", "horizon=8")
STEPS = ("warmup.steps=2", "warmup.batch=8", "warmup.boards=32", "grpo.steps=1", "grpo.prompts=4", "grpo.group=2")
QUICK = (*MODEL, *STEPS, "stages=1", "trial.boards=8", "trial.share=0", "trial.samples=2", "validation.boards=2")


def run_python(python: Path, folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in a folder, with the folder itself first among the places of modules."""
    env = os.environ | {"OMP_NUM_THREADS": "1"} | environment
    return subprocess.run([python, *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


def assert_works(python: Path, folder: Path, *words: str, **environment: str) -> str:
    """Runs Python there as a user does, and gives what it printed."""
    done = run_python(python, folder, *words, **environment)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture
def users_folder(tmp_path):
    """A folder with packages that must not be imported."""
    for name in (*WINGS, "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f'raise ImportError("the user\'s own {name}")\n')
    return tmp_path


@pytest.mark.deep
def test_a_folder_with_our_names_is_left_alone(users_folder):
    python = Path(sys.executable)
    assert "the user's own policy" in run_python(python, users_folder, "-c", "import policy").stderr
    taken = "from lakewright.engineer.teachers import TEACHERS; print(*TEACHERS)"
    assert "difficulty" in assert_works(python, users_folder, "-c", taken)
    assert_works(python, users_folder, *COMMAND, *GENERATE)
    assert len((users_folder / "boards.jsonl").read_text().splitlines()) == 2
    for command in ("view", "run"):
        assert f"lakewright {command}" in assert_works(python, users_folder, *COMMAND, command, "--help")


@pytest.mark.deep
def test_a_wheel_works_without_the_repository_beside_such_a_folder(users_folder, tmp_path_factory):
    python = install_wheel(tmp_path_factory.mktemp("wheel"))
    outside = {"PYTHONPATH": ""}
    found = "import lakewright.core_jax as wing; print(wing.__file__)"
    assert str(python.parents[1]) in assert_works(python, users_folder, "-c", found, **outside)
    taken = "from lakewright.engineer.teachers import TEACHERS; print(*TEACHERS)"
    assert "difficulty" in assert_works(python, users_folder, "-c", taken, **outside)
    assert_works(python, users_folder, *COMMAND, *GENERATE, **outside)
    assert_works(python, users_folder, *COMMAND, "run", "--out", "run", "--teacher", "random", *QUICK, **outside)
    assert (users_folder / "run" / "report.html").exists()
    assert_works(python, users_folder, *COMMAND, "view", "bundle", "run", "--out", "site", **outside)
    assert (users_folder / "site" / "index.html").exists()
    for command in ("view", "run"):
        assert f"lakewright {command}" in assert_works(python.with_name("lakewright"), users_folder, command, "--help")


def install_wheel(folder: Path) -> Path:
    """Builds the wheel; returns the Python of an environment with it and the dependencies of this one."""
    wheel = build_package(folder)
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([UV, "pip", "install", "--quiet", "--no-deps", "--python", python, wheel], check=True)
    packages = next((folder / "venv" / "lib").glob("python3*")) / "site-packages"
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def build_package(folder: Path, kind: str = "wheel") -> Path:
    """A wheel, or with `sdist` the sources, built from a copy of what the package is made of."""
    source = folder / "source"
    source.mkdir()
    for name in SOURCES:
        shutil.copy(HOUSE / name, source)
    for wing in WINGS:
        shutil.copytree(HOUSE / wing, source / wing, ignore=shutil.ignore_patterns("__pycache__"))
    build = [UV, "build", "--quiet", f"--{kind}", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([*build, "--out-dir", folder, source], check=True)
    (built,) = folder.glob("lakewright-*")
    return built
