"""The engineer that is trained on its own proposals, in the closed loop."""

import shutil
from pathlib import Path

import msgspec
import pytest
from safetensors.torch import load_file

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.design import Delta
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.evidence import read_tokens
from lakewright.engineer.steps import Next
from lakewright.engineer.teachers import read_token_answers
from lakewright.experiments.environments.lake import design_of, lake_space
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    EngineerTraining,
    read_record,
    write_record,
)
from lakewright.experiments.loop.records.token_budget import count_stage_tokens
from lakewright.experiments.loop.redesign import engineer_training
from lakewright.experiments.loop.redesign.engineer_training import _make_score, train_engineer
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from tests.support.models.tiny_policy import tiny_run
from tests.support.samples.tiny_runs import decision, finished, redesign_again, state


def with_reward(**changes: float) -> RunSettings:
    """The settings of such a run with another reward of proposals."""
    settings = tiny_run(teacher="self_trained")
    reward = msgspec.structs.replace(settings.engineer.reward, **changes)
    return msgspec.structs.replace(settings, engineer=msgspec.structs.replace(settings.engineer, reward=reward))


def test_a_group_of_proposals_is_rewarded_and_trained_on():
    run = finished("self_trained")
    training_record, asked = read_record(run.stage(0).engineer, EngineerTraining), decision(run, 0).proposal
    training = tiny_run().engineer
    assert len(training_record.groups) == training.training.rounds + 1, (
        "a group for each round, and one of the trained engineer"
    )
    for group in training_record.groups:
        assert len(group.answers) == len(group.earned) == training.group
        assert {"reward", "refused", "distinct", "siblings"} <= group.figures.keys()
        assert 0 < group.figures["distinct"] <= 1
    assert "loss" not in training_record.groups[-1].figures, "the trained engineer's answers are not trained on"
    assert " ".join(training_record.prompt) == asked.prompt
    assert asked.delta in [read_tokens(answer, lake_space()) for answer in training_record.groups[0].answers]
    assert count_stage_tokens(run.stage(0)).engineer == sum(
        len(answer) for group in training_record.groups for answer in group.answers
    )


def test_the_answers_of_the_trained_engineer_are_tried_too():
    stage = finished("self_trained").stage(0)
    training_record = read_record(stage.engineer, EngineerTraining)
    answers = [*training_record.groups[0].answers, *training_record.groups[-1].answers]
    assert [answer for answer, _ in training_record.list_proposed(lake_space())] == answers
    found = training_record.list_deltas(lake_space())
    assert found == [delta for delta in read_token_answers(answers, lake_space()) if isinstance(delta, Delta)]
    assert found, "no answer makes a delta"


def test_the_next_stage_continues_from_the_trained_engineer():
    stage = finished("self_trained").stage(0)
    assert stage.onward == stage.engineer_checkpoint
    training_record = read_record(stage.engineer, EngineerTraining)
    before, after = (load_file(folder / "model.safetensors") for folder in (stage.checkpoint, stage.onward))
    moved = any(not before[name].equal(after[name]) for name in before)
    assert moved == any("loss" in group.figures for group in training_record.groups)


def test_the_last_stage_trains_no_engineer_as_none_is_asked_afterwards():
    stage = finished("self_trained").stage(1)
    assert not stage.engineer.exists()
    assert stage.onward == stage.checkpoint


def test_a_training_that_was_cut_off_ends_the_same(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self_trained").folder, run.folder)
    before = {name: training_record for name, (training_record, _) in state(run.stage(0).engineer_checkpoint).items()}
    record = run.stage(0).engineer.read_bytes()
    shutil.rmtree(run.stage(0).engineer_checkpoint)
    train_engineer(make_trainee(tiny_run(teacher="self_trained")), run, 0)
    assert {
        name: training_record for name, (training_record, _) in state(run.stage(0).engineer_checkpoint).items()
    } == before
    assert run.stage(0).engineer.read_bytes() == record


def test_proposals_may_be_rewarded_with_diminishing_returns(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self_trained").folder, run.folder)
    stage = run.stage(0)
    known = read_record(stage.difficulty, Forecast)
    model = msgspec.structs.replace(known.model, objective="regret")  # no plan of the tiny policy is valid
    write_record(stage.difficulty, msgspec.structs.replace(known, model=model))
    linear, diminishing = (_make_score(make_trainee(with_reward(power=power)), stage) for power in (0.0, 3.0))
    design = stage.design()
    assert linear(design) == diminishing(design) == 0
    one_size = design_of(EnvConfig({3: SizeConfig(0.99, 0.2, 0.5), 5: SizeConfig(0.01, 0.25, 0.5)}))
    assert diminishing(one_size) < linear(one_size), "all data on one size earn less"


def test_a_measured_gain_counts_where_it_is_asked_for(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self_trained").folder, run.folder)
    train_engineer(make_trainee(with_reward(gain=1.0)), run, 1)
    assert run.stage(1).engineer.exists()


def test_what_several_stages_gained_is_credited_to_the_proposal_that_they_began_with(monkeypatch):
    rates = [0.5, 0.6, 0.6, 0.62, 0.74]
    monkeypatch.setattr(engineer_training, "_measure_valid", lambda folder, stage: rates[stage])
    monkeypatch.setattr(engineer_training, "_credit_answer", lambda *given: (given[2], given[-1]))
    trainee = make_trainee(with_reward(gain=1.0, returns=2.0, stages=2))
    credited = engineer_training._measure_gains(trainee, RunFolder(Path("run")), 4, None)
    assert dict(credited) == {3: pytest.approx(10 * 0.12), 2: pytest.approx(20 * (0.14 - 2 * 0.06))}


def _decide_again(settings: RunSettings, run: RunFolder) -> Next:
    redesign_again(settings, run, 0, proposal=False)
    return run.stage(0).read_next()


@pytest.mark.parametrize("usable", [True, False])
def test_without_a_trial_the_next_stage_may_be_drawn_from_what_the_trained_engineer_answers(tmp_path, usable):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self_trained").folder, run.folder)
    stage, settings = run.stage(0), tiny_run(teacher="self_trained")
    training = read_record(stage.engineer, EngineerTraining)
    answer = ["<size_3>", "<hole+1>", "<because_too_easy>", "<end>"] if usable else ["<unknown>"]
    last = msgspec.structs.replace(training.groups[-1], answers=[["<unknown>"], answer])
    write_record(stage.engineer, msgspec.structs.replace(training, groups=[*training.groups[:-1], last]))
    again = msgspec.structs.replace(settings, engineer=msgspec.structs.replace(settings.engineer, asked_again=True))
    before, after = _decide_again(settings, run), _decide_again(again, run)
    assert before.design == read_record(stage.proposal, DecisionRecord).verdict.design
    if usable:
        assert after.design != before.design
        assert after.reasons[0].startswith("asked again after its training: ")
    else:
        assert after.design == before.design
        assert after.reasons == ["no answer after its training can be used", *before.reasons]
