"""A redesign before the first stage, from the held-out answers after the warm-up (`engineer.asked_first`)."""

import json
import shutil

import pytest
import torch

from lakewright.core_jax.errors import InputError
from lakewright.engineer.tally import pool_tallies
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.cli import main
from lakewright.experiments.loop.records.history import read_chapters
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import DecisionRecord, Validation, read_record
from lakewright.experiments.loop.records.token_budget import count_run_tokens, count_stage_tokens
from lakewright.experiments.loop.redesign.run_engineer import RunEngineer
from lakewright.experiments.loop.settings.run_settings import QuestionSettings, RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.models.tiny_policy import tiny_run
from tests.support.samples.tiny_runs import files, run_loop, state

QUICK = ("difficulty", "self", "fixed")
MORE = ("rules", "proportional", "thompson", "alp_gmm", "learning_progress", "rlve", "random")
FIRST = QuestionSettings(asked_first=True)


def first(teacher: str = "random", **changes: object) -> RunSettings:
    """Settings of a tiny run that is redesigned before its first stage."""
    return tiny_run(teacher=teacher, engineer=FIRST, **changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = RunFolder(tmp_path_factory.mktemp("first") / "run")
    run_loop(first(), folder)
    return folder


def test_the_first_stage_trains_on_what_was_decided_after_the_warm_up(run):
    assert run.warmup.design() == make_trainee(run.settings()).start
    assert run.stage(0).design() == run.warmup.next_design()


def test_a_report_tells_of_the_trial_before_the_first_stage_and_what_it_cost(run, capsys):
    assert main(["report", str(run.folder), "--json"]) == 0
    warmup, first, *_ = json.loads(capsys.readouterr().out)["stages"]
    assert warmup["tokens"]["trials"] == count_stage_tokens(run.warmup).trials > 0
    assert len(warmup["trial"]["candidates"]) > 1
    assert first["config"] in [candidate["config"] for candidate in warmup["trial"]["candidates"]]
    assert "config" not in warmup, "it trained on certified plans"


def test_a_gpu_that_is_full_in_a_redesign_is_one_line_and_the_run_continues(run, tmp_path, monkeypatch):
    def fill(self, number):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.38 GiB. GPU 0 has 139.80 GiB")

    again = RunFolder(tmp_path / "run")
    shutil.copytree(run.folder, again.folder, symlinks=True)
    again.stage(0).done.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(RunEngineer, "redesign", fill)
        with pytest.raises(InputError, match=r"^redesign after stage 0: .*another 3\.38 GiB.* lower trial\.boards$"):
            run_loop(first(), again)
    run_loop(first(), again)
    assert again.stage(0).done.exists()


def test_without_a_trial_that_is_what_the_teacher_proposed(tmp_path):
    run = RunFolder(tmp_path)
    run_loop(first(stages=1, trial=TrialSettings(enabled=False)), run)
    proposed = read_record(run.warmup.proposal, DecisionRecord).verdict.design
    assert run.stage(0).design() == proposed != run.warmup.design()


def test_the_engineer_is_shown_the_held_out_answers_and_nothing_else(run):
    evidence = run.warmup.read_evidence()
    assert evidence.outcomes == read_record(run.warmup.validation, Validation).outcomes
    assert (evidence.round, evidence.rounds, evidence.history, evidence.groups) == (0, 3, [], [])
    assert not evidence.statistics
    assert evidence.forecast is not None
    shares = [cell.share for cell in evidence.forecast.held_out]
    assert sum(shares) == pytest.approx(1)


def test_later_evidence_has_it_as_its_first_round(run):
    evidence = run.stage(0).read_evidence()
    assert (evidence.round, len(evidence.history)) == (1, 1)
    assert evidence.history[0].design == run.warmup.design()
    assert evidence.history[0].note == "; ".join(run.warmup.read_next().reasons)


def test_its_tokens_are_of_the_budget_and_the_warm_up_has_no_design_of_its_own(run):
    paid = count_stage_tokens(run.warmup)
    assert (paid.training, paid.trials > 0) == (0, True)
    stages = [count_stage_tokens(run.stage(number)) for number in (0, 1)]
    assert count_run_tokens(run, 2) == paid + stages[0] + stages[1]
    warmup, *_ = read_chapters(run)
    assert (warmup.design, warmup.tokens, warmup.decision is None) == (None, paid, False)
    assert warmup.pooled == pool_tallies(read_record(run.warmup.validation, Validation).outcomes.values())


@pytest.mark.parametrize("teacher", [*QUICK, *(pytest.param(name, marks=pytest.mark.deep) for name in MORE)])
def test_any_teacher_can_be_asked_first(teacher, tmp_path):
    run = RunFolder(tmp_path)
    run_loop(first(teacher, stages=1), run)
    assert run.stage(0).design() == run.warmup.next_design()


@pytest.mark.deep
def test_a_run_that_is_cut_off_there_ends_the_same(run, tmp_path):
    cut, cuts = RunFolder(tmp_path / "run"), 0
    while not cut.stage(0).design_file.exists():
        with pytest.MonkeyPatch.context() as patch:
            cut_power(patch, renamings=2 + 10 * (cuts == 0), before=True)
            with pytest.raises(PowerCutError):
                run_loop(first(), cut)
        cuts += 1
        assert cuts < 40
    run_loop(first(), cut)
    assert files(cut.folder) == files(run.folder)
    for name in ("env.json", "proposal.json", "trial.json", "next.json"):
        assert state(cut.warmup.folder)[name][0] == state(run.warmup.folder)[name][0]
    assert cut.stage(0).design_file.read_bytes() == run.stage(0).design_file.read_bytes()
