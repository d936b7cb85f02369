"""The package beside those of others: what resolves, what is built, and what runs in an environment of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.versions import FolderSettings
from tests.support.processes.commands import HOUSE, surroundings
from tests.test_docs import PAGES, text_of
from tests.test_installed_names import UV, WINGS, build_package

EXTRAS = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ASKED = re.compile(r"lakewright\[([\w,-]+)\]")
TORCH = "torch==2.13.0"  # of which there is a build without CUDA
ALONE = [("", version, ()) for version in ("3.11", "3.12", "3.13", "3.14")]
BESIDE = ["verl==0.9.1", "vllm==0.33.0", "unsloth==2026.10.9", "verifiers==0.4.0", "reasoning-gym==0.1.25"]
BESIDE += ["openenv==0.10.0", "numpy==1.26.4", "gymnasium==1.4.0", "trl==1.0.0", "transformers==5.24.0"]
WITH_TRL = [f"trl==1.{minor}.0" for minor in (0, 6, 10, 13, 16)] + ["transformers==4.57.6", "transformers==5.24.0"]
WITH_TRL += ["vllm==0.33.0", "unsloth==2026.10.9", "numpy==1.26.4"]
ADAPTERS = ("trl", "verl", "verifiers", "openenv", "gymnasium", "reasoning-gym", "endpoint", "sklearn", "cluster")
CASES = [
    *ALONE,
    *(("", "3.11", (package,)) for package in BESIDE),
    ("", "3.12", ("numpy==1.26.4",)),
    *(("trl", "3.11", (package,)) for package in WITH_TRL),
    *((extra, "3.11", ()) for extra in (*ADAPTERS, "lake")),
    ("trl", "3.14", ()),
    ("verifiers", "3.13", ()),
    ("trl,reasoning-gym", "3.11", ()),
]


@pytest.mark.deep
@pytest.mark.parametrize(("extras", "version", "beside"), CASES, ids=lambda part: str(part))
def test_an_installation_resolves(extras, version, beside, tmp_path):
    """By metadata alone, as on Linux; nothing is installed."""
    (tmp_path / "beside.txt").write_text("\n".join(beside))
    words = [f"--extra={extra}" for extra in extras.split(",") if extra]
    words += ["--python-version", version, "--python-platform", "x86_64-manylinux_2_28"]
    resolve = [UV, "pip", "compile", "--quiet", "--no-annotate", *words, HOUSE / "pyproject.toml", "beside.txt"]
    done = subprocess.run(resolve, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert set(beside) <= set(done.stdout.splitlines())
    if not extras:
        assert not re.search(r"^(jax|flax|duckdb|pyarrow)==", done.stdout, re.M) or beside
    if extras == "verl":
        assert {"cachetools", "transferqueue"} <= set(re.findall(r"^([\w-]+)==", done.stdout, re.M)), (
            "for replay buffers"
        )


def test_every_extra_that_a_page_or_a_message_names_is_there():
    texts = {str(page): text_of(page) for page in PAGES}
    texts |= {str(file): file.read_text() for wing in WINGS for file in (HOUSE / wing).rglob("*.py")}
    found = [(place, names.split(",")) for place, text in texts.items() for names in ASKED.findall(text)]
    named = [(place, extra) for place, extras in found for extra in extras]
    assert {extra for _, extra in named} >= {"lake", "trl", "view"}
    assert [(place, extra) for place, extra in named if extra not in EXTRAS] == []


def test_the_page_of_an_adapter_begins_with_its_installation():
    pages = {"trainers": "trl", "verl": "verl", "verifiers": "verifiers", "trainers-more": "openenv"}
    pages |= {"trainers-tutorial": "trl", "reasoning-gym": "reasoning-gym"}
    for page, extra in pages.items():
        head = "\n".join((HOUSE / "docs" / f"{page}.md").read_text().splitlines()[:12])
        assert f"pip install 'lakewright[{extra}" in head, page


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    return {kind: build_package(tmp_path_factory.mktemp(kind), kind) for kind in ("wheel", "sdist")}


@pytest.mark.deep
def test_what_is_built_has_the_types_and_no_tests_and_no_links_that_lead_nowhere(built):
    wheel = zipfile.ZipFile(built["wheel"])
    names = wheel.namelist()
    assert {f"lakewright/{wing}/py.typed" for wing in WINGS} <= set(names)
    (place,) = [name for name in names if name.endswith(".dist-info/METADATA")]
    about = Parser().parsestr(wheel.read(place).decode())
    assert "Typing :: Typed" in about.get_all("Classifier")
    assert re.findall(r"\]\((?!https?://)[^)]*\)", about.get_payload()) == []
    assert "from lakewright.engineer import DesignSpace, Engineer" in about.get_payload()
    with tarfile.open(built["sdist"]) as packed:
        sources = {name.partition("/")[2] for name in packed.getnames()}
    assert not {name for name in [*names, *sources] if name.startswith(("tests", "lakewright/tests"))}
    modules = {f"lakewright/{name}" for name in sources if name.endswith(".py") and "/" in name}
    assert modules == {name for name in names if name.endswith(".py")}
    twine = [UV, "tool", "run", "twine", "check", "--strict", *built.values()]
    done = subprocess.run(twine, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("beside", [(), ("numpy==1.26.4",)], ids=str)
def test_the_base_works_alone(beside):
    done = subprocess.run(["bash", HOUSE / ".ci" / "base", *beside], capture_output=True, text=True, env=surroundings())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("the base works alone\n")


@pytest.fixture(params=[("1.0.0", "4.57.6"), ("1.10.0", "5.10.4"), ("1.16.0", "5.24.0")], ids=lambda pair: pair[0])
def python_with_trl(request, built, tmp_path) -> Iterator[Path]:
    """An environment that never saw this repository, with a minor of TRL and one of transformers."""
    trl, transformers = request.param
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True)
    asked = [f"lakewright[trl] @ {built['wheel'].as_uri()}", TORCH, f"trl=={trl}", f"transformers=={transformers}"]
    of_pip = {name: os.environ.get(f"PIP_{name}") for name in ("FIND_LINKS", "EXTRA_INDEX_URL")}
    env = surroundings() | {f"UV_{name}": place for name, place in of_pip.items() if place}
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, *asked], check=True, env=env)
    yield python
    shutil.rmtree(tmp_path / "venv")


@pytest.mark.deep
def test_the_example_of_trl_runs_with_any_minor(python_with_trl, tmp_path):
    for name in ("trl_engineer.py", "addition.py"):
        shutil.copy(HOUSE / "docs" / "examples" / name, tmp_path)
    program = tmp_path / "trl_engineer.py"
    run_alone(python_with_trl, program, "plain")
    assert EngineerFolder(tmp_path / "plain" / "engineer").status().version == 3

    program.write_text(program.read_text().replace("\nresume_training", "\ntasks.attach(trainer)\nresume_training"))
    settings = FolderSettings(trial=TrialSettings(share=0))  # trials of any size
    environment = f"{tmp_path / 'addition.py'}:Addition"
    EngineerFolder.begin(tmp_path / "tried" / "engineer", environment, "gain", settings=settings)
    run_alone(python_with_trl, program, "tried")
    versions = sorted((tmp_path / "tried" / "engineer" / "versions").glob("*.json"))
    trials = [decision["trial"] for file in versions for decision in json.loads(file.read_text())["decisions"]]
    assert len(trials) == 3
    assert all(trial["tokens"] > 1000 for trial in trials), "the policy under training answered"


def run_alone(python: Path, program: Path, folder: str) -> None:
    env = {name: value for name, value in surroundings().items() if name != "PYTHONPATH"}
    env |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([python, program, folder], cwd=program.parent, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
