"""`lakewright engineer begin|next|status|undo|log`: the whole way in a folder, and what is refused."""

import errno
import json
import os
from pathlib import Path

import pytest

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.processes.commands import assert_refused, lakewright
from tests.support.samples.engineer_folders import ADDITION, record_some


@pytest.fixture
def folder(tmp_path, capsys):
    begin = ("engineer", "begin", tmp_path / "e", "--environment", ADDITION, "--teacher", "rules", "--held-out", 4)
    code, out, lines = lakewright(capsys, *begin, "--option", "easier_below=0.6", "guard.floor=0.1")
    assert (code, lines) == (0, [])
    assert out.startswith(f"version 0 by begin, {ADDITION}, teacher rules\n  1: share 0.25 terms 3 carry 0.5\n")
    return EngineerFolder(tmp_path / "e")


def outputs(capsys, *words, expected=0):
    code, out, lines = lakewright(capsys, "engineer", *words)
    assert code == expected, lines
    return out, lines


def test_a_folder_from_its_beginning_to_an_undo(folder, capsys):
    assert folder.setup.options == {"easier_below": 0.6}
    assert folder.setup.settings.guard.floor == 0.1
    record_some(folder, ProblemSource(folder.path).take(32))
    with open(folder.path / "outcomes.jsonl", "a") as outcomes:
        outcomes.write("{}\n")
    assert "version 0: 32 problems" not in outputs(capsys, "status", folder.path)[0]
    out, lines = outputs(capsys, "next", folder.path, "--step", 5, expected=1)  # which scripts notice
    assert out.startswith("version 1: ")
    assert len(lines) == 1
    assert "outcomes.jsonl: 1 line left out: 1 with a wrong field 'version' (line 129: " in lines[0]
    found = json.loads(outputs(capsys, "next", folder.path, "--step", 5, "--json")[0])
    assert (found["version"], found["new"], found["line"]) == (1, False, "step 5 was decided already")
    assert outputs(capsys, "undo", folder.path)[0] == "version 2: back to version 0\n"
    assert [line.split(":")[0] for line in outputs(capsys, "log", folder.path)[0].splitlines()] == [
        *("0 by begin", "1 by engineer", "2 by undo")
    ]
    status = json.loads(outputs(capsys, "status", folder.path, "--json")[0])
    assert sum(total for total, _ in status["outcomes"]["0"].values()) == 128
    for stratum, (total, valid) in status["outcomes"]["0"].items():
        found = status["strata"]["0"][stratum]
        assert (found["answers"], found["valid"]) == (total, valid / total)
        assert found["solved"] + found["learnable"] + found["out_of_reach"] == pytest.approx(1)
        shown = f"  {stratum}: {found['signal']:.0%} of {total // 4} groups; "
        assert shown in outputs(capsys, "status", folder.path)[0]
    shown = outputs(capsys, "status", folder.path)[0].splitlines()
    assert shown[-3].startswith("outcomes of version 0: 1 ")
    assert shown[-1] == "of all lines, 1 left out: 1 with a wrong field 'version'"


def test_a_design_may_be_given(tmp_path, capsys):
    rows = {"2": {"share": 0.5, "terms": 3, "carry": 0}, "4": {"share": 0.5, "terms": 2, "carry": 0.25}}
    (tmp_path / "start.json").write_text(json.dumps(rows))
    begin = ("engineer", "begin", tmp_path / "e", "--environment", ADDITION, "--design", tmp_path / "start.json")
    assert lakewright(capsys, *begin, "--json")[0] == 0
    assert json.loads((tmp_path / "e" / "design.json").read_text())["strata"] == rows
    again = ("engineer", "begin", tmp_path / "a", "--environment", ADDITION, "--held-out", 2)
    of_folder = tmp_path / "e" / "design.json"
    code, _, lines = lakewright(capsys, *again, "--design", of_folder, "--held-out-design", of_folder)
    assert (code, lines) == (0, []), "the design of a folder is one, too"
    assert json.loads((tmp_path / "a" / "design.json").read_text())["strata"] == rows


def test_a_design_that_is_given_has_the_givens_of_the_environment(tmp_path, capsys):
    text = ADDITION.rpartition(":")[0]
    spaced = (
        Path(text).read_text().replace("(terms, carry), ", '(terms, carry), givens=[Given(name="height", middle=2)], ')
    )
    (tmp_path / "sums.py").write_text(spaced.replace("import ", "import Given, ", 1))
    rows = {"2": {"share": 0.5, "terms": 3, "carry": 0}, "4": {"share": 0.5, "terms": 2, "carry": 0.25}}
    (tmp_path / "start.json").write_text(json.dumps(rows))
    begin = ("engineer", "begin", tmp_path / "e", "--environment", tmp_path / "sums.py:Addition", "--design")
    code, _, lines = lakewright(capsys, *begin, tmp_path / "start.json")
    assert (code, lines) == (0, [])
    found = json.loads((tmp_path / "e" / "design.json").read_text())
    assert (found["strata"], found["given"]) == (rows, {"height": 2.0})


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--teacher", "nobody"], ["--teacher is 'nobody'; choose from fixed"]),
        (["--teacher", "rules", "--option", "nope=1"], ["teacher_options: 'nope' is unknown to rules; choose from"]),
        (["--option", "nope"], ["override 'nope': write it as setting=value"]),
        (["--teacher", "endpoint"], ["teacher endpoint has no server; give endpoint.url and endpoint.model"]),
        (["guard.flor=0.1"], ["settings: guard: unknown field 'flor'", "choose from floor"]),
        (["--design", "nowhere.json"], ["nowhere.json: cannot be read"]),
        (["--seed", "-1"], ["engineer: seed: -1 does not fit"]),
        (["--teacher", "e2h_cosine"], ["teacher e2h_cosine follows a schedule; give rounds (--rounds)"]),
        (
            ["--teacher", "matched_random", "--option", "match=e2h_cosine"],
            ["matched_random follows a schedule"],
        ),
        (["--rounds", "0"], ["engineer: rounds: 0 does not fit"]),
        (["guard.floor=0.5"], ["guard: floor 0.5 x 4 strata is more than 1"]),
        (["guard.most.digit=3"], ["guard: most.digit is unknown; choose from terms, carry"]),
        (["guard.reach.digit=3"], ["guard: reach.digit is unknown; choose from share, terms, carry"]),
    ],
)
def test_what_cannot_begin_is_refused_and_nothing_is_made(tmp_path, capsys, words, parts):
    begin = ("engineer", "begin", tmp_path / "e", "--environment", ADDITION)
    assert_refused(capsys, (*begin, *words), *parts)
    assert not (tmp_path / "e").exists()


def test_a_full_disk_is_one_line_and_loses_nothing(folder, capsys, monkeypatch):
    record_some(folder, ProblemSource(folder.path).take(32))

    def fill(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fill)
        assert_refused(capsys, ("engineer", "next", folder.path), "0001.json: No space left on device; free disk space")
    assert (folder.files.list_versions(), folder.status().pending) == ([0], 128)
    assert outputs(capsys, "next", folder.path)[0].startswith("version 1: ")


def test_a_full_disk_at_the_beginning_is_one_line_and_it_can_begin_later(tmp_path, capsys, monkeypatch):
    def fill(path, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    begin = ("engineer", "begin", tmp_path / "e", "--environment", ADDITION)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fill)
        assert_refused(capsys, begin, "No space left on device; free disk space")
    assert lakewright(capsys, *begin)[0] == 0
    assert EngineerFolder(tmp_path / "e").log() == ["0 by begin: the first design"]
