"""An environment that fails in the middle of a run: one line, nothing finished is lost, and the run goes on."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lakewright.experiments.loop.records.run_folder import RunFolder
from tests.support.processes.commands import assert_refused, lakewright, surroundings
from tests.support.refusals import refused
from tests.support.samples.text_runs import ADDITION, OVERRIDES, text_run, timeless
from tests.support.samples.tiny_runs import run_loop, state

JUDGE, MAKE = "    def judge(self, problem, answer):\n", "    def make(self, cell, rng):\n"
FAILING = {
    "a judge that raises": (
        (JUDGE, f'{JUDGE}        raise ValueError("no judge\\ntoday")\n'),
        ("Addition.judge: on", "ValueError: no judge", "today; give a verdict on any text"),
    ),
    "a judge that gives no verdict": (
        (JUDGE, f"{JUDGE}        return None\n"),
        ("Addition.judge: on", "gave None; return a Verdict"),
    ),
    "a failure that is not declared": (
        ('"no_number")', '"nonsense")'),
        ("failure 'nonsense' is not declared; choose",),
    ),
    "a generator that raises": (
        (MAKE, f'{MAKE}        raise RuntimeError("out of\\nnumbers")\n'),
        ("Addition: cell", "make raised RuntimeError: out of", "numbers; correct it"),
    ),
    "a generator that makes no problem": (
        (MAKE, f"{MAKE}        return None\n"),
        ("Addition.make: gave None for cell", "return a Problem with texts"),
    ),
    "a problem that no file can hold": (
        (MAKE, f"{MAKE}        return Problem('1', '1', key=5)\n"),
        ("Addition.make: gave Problem", "return a Problem with texts as prompt, answer and key"),
    ),
    "a drawable that fails": (
        (MAKE, f"    def drawable(self, cell):\n        return cell['carries']\n\n{MAKE}"),
        ("Addition: cell", "drawable raised KeyError", "'carries' is not a knob; choose from terms, carry"),
    ),
    "a file that is broken": (("import", "import import"), ("cannot be imported (SyntaxError", "correct sums.py:")),
}
QUICK = ("a judge that raises", "a generator that raises")
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.deep) for name in FAILING]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RunFolder:
    """The undisturbed run of an environment in a file beside it."""
    folder = tmp_path_factory.mktemp("failing")
    shutil.copy(ADDITION, folder / "sums.py")
    run = RunFolder(folder / "run")
    run_loop(text_run(f"{folder}/sums.py:Addition"), run)
    return run


def rewrite(file: Path, text: str) -> None:
    """Changes the file of an environment, which a process would read once."""
    file.write_text(text)
    sys.modules.pop("lakewright_plugin_sums", None)


@pytest.mark.parametrize("name", EACH)
def test_an_environment_that_fails_ends_a_run_in_one_line_and_it_goes_on_once_corrected(whole, tmp_path, capsys, name):
    (right, wrong), parts = FAILING[name]
    file, run = whole.folder.parent / "sums.py", RunFolder(tmp_path / "run")
    shutil.copytree(whole.folder, run.folder, symlinks=True)
    shutil.rmtree(run.stage(1).folder)
    before, text = state(run.folder), file.read_text()
    given = ("run", "--preset", "text", "--environment", f"{file}:Addition", "--out", run.folder)
    command = (*given, "--quiet", *OVERRIDES)
    assert right in text
    rewrite(file, text.replace(right, wrong))
    try:
        assert_refused(capsys, command, *parts)
    finally:
        rewrite(file, text)
    after = state(run.folder)
    assert {path: after[path] for path in before} == before, "what is finished is as it was"
    code, _, problems = lakewright(capsys, *command)
    assert (code, problems) == (0, [])
    assert timeless(run) == timeless(whole)


def test_an_environment_whose_answers_do_not_fit_is_refused_before_training(tmp_path):
    run = RunFolder(tmp_path / "run")
    with refused("max_tokens"):
        run_loop(text_run(overrides=["text.max_tokens=2"]), run)
    assert not run.warmup.checkpoint.exists()


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--preset", "text", "--dry-run", "--out", "{}/run", "--environment"),
        ("engineer", "begin", "{}/engineer", "--environment"),
    ],
)
def test_an_environment_that_makes_no_problem_is_refused_before_anything_begins(tmp_path, capsys, command):
    (right, wrong), parts = FAILING["a generator that raises"]
    file = tmp_path / "sums.py"
    file.write_text(ADDITION.read_text().replace(right, wrong))
    words = [word.format(tmp_path) for word in command]
    assert_refused(capsys, (*words, f"{file}:Addition"), *parts)
    assert [path for path in tmp_path.iterdir() if path.name != "__pycache__"] == [file]


NOT_FIT = {
    "a judge that raises": FAILING["a judge that raises"],
    "no reference answers": (
        (", str(sum(map(int, terms))))", ")"),
        ("warmup.steps: the environment gives no reference",),
    ),
    "prompts that are too long": (('+ "=",', '+ "=" * 999,'), ("the prompt ", "tokens", "raise model.positions")),
    "a codec of boards": (("", ""), ("codec is tokens", "only the lake", "set codec=bytes")),
}


@pytest.mark.parametrize("name", NOT_FIT)
def test_a_dry_run_refuses_what_the_run_refuses_before_its_warm_up(tmp_path, capsys, name):
    (right, wrong), parts = NOT_FIT[name]
    file, text = tmp_path / "sums.py", ADDITION.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong) if right else text)
    run, codec = tmp_path / "run", ["codec=tokens"] * ("codec" in name)
    command = ("run", "--preset", "text", "--environment", f"{file}:Addition", "--out", run, *OVERRIDES, *codec)
    assert_refused(capsys, (*command, "--dry-run"), *parts)
    assert not run.exists()
    assert_refused(capsys, (*command, "--quiet"), *parts)
    assert not (run / "warmup" / "checkpoint").exists()


def test_a_dry_run_of_an_environment_that_fits_writes_nothing(tmp_path, capsys):
    command = ("run", "--preset", "text", "--environment", f"{ADDITION}:Addition", "--out", tmp_path / "run")
    code, out, problems = lakewright(capsys, *command, *OVERRIDES, "--dry-run")
    assert (code, problems) == (0, [])
    assert "nothing is started" in out
    assert not (tmp_path / "run").exists()


ROWDY = {
    "from ": "import os, torch\nprint('imported')\ntorch.set_default_dtype(torch.float64)\nfrom ",
    JUDGE: f"{JUDGE}        torch.set_grad_enabled(False)\n        torch.set_default_dtype(torch.float16)\n",
    MAKE: f"{MAKE}        print('made')\n        os.chdir('/')\n",
}


@pytest.mark.deep
def test_an_environment_that_prints_and_changes_its_process_changes_no_run_and_no_json(whole, tmp_path):
    text = ADDITION.read_text()
    for right, wrong in ROWDY.items():
        text = text.replace(right, wrong, 1)
    (tmp_path / "sums.py").write_text(text)
    command = ["run", "--preset", "text", "--environment", "sums.py:Addition", "--out", "run", "--json", *OVERRIDES]
    program = [sys.executable, "-m", "lakewright.experiments.cli", *command]
    ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False, env=surroundings())
    assert ended.returncode == 0, ended.stderr
    assert len(json.loads(ended.stdout)["stages"]) == 3
    assert "made\n" in ended.stderr
    names = {path.name for path in (tmp_path / "run").rglob("*")} - {"report.html"}
    assert names == {path.name for path in whole.folder.rglob("*")}
