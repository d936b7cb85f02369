"""Answers and files that the closed loop cannot use: nothing is lost, and it says what is wrong."""

import shutil

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.environments.lake import Lake, design_of
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import DecisionRecord
from lakewright.experiments.loop.redesign import teacher_models as asking
from tests.support.models.tiny_policy import ENV, tiny_run
from tests.support.samples.tiny_runs import FILES, decision, files, finished, forget, redesign_again, run_loop, state


def before_the_first_decision(teacher: str, folder: RunFolder) -> RunFolder:
    """A copy of the finished run of a teacher, back where stage 0 had its evidence and no proposal."""
    shutil.copytree(finished(teacher).folder, folder.folder)
    shutil.rmtree(folder.stage(1).folder)
    forget(folder.stage(0))
    return folder


GARBAGE = {
    "nothing": [],
    "no end": ["<size_3>"],
    "words out of order": ["<size_3>", "<size_3>", "<end>"],
    "a size that is not there": ["<size_9>", "<data+1>", "<because_frontier>", "<end>"],
    "no words of the engineer": ["0,1", "<pad>", "<end>"],
    "any letters": ["\x00", "\n", "\u202e", "'; drop table"],
    "half a surrogate pair": ["\ud800"],
    "no words at all": [None, 7, b"\xff", 1e999],
}


def assert_refused(found: DecisionRecord, name: str) -> None:
    assert (found.verdict.status, found.verdict.design) == ("refused", design_of(ENV)), name
    assert found.verdict.reasons, name
    assert found.proposal.delta is None or found.proposal.delta.edits.keys() == {9}, name


def test_an_answer_that_is_garbage_is_recorded_as_refused_and_the_config_kept(tmp_path, monkeypatch):
    run = before_the_first_decision("self", RunFolder(tmp_path / "run"))
    for name in GARBAGE:
        monkeypatch.setattr(asking, "answer_under_grammar", lambda *_, name=name: GARBAGE[name])
        assert_refused(redesign_again(tiny_run(teacher="self"), run, 0), name)


def test_a_run_whose_answers_are_garbage_goes_on_to_its_end(tmp_path, monkeypatch):
    run = before_the_first_decision("self", RunFolder(tmp_path / "run"))
    names = ("no words at all", "a size that is not there")
    monkeypatch.setattr(asking, "answer_under_grammar", lambda *_: GARBAGE[names[run.stage(1).design_file.exists()]])
    run_loop(tiny_run(teacher="self"), run)
    for number, name in enumerate(names):
        assert_refused(decision(run, number), name)
    assert files(run.folder) == FILES


def test_a_config_whose_boards_cannot_be_found_is_refused_and_the_old_one_kept(tmp_path, monkeypatch):
    run = before_the_first_decision("random", RunFolder(tmp_path / "run"))
    monkeypatch.setattr(Lake, "drawable", lambda self, cell: False)
    run_loop(tiny_run(teacher="random"), run)
    assert decision(run, 0).verdict.reasons[0].startswith("sizes.3: no boards with hole_ratio")
    assert len(decision(run, 0).refused) == tiny_run().guard.tries - 1
    assert run.stage(1).design() == design_of(ENV)


@pytest.mark.parametrize("name", ["env.json", "boards.parquet", "evidence.json", "validation.json", "proposal.json"])
def test_a_file_that_was_damaged_is_named_and_nothing_is_lost(tmp_path, name):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("fixed").folder, run.folder)
    number = 0 if name == "proposal.json" else 1
    following = {"env.json": ["boards.parquet"], "boards.parquet": ["checkpoint"], "validation.json": ["evidence.json"]}
    following |= {"evidence.json": ["proposal.json"], "proposal.json": ["../stage_01/env.json"]}
    damaged = run.stage(number).folder / name
    damaged.write_bytes(damaged.read_bytes()[:40])
    for left in following[name]:
        path = run.stage(number).folder / left
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    run.stage(1).done.unlink()
    before = state(run.folder)
    with pytest.raises(InputError, match=f"stage_0{number}/{name}"):
        run_loop(tiny_run(teacher="fixed"), run)
    assert state(run.folder) == before
