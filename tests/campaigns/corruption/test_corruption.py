"""The campaign damages one thing in one file, finds results that are silently different, and repeats any case."""

import functools
import os

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import read_all, write_rows
from lakewright.experiments.cli import main
from lakewright.experiments.trainers.folder import EngineerFolder
from tests.campaigns.__main__ import main as run_campaigns
from tests.campaigns.corruption import campaign, fixtures
from tests.campaigns.corruption.campaign import Ended, Trials, corrupt_files, has_faults, judge
from tests.campaigns.corruption.commands import COMMANDS
from tests.campaigns.corruption.damages import Target, damage_file, list_kinds
from tests.support.boards.generated_rows import small_rows
from tests.support.refusals import refused

QUICK = [command for command in COMMANDS if command.folders[0] == "engineer"]
CASES = int(os.environ.get("LAKEWRIGHT_CORRUPTIONS", "1000"))  # of the deep test


@pytest.fixture
def quick(monkeypatch):
    """Only the commands of an engineer's folder, so that only such folders are made."""
    monkeypatch.setattr(campaign, "COMMANDS", QUICK)


def one_of_each(folder):
    (folder / "record.json").write_text('{"valid": [10, 0.5], "name": "a"}')
    (folder / "lines.jsonl").write_text('{"valid": 10}\n{"valid": null}\n')
    (folder / "spec.toml").write_text('# sizes\nsizes = [3]\nname = "a"\n')
    save_file({"weight": np.arange(4, dtype=np.float32)}, folder / "model.safetensors")
    write_rows(folder / "rows.parquet", small_rows()[:3])
    return sorted(folder.iterdir())


def test_every_kind_of_damage_changes_the_file_and_the_same_seed_changes_it_alike(tmp_path):
    for path in one_of_each(tmp_path):
        whole, other = path.read_bytes(), tmp_path / "other"
        other.write_bytes(b"another")
        target = Target(path, other, other)
        kinds = list_kinds(target)
        assert {"byte", "truncated", "value of a field", "of another run", "older version"} <= {
            *kinds,
            "value of a field",
        }
        assert ("bit of a tensor" in kinds) == (path.suffix == ".safetensors")
        for kind in kinds:
            changed = []
            for _ in range(2):
                path.write_bytes(whole)
                damage_file(target, kind, np.random.default_rng(5))
                changed.append(path.read_bytes())
            assert changed[0] == changed[1] != whole, (path.name, kind)
        path.write_bytes(whole)


def test_a_changed_field_leaves_a_file_of_its_form(tmp_path):
    for path in one_of_each(tmp_path):
        if path.suffix in (".json", ".jsonl"):
            damage_file(Target(path), "value of a field", np.random.default_rng(3))
            for line in path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]:
                msgspec.json.decode(line)
    damage_file(Target(tmp_path / "rows.parquet"), "value of a field", np.random.default_rng(3))
    with pytest.raises((InputError, AssertionError)):
        assert read_all(tmp_path / "rows.parquet") == small_rows()[:3]


RIGHT = Ended(0, {"stdout": b"10 valid", "report.html": b"10"}, [])


@pytest.mark.parametrize(
    ("ended", "harmless", "outcome"),
    [
        (RIGHT, False, "same"),
        (Ended(0, {"stdout": b"11 valid", "report.html": b"10"}, []), False, "silent"),
        (Ended(0, {"stdout": b"11 valid", "report.html": b"10"}, []), True, "different"),
        (Ended(0, {"stdout": b"10 valid"}, []), False, "silent"),
        (Ended(0, {"stdout": b"10 valid", "report.html": b"Cannot show this page"}, []), False, "refused"),
        (Ended(1, {"stdout": b""}, ["lakewright: run a-s0: changed"]), False, "refused"),
        (Ended(2, {"stdout": b""}, ["lakewright: changed"]), False, "refused"),
        (Ended(2, {"stdout": b""}, ["lakewright: changed", "lakewright: once more"]), False, "traceback"),
        (Ended(-1, {"stdout": b""}, [], "ValueError: 1"), True, "traceback"),
        (Ended(-1, {"stdout": b""}, [], "hang"), True, "hang"),
    ],
)
def test_what_a_command_does_is_judged(ended, harmless, outcome):
    assert judge(ended, RIGHT, harmless)[0] == outcome


@pytest.mark.usefixtures("quick")
def test_a_campaign_finds_nothing_and_resumes_and_repeats_any_case(tmp_path):
    journal = tmp_path / "journal.jsonl"
    corrupt_files(main, 20, 3, journal)
    kept = journal.read_bytes()
    done = []
    totals = corrupt_files(main, 40, 3, journal, on_progress=done.append)
    assert done == [20, *[1] * 20]
    assert journal.read_bytes().startswith(kept)
    assert sum(sum(total.outcomes.values()) for total in totals) == 40
    assert not has_faults(totals), totals
    cases = [msgspec.json.decode(line) for line in journal.read_bytes().splitlines()]
    (again,) = corrupt_files(main, 1, 3, journal, only=7)
    assert (again.command, again.what) == (cases[7]["command"], cases[7]["what"])
    with refused("journal.jsonl:1", "case 0 of seed 3", "0 of seed 4"):
        corrupt_files(main, 40, 4, journal)
    with refused("journal.jsonl", "'engineer log'", "--commands"):
        corrupt_files(main, 40, 3, journal, named="engineer undo")


@pytest.mark.usefixtures("quick")
def test_a_file_that_nobody_checks_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lakewright.core_jax.support.input_checks.check_digest", lambda path: None)
    monkeypatch.setattr(Trials, "run", _change_a_reason)
    assert run_campaigns(["corruption", "1", "--journal", str(tmp_path / "journal.jsonl")]) == 1
    assert "silent" in capsys.readouterr().out


def _change_a_reason(trials, number):
    command = next(command for command in QUICK if command.name == "engineer log")
    expected = trials._expect(command)
    trials._copy(command)
    path = trials._work / "engineer" / "versions" / "0001.json"
    path.write_bytes(path.read_bytes().replace(b'"line": "', b'"line": "not ', 1))
    outcome, detail = judge(trials._call(command), expected, harmless=False)
    return campaign.Case(0, number, command.name, "versions", path.name, "value of a field", "line", outcome, detail)


def test_wrong_numbers_are_refused(capsys):
    for given, problem in (
        (("0",), "N is 0"),
        (("1", "--case", "-1"), "--case is -1"),
        (("1", "--commands", "no such"), "--commands is 'no such', of which the campaign has none"),
    ):
        assert run_campaigns(["corruption", *given]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.parametrize("named", ["server", "track", "sample", "trials", "resumed in"])
def test_commands_that_ask_others_and_trainings_that_were_interrupted_are_in_the_campaign(named):
    assert [command.name for command in COMMANDS if named in command.name]


@pytest.mark.deep
def test_no_command_is_silently_wrong_about_a_damaged_file():
    totals = corrupt_files(main, CASES)
    assert not has_faults(totals), [case for total in totals for case in total.faults]


def test_outcomes_that_were_changed_after_they_were_read_are_refused(tmp_path):
    with fixtures.enter_folder(tmp_path):
        fixtures._make_rules(functools.partial(fixtures.run_quietly, main), 0, "")
        path = tmp_path / "engineer" / "outcomes.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b'"valid":false', b'"valid":true ', 1))
        with refused("outcomes.jsonl", "bytes", "version"):
            EngineerFolder("engineer").status()
        path.write_bytes(whole + whole.splitlines(keepends=True)[-1])
        assert EngineerFolder("engineer").status().pending > 0
