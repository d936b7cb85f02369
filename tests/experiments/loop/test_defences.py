"""Trial, rollback and budget in the closed loop: what they choose, what they roll back, and where they stop."""

import shutil

import msgspec
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer import rollback
from lakewright.engineer.evidence import evidence_tokens
from lakewright.engineer.evidence.vocabulary import UNDONE
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.rollback import Comparison, RollbackSettings
from lakewright.engineer.steps import Next
from lakewright.engineer.trial import Trial, TrialSettings, try_designs
from lakewright.experiments.environments.lake import config_of, design_of, lake_space
from lakewright.experiments.loop.records.history import describe_stage
from lakewright.experiments.loop.records.run_folder import FORMAT, RunConfig, RunFolder
from lakewright.experiments.loop.records.stage_records import Rollback, read_record, write_record
from lakewright.experiments.loop.records.token_budget import count_run_tokens, count_stage_tokens
from lakewright.experiments.loop.redesign.run_engineer import start_trial
from lakewright.experiments.loop.training.trainee import make_trainee
from tests.support.models.tiny_policy import ENV, tiny_run
from tests.support.samples.tiny_runs import decision, finished, redesign_again, run_loop, state, watch_loading

FIRST = design_of(ENV)
OTHER = design_of(EnvConfig({3: SizeConfig(0.4, 0.2, 0.5), 5: SizeConfig(0.6, 0.25, 0.5)}))
FELL = Comparison(gained=1, lost=9, p_value=0.011)


def test_a_proposal_is_tried_against_the_current_config_and_the_better_one_is_drawn_from():
    run = finished("random")
    trial = read_record(run.stage(0).trial, Trial)
    assert [tried.design for tried in trial.candidates] == [FIRST, decision(run, 0).verdict.design]
    assert trial.leads[trial.chosen].better == max(lead.better for lead in trial.leads)
    assert trial.chosen == 0 or trial.leads[trial.chosen].better > 0.5
    assert run.stage(1).design() == trial.candidates[trial.chosen].design
    assert count_stage_tokens(run.stage(0)).trials == trial.tokens > 0


def test_no_trial_is_held_after_the_last_stage_or_for_the_current_config():
    assert not finished("random").stage(1).trial.exists()
    assert not finished("fixed").stage(0).trial.exists()


def test_a_trial_again_scores_the_same_and_equal_configs_alike():
    run, other = finished("random"), decision(finished("random"), 0).verdict.design
    once = read_record(run.stage(0).trial, Trial)
    work = start_trial(make_trainee(tiny_run(teacher="random")), run.stage(0), "stage 0 trial")
    found = try_designs(work, [FIRST, other])
    assert (found.candidates, found.cells, found.tokens) == (once.candidates, once.cells, once.tokens)


def test_what_is_generated_is_counted_step_by_step():
    run = finished("random")
    lines = msgspec.json.Decoder(dict).decode_lines(run.stage(0).train_log.read_bytes())
    completions = tiny_run().grpo.prompts * tiny_run().grpo.group
    for line in lines:  # nothing is left out here, so what is trained on is what was sampled
        assert line["sampled/tokens"] == pytest.approx(completions * line["completions/mean_length"])
    assert count_stage_tokens(run.stage(0)).training == sum(line["sampled/tokens"] for line in lines)
    assert (
        count_run_tokens(run, 2).total
        == count_stage_tokens(run.stage(0)).total + count_stage_tokens(run.stage(1)).total
    )


def test_a_stage_whose_policy_fell_is_rolled_back_with_weights_and_config(tmp_path, monkeypatch):
    loaded = watch_loading(monkeypatch)
    results = iter([Comparison(3, 0, 1.0), FELL])
    monkeypatch.setattr(rollback, "compare_answers", lambda before, after: next(results))
    run = RunFolder(tmp_path / "run")
    off = TrialSettings(enabled=False)
    run_loop(tiny_run(teacher="random", trial=off), run)
    assert read_record(run.stage(1).rollback, Rollback) == Rollback("stage_00", FELL, True, "stage_00")
    found = read_record(run.stage(1).next, Next)
    assert config_of(run.stage(1).design()) != ENV
    assert found.design == FIRST, "the design that served before"
    assert found.source == "rollback"
    assert found.reasons == ["validation fell: 9 lost, 1 gained, p 0.011"]
    assert not run.stage(1).proposal.exists(), "nobody is asked after a fall"
    assert run.find_standing(1).folder.name == "stage_00"
    before = state(run.folder)
    results = iter([FELL])
    longer = tiny_run(teacher="random", trial=off, stages=3)
    write_record(run.config, RunConfig(FORMAT, longer))
    loaded.clear()
    run_loop(longer, run)
    assert loaded[0] == "stage_00", "the third stage goes on from the weights before the fall"
    after = state(run.folder)
    assert {name: after[name] for name in before if name != "config.json"} == {
        name: following for name, following in before.items() if name != "config.json"
    }
    assert run.stage(2).design() == FIRST
    past = run.stage(2).read_evidence().history
    assert [old.rolled_back for old in past] == [False, True]
    assert "validation fell" in past[1].note
    assert evidence_tokens(run.stage(2).read_evidence(), lake_space()).count(UNDONE) == 1


def test_after_a_first_stage_that_was_rolled_back_the_teacher_is_asked_for_other_boards(tmp_path, monkeypatch):
    results = iter([FELL, Comparison(3, 0, 1.0)])
    monkeypatch.setattr(rollback, "compare_answers", lambda before, after: next(results))
    run = RunFolder(tmp_path / "run")
    run_loop(tiny_run(teacher="random", trial=TrialSettings(enabled=False)), run)
    following = run.stage(0).read_next()
    assert following.source == "proposal", "its own config again would do the same harm again"
    assert following.reasons[0] == "validation fell: 9 lost, 1 gained, p 0.011"
    assert run.stage(1).design() == following.design == decision(run, 0).verdict.design != FIRST
    assert run.find_standing(0).folder.name == "warmup"
    told = [line.split()[0] for line in describe_stage(run, 0, lake_space())]
    assert (told[:3], told[-1]) == (["validation", "rolled", "proposal"], "next")
    assert run.stage(1).read_evidence().history[0].rolled_back
    run.stage(0).proposal.unlink()  # earlier versions asked nobody there
    assert redesign_again(tiny_run(teacher="random"), run, 1).teacher == "random"
    assert run.stage(0).read_next() == following


@pytest.mark.deep
def test_a_teacher_with_a_state_is_asked_after_a_first_stage_that_was_rolled_back(tmp_path, monkeypatch):
    results = iter([FELL, Comparison(3, 0, 1.0)])
    monkeypatch.setattr(rollback, "compare_answers", lambda before, after: next(results))
    run = RunFolder(tmp_path / "run")
    run_loop(tiny_run(teacher="sfl", trial=TrialSettings(enabled=False)), run)
    assert any(decision(run, 1).teacher_state.values()), "it learned from the stage that stands"
    run.stage(0).proposal.unlink()  # earlier versions did not ask there, so they left no state
    for teacher in ("adarft", "sec", "thompson", "alp_gmm"):
        found = redesign_again(tiny_run(teacher=teacher), run, 1)
        assert (found.teacher, any(found.teacher_state.values())) == (teacher, True), f"{teacher} did not learn"


def test_a_run_whose_teacher_has_no_state_from_an_older_version_resumes(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("random").folder, run.folder)
    old = decision(run, 0)
    write_record(run.stage(0).proposal, msgspec.structs.replace(old, teacher="sec", teacher_state={}))
    assert any(redesign_again(tiny_run(teacher="sec"), run, 1).teacher_state.values())


def test_what_follows_a_stage_is_in_one_record_and_is_read_from_older_folders_too(tmp_path):
    trial = read_record(finished("random").stage(0).trial, Trial)
    sources = {name: finished(name).stage(0).read_next().source for name in ("fixed", "random")}
    assert sources == {"fixed": "current", "random": "trial" if trial.chosen else "current"}
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("random").folder, run.folder)
    following = [run.stage(number).read_next() for number in (0, 1)]
    for number in (0, 1):
        run.stage(number).next.unlink()
    assert [run.stage(number).read_next() for number in (0, 1)] == following
    posed = GuardVerdict("accepted", ["taken back to warmup: 9 boards lost, 1 gained, p 0.011"], FIRST)
    write_record(run.stage(0).proposal, msgspec.structs.replace(decision(run, 0), verdict=posed))
    write_record(run.stage(0).rollback, Rollback("warmup", FELL, True, "warmup"))
    run.stage(0).trial.unlink()
    assert run.stage(0).read_next() == Next(FIRST, "rollback", posed.reasons)


def fall_again(run: RunFolder, number: int, **changes: object) -> Next:
    """What follows a stage of other boards, of which the policy fell."""
    write_record(run.stage(number).design_file, OTHER)
    run.stage(number).rollback.unlink()
    redesign_again(tiny_run(teacher="random", **changes), run, number)
    return run.stage(number).read_next()


def test_weights_stay_where_only_the_config_is_to_go_back(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("random").folder, run.folder)
    monkeypatch.setattr(rollback, "compare_answers", lambda before, after: FELL)
    following = fall_again(run, 1, rollback=RollbackSettings(weights=False))
    assert read_record(run.stage(1).rollback, Rollback) == Rollback("stage_00", FELL, True, "stage_01")
    assert (following.source, following.design) == ("rollback", FIRST)


@pytest.mark.deep
def test_after_two_falls_the_config_is_that_of_before_the_first_though_the_weights_stay(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("random").folder, run.folder)
    shutil.copytree(run.stage(1).folder, run.stage(2).folder)
    monkeypatch.setattr(rollback, "compare_answers", lambda before, after: FELL)
    write_record(run.stage(1).design_file, OTHER)
    write_record(run.stage(1).rollback, Rollback("stage_00", FELL, True, "stage_01"))
    following = fall_again(run, 2, rollback=RollbackSettings(weights=False), stages=3)
    found = read_record(run.stage(2).rollback, Rollback)
    assert found == Rollback("stage_01", FELL, True, "stage_02"), "it was trained from the weights that stayed"
    assert (following.source, following.design) == ("rollback", FIRST)


def test_the_first_config_has_none_before_it_and_the_teacher_is_asked(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("random").folder, run.folder)
    monkeypatch.setattr(rollback, "compare_answers", lambda before, after: FELL)
    following = fall_again(run, 0)
    assert read_record(run.stage(0).rollback, Rollback) == Rollback("warmup", FELL, True, "warmup")
    assert (following.source, following.design) == ("proposal", decision(run, 0).verdict.design)


def test_a_run_stops_at_the_step_that_spends_its_budget_and_says_no_more_when_run_again(tmp_path):
    run = RunFolder(tmp_path / "run")
    grpo = msgspec.structs.replace(tiny_run().grpo, steps=4)
    settings = tiny_run(teacher="fixed", grpo=grpo, budget=1, stages=3)
    run_loop(settings, run)
    assert len(run.finished_stages()) == 1
    assert len(run.stage(0).train_log.read_bytes().splitlines()) == 1
    assert 1 <= count_run_tokens(run, 3).total <= 4 * 2 * 17
    before = state(run.folder)
    run_loop(settings, run)
    assert state(run.folder) == before
