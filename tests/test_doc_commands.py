"""Every command on a page is run: here as it stands, or by a test that is named; a few are only read, with the reason.

Records of their time are left out: the lab and the changelog. So are programs of the shell, such as `git` and `pip`.
"""

import ast
import functools
import itertools
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from lakewright.experiments.boards.sweep import read_spec
from lakewright.experiments.cli import build_app, main
from lakewright.experiments.cli.conventions.options import take_overrides
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.experiments.studies.study import plan_study
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.processes.commands import HOUSE
from tests.support.samples.engineer_folders import record_some
from tests.support.samples.tiny_sweep import SPEC, make
from tests.support.tools.listed_commands import ELSEWHERE, ONLY_READ
from tests.test_docs import LAB, PAGES, code_blocks, text_of

PAGES_OF_TODAY = [page for page in PAGES if page.parent != LAB and page.stem not in ("CHANGELOG", "licences")]
PROGRAMS = "lakewright|make|python|pytest|marimo|duckdb|vf-eval|vf-validate|openenv|server|trl|sbatch"
# Before it may be variables, the head of a loop, or another program that starts it.
COMMAND = re.compile(rf"(?:[A-Z_]+=.*? |.*; do |.* -- )?(?:\.venv/bin/)?((?:{PROGRAMS}) [^#;=]\S*.*)")

OF_A_READER = re.compile(r"\b(spec|billion|my|study)\.toml|\brhymes\.py")  # files that no page shows whole
NOT_HERE = {command for listed in (ELSEWHERE, ONLY_READ) for commands in listed.values() for command in commands}


def commands_on(page: Path) -> Iterator[str]:
    """The commands in the code of a page, without comments and what a shell puts around them."""
    for line in (line for block in code_blocks(text_of(page)) for line in block.splitlines()):
        if found := COMMAND.fullmatch(re.sub(r"(^|\s+)#.*", "", line.strip()).removesuffix("; done")):
            yield " ".join(found[1].split())


def outputs_on(page: Path) -> Iterator[str]:
    """Indented blocks of a page without a command, as one line each."""
    for block in re.findall(r"(?:^ {4}.*\n)+", re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S), re.M):
        if not any(COMMAND.fullmatch(line.strip()) for line in re.sub(r" *\\\n *", " ", block).splitlines()):
            yield " ".join(block.split())


def commands_to_run(page: Path) -> list[str]:
    """The commands of a page that are run here."""
    return [command for command in commands_on(page) if command not in NOT_HERE]


def draw_boards(path: Path) -> None:
    """The boards of docs/getting-started.md."""
    (first, *_) = commands_to_run(HOUSE / "docs" / "getting-started.md")
    assert main([*shlex.split(first)[1:], "--out", str(path)]) == 0


def add_answers(path: Path) -> None:
    """Answers in the form that the `sed` command of docs/trainers.md writes."""
    lines = path.with_name("problems.jsonl").read_text().splitlines()
    path.write_text("".join(line[:-1] + ', "answers": ["a cat", "a hat"], "group": "step 1"}\n' for line in lines))


# What a reader has from other pages: how it is made.
HAD: dict[str, Callable[[Path], object]] = {
    "answers.jsonl": add_answers,
    "boards.jsonl": draw_boards,
    "sweeps/phases": lambda path: make(SPEC, path),
}


def prepare(words: list[str]) -> None:
    """Makes what a command reads, outcomes before a redesign, and room for another beginning of the same folder."""
    read = [word for before, word in itertools.pairwise(["", *words]) if before != "--out"]
    for name, make_it in HAD.items():
        if any(name in word for word in read) and not Path(name).exists():
            make_it(Path(name))
    if words[:2] == ["engineer", "begin"]:
        shutil.rmtree(words[2], ignore_errors=True)
    if words[:2] == ["engineer", "next"]:
        record_some(EngineerFolder(Path(words[2])), ProblemSource(words[2]).take(8))


def list_failing(commands: list[str]) -> list[str]:
    """Runs commands; those that do not end well."""
    return [command for command in commands if not ends_well(*shlex.split(command))]


def ends_well(program: str, *words: str) -> bool:
    """Runs a command in this process. duckdb, whose command line is not installed here, answers from Python."""
    prepare(list(words))
    return bool(duckdb.sql(words[-1]).fetchall()) if program == "duckdb" else main(words) == 0


@pytest.fixture
def new_folder(tmp_path, monkeypatch) -> Path:
    """A folder like that of a clone, without results."""
    for name in ("docs", "experiments"):
        (tmp_path / name).symlink_to(HOUSE / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES_OF_TODAY if commands_to_run(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_they_stand(page, new_folder):
    assert list_failing(commands_to_run(page)) == []


@functools.cache
def list_tests(file: Path) -> set[str]:
    """The names of the tests of a file."""
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_the_lists_name_commands_of_pages_and_tests_that_there_are():
    shown = {command for page in PAGES_OF_TODAY for command in commands_on(page)}
    assert shown >= NOT_HERE, "no page shows these any more"
    for test in ELSEWHERE:
        file, name = test.split("::")
        assert name in list_tests(HOUSE / file), f"{file} has no {name}"


@pytest.mark.parametrize("command", sorted(command for command in NOT_HERE if command.startswith("lakewright ")))
def test_a_command_that_is_not_run_here_is_understood(command, monkeypatch):
    monkeypatch.chdir(HOUSE)
    overrides, words = take_overrides(shlex.split(command)[1:])
    _, bound, _ = build_app().parse_args(words, print_error=False, exit_on_error=False)
    given = bound.arguments
    if OF_A_READER.search(command):
        return
    if words[0] in ("run", "doctor"):
        named = [f"{name}={given[name]}" for name in ("environment", "teacher") if name in given]
        usual = "text" if "environment" in given else "cpu"
        assert load_settings(given.get("preset", usual), [*named, *overrides]).stages > 0
    elif "spec" in given:
        assert read_spec(given["spec"]).shards() if words[0] == "sweep" else plan_study(given["spec"]).runs


def test_what_make_is_asked_for_is_a_target():
    targets = set(re.findall(r"^([a-z-]+):", (HOUSE / "Makefile").read_text(), re.M))
    asked = [words[1] for words in map(str.split, NOT_HERE) if words[0] == "make"]
    assert asked
    assert targets.issuperset(asked)


def without_spaces(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_rows_and_verdicts_of_the_first_page_are_those_that_its_commands_write(new_folder):
    page = HOUSE / "docs" / "getting-started.md"
    assert list_failing([command for command in commands_to_run(page) if ".jsonl" in command]) == []
    row, verdict = map(without_spaces, outputs_on(page))
    assert Path("boards.jsonl").read_text().splitlines()[0] == row
    assert Path("verdicts.jsonl").read_text().splitlines()[0] == verdict


def test_the_row_that_explains_the_columns_has_the_labels_of_the_solver(new_folder):
    page = HOUSE / "docs" / "problem.md"
    (row,) = map(without_spaces, outputs_on(page))
    Path("boards.jsonl").write_text(row + "\n")
    assert list_failing(commands_to_run(page)) == []
    assert Path("solved.jsonl").read_text() == row + "\n"


def test_the_memory_of_the_large_preset_is_as_on_its_page(capsys):
    page = HOUSE / "docs" / "gpu-hosts.md"
    assert list_failing(["lakewright estimate --preset qwen3-4b"]) == []
    assert without_spaces(list(outputs_on(page))[-1]) in without_spaces(capsys.readouterr().out)
