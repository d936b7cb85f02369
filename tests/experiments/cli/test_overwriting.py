"""No command writes over what it reads: the same path, a link to it, or a folder whose files it would replace."""

import os
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from cyclopts import App

from lakewright.core_jax.rows import read_all, write_rows
from lakewright.experiments.cli import build_app
from lakewright.experiments.cli.app import POSITIONAL, WRITTEN
from lakewright.experiments.jobs.resumable.overwriting import refuse_overwriting
from tests.campaigns.__main__ import app as campaigns
from tests.support.boards.generated_rows import small_rows
from tests.support.processes.commands import assert_refused, lakewright


@pytest.fixture
def boards(tmp_path):
    """A file of three boards."""
    path = tmp_path / "in.jsonl"
    write_rows(path, small_rows()[:3])
    return path


def links_to(path):
    """The path itself, other spellings of it, a symbolic link and a hard link."""
    folder = path.parent
    symbolic, hard = folder / f"symbolic{path.suffix}", folder / f"hard{path.suffix}"
    symbolic.symlink_to(path)
    os.link(path, hard)
    return [path, folder / "." / ".." / folder.name / path.name, symbolic, hard]


@pytest.mark.parametrize("command", ["solve", "verify", "convert"])
def test_a_file_is_not_written_over_its_own_input(boards, capsys, command):
    before = boards.read_bytes()
    for out in links_to(boards):
        assert_refused(capsys, (command, boards, "--out", out), str(out), "is also the input", "choose another")
        assert out.read_bytes() == before
    assert not [file for file in boards.parent.iterdir() if file.name.startswith(".")]


def test_what_is_rejected_is_not_written_over_the_input_or_the_output(boards, capsys):
    before, out = boards.read_bytes(), boards.with_name("out.jsonl")
    for command in ("solve", "verify"):
        for path in links_to(boards):
            assert_refused(capsys, (command, boards, "--out", out, "--rejects", path), str(path), "is also the input")
            if path.name in ("symbolic.jsonl", "hard.jsonl"):
                path.unlink()
        assert_refused(capsys, (command, boards, "--out", out, "--rejects", out), str(out), "is also --out")
    assert boards.read_bytes() == before
    assert not out.exists()


def test_verdicts_are_not_written_over_the_plans(boards, capsys):
    plans = boards.with_name("plans.jsonl")
    plans.write_text('{"id": "a", "plan": ["R"]}\n')
    assert_refused(capsys, ("verify", boards, "--plans", plans, "--out", plans), str(plans), "is also --plans")
    assert plans.read_text() == '{"id": "a", "plan": ["R"]}\n'


def test_generated_boards_and_their_manifest_are_not_written_over_the_config(tmp_path, capsys):
    text = '{"agents": 1, "sizes": {"3": {"data_ratio": 1, "hole_ratio": 0.2, "wait_ratio": 0}}}'
    for name in ("boards.jsonl", "boards.jsonl.manifest.json"):
        config = tmp_path / name
        config.write_text(text)
        given = ("generate", "--config", config, "--count", 1, "--out", tmp_path / "boards.jsonl")
        assert_refused(capsys, given, str(config), "is also --config")
        assert config.read_text() == text


def test_a_part_of_an_unfinished_file_is_no_input_of_the_whole(boards, capsys):
    folder = boards.with_name(".out.jsonl.parts")
    folder.mkdir()
    boards = boards.rename(folder / "whole.jsonl")
    assert_refused(capsys, ("verify", boards, "--out", folder.parent / "out.jsonl"), str(boards), "is in")
    assert read_all(boards) == small_rows()[:3]


def test_a_map_beside_a_scenario_is_not_replaced(boards, tmp_path, capsys):
    one = tmp_path / "one.jsonl"
    write_rows(one, read_all(boards)[:1])
    assert lakewright(capsys, "convert", one, "--out", tmp_path / "a.scen")[0] == 0
    for ending in (".scen", ".map"):
        (tmp_path / f"a{ending}").rename(tmp_path / f"b{ending}")
    scenario = tmp_path / "b.scen"
    scenario.write_text(scenario.read_text().replace("a.map", "b.map"))
    before = (tmp_path / "b.map").read_bytes()
    assert_refused(capsys, ("convert", scenario, "--out", tmp_path / "b.txt"), "b.map", "is also an input")
    assert (tmp_path / "b.map").read_bytes() == before


def test_a_folder_is_not_written_over_the_folder_that_is_read(tmp_path, capsys):
    folder = tmp_path / "runs"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder)
    commands = (
        ("view", "bundle", folder, "--out"),
        ("benchmark", "export", folder, "--to"),
        ("benchmark", "eval", folder, "--solver", "greedy", "--out"),
        ("benchmark", "eval", tmp_path, "--model", folder, "--out"),
        ("study", folder, "--out"),
        ("sweep", folder, "--out"),
        ("engineer", "sample", folder, "--stage", 0, "--models", "pretrained", "--out"),
        ("engineer", "sample", tmp_path / "run", "--stage", 0, "--models", f"pretrained,{folder}", "--out"),
    )
    for command in commands:
        for out in (folder, link):
            assert_refused(capsys, (*command, out), str(out), "is also", "choose another")
    assert_refused(capsys, ("run", f"start={folder}", "--out", link), str(link), "is also start")
    assert list(folder.iterdir()) == []


def test_files_that_are_not_there_yet_are_told_apart_by_their_names(tmp_path):
    out, other = ("--out", tmp_path / "a"), ("--rejects", tmp_path / "b")
    refuse_overwriting([out, other], [("the input", tmp_path / "c")])
    with pytest.raises(ValueError, match="is also the input"):
        refuse_overwriting([("--out", tmp_path / "x" / ".." / "a")], [("the input", tmp_path / "a")])


def parameters_of(app: App) -> set[str]:
    """The names of all parameters of all commands that take paths."""
    found = set()
    for name, command in app.resolved_commands().items():
        if not name.startswith("-"):
            hints = get_type_hints(command.default_command) if command.default_command else {}
            found |= {name for name, hint in hints.items() if Path in (hint, *get_args(hint))}
            found |= parameters_of(command)
    return found


def test_of_every_path_on_a_command_line_it_is_known_whether_it_is_written():
    given = {"config", "design", "held_out_design", "plans", "pogema"}  # read, and named as they are on the line
    assert parameters_of(build_app()) | parameters_of(campaigns) == {*WRITTEN, *POSITIONAL, *given}, (
        "name a new one in app.py"
    )
