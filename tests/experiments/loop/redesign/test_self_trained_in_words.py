"""The engineer that is trained on its own proposals, where it is a language model."""

import functools
import shutil

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from lakewright.engineer.design import Delta
from lakewright.engineer.teachers import parse_reply
from lakewright.experiments.environments.lake import lake_space
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import EngineerTraining, read_record
from lakewright.experiments.loop.records.token_budget import count_stage_tokens
from lakewright.experiments.loop.redesign.engineer_training import train_engineer
from lakewright.experiments.loop.settings.run_settings import QuestionSettings, RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.codecs import TextSettings
from lakewright.policy.models import load_model
from lakewright.policy.training import AnswerTraining, GrpoSettings, HostSettings, LoraSettings, WarmupSettings
from tests.support.boards.generated_rows import SMALL
from tests.support.models.byte_language_model import text_checkpoint
from tests.support.models.tiny_policy import tiny_run
from tests.support.processes.commands import elsewhere
from tests.support.samples.tiny_runs import decision, redesign_again, run_loop, state

ENGINEER = QuestionSettings(answer=900, group=3, training=AnswerTraining(rate=1e-2, rounds=2))


def in_words(host: HostSettings | None = None, **changes) -> RunSettings:
    """The settings of a run whose policy speaks bytes."""
    words = {"codec": "text", "text": TextSettings(max_tokens=8), "start": str(text_checkpoint())}
    grpo = GrpoSettings(steps=1, prompts=2, group=2, host=host or HostSettings())
    steps = {"warmup": WarmupSettings(steps=0), "grpo": grpo}
    return tiny_run(SMALL, **words, **steps, **{"teacher": "self_trained", "engineer": ENGINEER, "seed": 1, **changes})


@functools.cache
def finished() -> RunFolder:
    """Such a run, finished, to be looked at and copied."""
    run = RunFolder(elsewhere() / "runs" / "self_trained in words")
    run_loop(in_words(), run)
    return run


@pytest.mark.deep
def test_a_group_of_answers_in_json_is_rewarded_and_trained_on():
    run = finished()
    stage, asked = run.stage(0), decision(run, 0).proposal
    training = read_record(stage.engineer, EngineerTraining)
    assert [len(group.answers) for group in training.groups] == [3, 3, 3], "two rounds, and what they led to"
    assert (training.prompt, training.groups[0].answers) == (asked.spoken.prompt, asked.spoken.answers)
    assert "\n\n".join(training.groups[0].said) == asked.answer
    for group in training.groups:
        assert [set(parse_reply(text, lake_space())[0].edits) for text in group.said] == [set(SMALL.sizes)] * 3, (
            group.said
        )
        assert group.read_deltas(lake_space()) == [parse_reply(text, lake_space())[0] for text in group.said]
    assert any("loss" in group.figures for group in training.groups[:-1]), "no group was trained on"
    answers = [answer for group in training.groups for answer in group.answers]
    assert count_stage_tokens(stage).engineer == sum(map(len, answers)) > 900


def test_the_tokens_of_an_answer_are_those_that_were_sampled():
    training = read_record(finished().stage(0).engineer, EngineerTraining)
    _, tokenizer = load_model(finished().stage(0).checkpoint)
    for group in training.groups:
        for tokens, text in zip(group.answers, group.said, strict=True):
            assert tokenizer.convert_tokens_to_string(tokens) == text


def test_answers_before_and_after_the_training_are_tried():
    stage = finished().stage(0)
    groups = read_record(stage.engineer, EngineerTraining).groups
    expected = [delta for group in (groups[0], groups[-1]) for delta in group.read_deltas(lake_space())]
    assert read_record(stage.engineer, EngineerTraining).list_deltas(lake_space()) == expected
    assert all(isinstance(delta, Delta) for delta in expected)


def test_the_next_stage_continues_from_the_trained_weights():
    stage = finished().stage(0)
    assert stage.onward == stage.engineer_checkpoint
    before, after = (load_file(folder / "model.safetensors") for folder in (stage.checkpoint, stage.onward))
    assert any(not before[name].equal(after[name]) for name in before)
    assert finished().stage(1).done.exists()


@pytest.mark.deep
def test_a_training_in_words_that_was_cut_off_ends_the_same(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished().folder, run.folder)
    stage = run.stage(0)
    before, record = state(stage.engineer_checkpoint), stage.engineer.read_bytes()
    shutil.rmtree(stage.engineer_checkpoint)
    train_engineer(make_trainee(in_words()), run, 0)
    after = state(stage.engineer_checkpoint)
    assert {name: data for name, (data, _) in after.items()} == {name: data for name, (data, _) in before.items()}
    assert stage.engineer.read_bytes() == record


@pytest.mark.deep
def test_activations_that_are_computed_again_change_nothing(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished().folder, run.folder)
    stage = run.stage(0)
    before = load_file(stage.engineer_checkpoint / "model.safetensors")
    shutil.rmtree(stage.engineer_checkpoint)
    train_engineer(make_trainee(in_words(HostSettings(checkpointing=True))), run, 0)
    after = load_file(stage.engineer_checkpoint / "model.safetensors")
    assert all(torch.allclose(before[name], after[name], atol=1e-5) for name in before)


@pytest.mark.deep
def test_with_an_adapter_the_engineer_is_trained_in_it_and_it_is_merged(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished().folder, run.folder)
    stage = run.stage(0)
    shutil.rmtree(stage.engineer_checkpoint)
    stage.engineer.unlink()
    train_engineer(make_trainee(in_words(HostSettings(lora=LoraSettings(rank=2, alpha=4)))), run, 0)
    before, after = (load_file(folder / "model.safetensors") for folder in (stage.checkpoint, stage.onward))
    assert before.keys() == after.keys(), "the adapter is merged"
    moved = {name for name in before if not before[name].equal(after[name])}
    assert moved
    assert not any("embed" in name or "norm" in name for name in moved), "only linear layers have adapters"


def test_without_a_trial_the_next_stage_may_be_drawn_from_what_it_answers_after_its_training(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished().folder, run.folder)
    redesign_again(in_words(engineer=msgspec.structs.replace(ENGINEER, asked_again=True)), run, 0, proposal=False)
    assert run.stage(0).read_next().reasons[0].startswith("asked again after its training: ")


@pytest.mark.deep
def test_an_answer_that_is_cut_off_is_refused_and_earns_the_least(tmp_path):
    run = RunFolder(tmp_path / "run")
    run_loop(in_words(engineer=msgspec.structs.replace(ENGINEER, answer=5)), run)
    asked, training = decision(run, 0).proposal, read_record(run.stage(0).engineer, EngineerTraining)
    assert asked.delta is None
    assert asked.error.startswith("answer")
    assert [part.reward for part in training.groups[0].earned] == [-1.0] * 3
    assert run.stage(1).done.exists(), "the run goes on with the boards that it had"


def test_changes_of_the_same_size_match_those_of_an_engineer_in_words(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished().folder, run.folder)
    settings = in_words(teacher="matched_random", teacher_options={"match": "self_trained"})
    found = redesign_again(settings, run, 0)
    assert found.proposal.delta.edits.keys() == SMALL.sizes.keys()
