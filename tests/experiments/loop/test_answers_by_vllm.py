"""text.decoder=vllm in a run: validation, rollouts and the engineer's answers come from vLLM, here a made-up engine."""

from pathlib import Path
from typing import Any

import msgspec

from lakewright.experiments.boards.evaluation.answerers import ModelAnswerer, WantedAnswer
from lakewright.experiments.environments.lake import problem_of
from lakewright.experiments.loop.host.estimate import estimate_of
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.redesign.teacher_models import make_run_tools
from lakewright.experiments.loop.settings.run_settings import RunSettings, load_settings
from lakewright.experiments.loop.training.stage_validation import validate_stage
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.codecs import TextSettings
from tests.experiments.loop.test_language_training import WORDS, text_run
from tests.support.boards.generated_rows import rows
from tests.support.models import made_up_vllm
from tests.support.models.small_language_model import language_checkpoint
from tests.support.refusals import refused

PROBLEMS = list(map(problem_of, rows()[:4]))
BY_VLLM = TextSettings(max_tokens=12, decoder="vllm")


def by_vllm(**changes: Any) -> RunSettings:
    """A run of the small language model in vLLM."""
    return msgspec.structs.replace(text_run(), **{"text": BY_VLLM, **changes})


def validate(folder: Path, settings: RunSettings) -> Validation:
    """The record of a validation of the small language model."""
    stage = RunFolder(folder).warmup
    stage.folder.mkdir(parents=True)
    stage.checkpoint.symlink_to(language_checkpoint())
    validate_stage(make_trainee(settings), stage, PROBLEMS)
    return read_record(stage.validation, Validation)


def test_a_validation_by_vllm_is_the_same_and_its_engine_ends(tmp_path, monkeypatch):
    made_up_vllm.install(monkeypatch)
    assert validate(tmp_path / "vllm", by_vllm()) == validate(tmp_path / "own", by_vllm(text=WORDS))
    assert len(made_up_vllm.LLM.last.seen) == len(PROBLEMS)
    assert not made_up_vllm.LLM.last.open


def test_rollouts_of_a_trial_come_from_vllm_by_their_seed(monkeypatch):
    made_up_vllm.install(monkeypatch)
    trainee = make_trainee(by_vllm())
    progress: list[int] = []
    found = [trainee.roll_out(language_checkpoint(), PROBLEMS, 3, seed, progress.append)[0] for seed in (0, 0)]
    assert found[0] == found[1]
    assert [group.completions for group in found[0]] == [3] * len(PROBLEMS)
    assert sum(progress) == 2 * 3 * len(PROBLEMS)


def test_the_engineer_answers_by_vllm(tmp_path, monkeypatch):
    made_up_vllm.install(monkeypatch)
    settings, folder = by_vllm(teacher="self"), RunFolder(tmp_path)
    folder.warmup.folder.mkdir(parents=True)
    folder.warmup.checkpoint.symlink_to(language_checkpoint())
    tools = make_run_tools(settings, folder, folder.warmup, recorded=False)
    number = {"properties": {"n": {"enum": [1, 22]}}, "required": ["n"], "additionalProperties": False}
    schema = {"type": "object", **number}
    assert tools.ask
    reply = tools.ask([{"role": "user", "content": "Which?"}], schema, 3)
    assert reply.text.rpartition("ANSWER:\n")[2] in ('{"n":1}', '{"n":22}')
    assert made_up_vllm.LLM.last.seen[-1].structured_outputs.json == schema


def test_a_small_model_is_not_decoded_by_vllm():
    with refused("text.decoder", "vllm", "tokens", "leave it out"):
        make_trainee(by_vllm(text=TextSettings(decoder="vllm"), codec="tokens", start=""))


def test_the_memory_of_a_validation_by_vllm_is_its_weights_and_one_answer_beside_the_model():
    estimates = [estimate_of(load_settings("qwen3-4b-adapter", words)) for words in ([], ["text.decoder=vllm"])]
    both = [{phase.name: phase.items for phase in found.phases}["validation"] for found in estimates]
    assert both[0]["weights"] == both[1]["weights"]
    assert both[1]["vLLM"] > both[1]["weights"]
    assert sum(both[1].values()) < sum(both[0].values())


def test_an_evaluation_by_vllm_has_the_same_answers_and_another_identity(monkeypatch):
    made_up_vllm.install(monkeypatch)
    asked = [WantedAnswer(row, "Which way?", 0, 0.0) for row in rows()[:3]]
    found = {
        decoder: ModelAnswerer(str(language_checkpoint()), TextSettings(max_tokens=7, decoder=decoder), "cpu", None, 0)
        for decoder in ("own", "vllm")
    }
    assert list(found["vllm"].answers(asked)) == list(found["own"].answers(asked))
    assert found["vllm"].identity == {**found["own"].identity, "decoder": "vllm"}
    with refused("--decoder is vllm", "--batch"):
        ModelAnswerer(str(language_checkpoint()), BY_VLLM, "cpu", 8, 0)
