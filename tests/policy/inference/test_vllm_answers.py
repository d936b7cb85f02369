"""vLLM behind the interface of all decoders: a made-up engine with its signatures; in the deep tests the real vLLM."""

import json
import os
from pathlib import Path

import pytest
import torch

from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.policy.inference import (
    ModelAnswers,
    PrefixCache,
    SchemaSettings,
    answer_in_json,
    sample_json_ids,
    start_vllm,
)
from lakewright.policy.models import load_model
from tests.policy.inference.test_json_schema import NAMES, SCHEMA, asked
from tests.policy.training.test_vllm import ON_CPU, model_for_vllm, real_vllm
from tests.support.models import made_up_vllm
from tests.support.models.byte_language_model import text_checkpoint
from tests.support.refusals import refused
from tests.support.tools.own_environments import run_there

QUESTION = [{"role": "user", "content": "Which?"}]
PROMPTS = [list(b"12+34="), list(b"5+7="), list(b"1+1=")]


@pytest.fixture(scope="module")
def own():
    return ModelAnswers(*load_model(text_checkpoint(), device="cpu"))


@pytest.fixture
def vllm(own, monkeypatch):
    made_up_vllm.install(monkeypatch)
    with start_vllm(text_checkpoint(), own.model, own.tokenizer, longest=900) as writer:
        yield writer
    assert not made_up_vllm.LLM.last.open, "the engine ends with the block"


def test_greedy_answers_and_their_log_probabilities_are_those_of_the_own_decoder(own, vllm):
    progress: list[int] = []
    how = {"copies": 2, "max_new_tokens": 12, "temperature": 0.0}
    found, expected = vllm.sample(PROMPTS, on_progress=progress.append, **how), own.sample(PROMPTS, **how)
    assert found.answers == expected.answers
    for scores, wanted in zip(found.log_probs, expected.log_probs, strict=True):
        assert scores == pytest.approx(wanted, abs=1e-4)
    assert sum(progress) == len(PROMPTS)


def test_samples_depend_on_torchs_generator_alone_and_no_two_requests_share_a_seed(vllm):
    def draw(seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        return vllm.sample(PROMPTS, copies=3, max_new_tokens=8, temperature=1.0, scored=False).answers

    assert draw(0) == draw(0) != draw(1)
    seeds = [how.seed for how in made_up_vllm.LLM.last.seen[:3]]
    assert seeds == [seeds[0], seeds[0] + 3, seeds[0] + 6], "three answers to each prompt"


def test_answers_to_an_engineers_question_are_json_of_the_schema(own, vllm):
    how = SchemaSettings(reasoning=5, answer=60, temperature=0.0)
    found = answer_in_json(vllm, own.tokenizer, QUESTION, SCHEMA, how, 0)
    assert found == answer_in_json(own, own.tokenizer, QUESTION, SCHEMA, how, 0)
    how = SchemaSettings(reasoning=0, answer=60, temperature=1.0)
    answers = sample_json_ids(vllm, own.tokenizer, asked(own.tokenizer), SCHEMA, how, 4, seed=0)
    assert {json.loads(own.tokenizer.decode(answer))["name"] for answer in answers} <= set(NAMES)


def test_a_reader_of_evidence_weighs_choices_and_writes_as_with_the_own_decoder(own, vllm):
    by_vllm, expected = PrefixCache(vllm, own.tokenizer), PrefixCache(own, own.tokenizer)
    choices = ("raise", "lower", "keep", "lower it")
    assert by_vllm.weigh(QUESTION, "I would ", choices) == pytest.approx(
        expected.weigh(QUESTION, "I would ", choices), abs=1e-4
    )
    assert by_vllm.write(QUESTION, SCHEMA) == expected.write(QUESTION, SCHEMA)


def test_an_answer_ends_where_a_thought_does(own, vllm):
    how = {"max_new_tokens": 12, "temperature": 0.0}
    said = own.write(PROMPTS[0], **how)
    stop = {"stop": lambda said: len(said) == 4}
    assert vllm.write(PROMPTS[0], **how) == said
    assert vllm.write(PROMPTS[0], **how, **stop) == own.write(PROMPTS[0], **how, **stop) == said[:4]


def test_vllm_gets_the_precision_the_room_and_the_free_memory(own, vllm):
    given = made_up_vllm.LLM.last.given
    assert given["dtype"] == "float32"
    assert given["load_format"] == "safetensors", "nothing else is read"
    assert given["max_model_len"] == 900
    assert given["share"] == pytest.approx(0.9 * 40 / 80)


def test_what_vllm_refuses_is_a_line_with_the_remedy(vllm):
    with refused("vLLM", "length 1000", "900", "text.decoder=own"):
        vllm.sample([[65] * 1000], max_new_tokens=4, temperature=0.0)


def test_a_vllm_that_does_not_start_is_a_line_with_the_remedy(own, monkeypatch):
    made_up_vllm.install(monkeypatch)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Engine core initialization failed.\nSee root cause above.")

    monkeypatch.setattr(made_up_vllm.LLM, "__init__", fail)
    with refused("vLLM does not start", "initialization failed. See root", "text.decoder=own"):
        start_vllm(text_checkpoint(), own.model, own.tokenizer)


def test_without_vllm_or_a_gpu_a_line_says_so(own, monkeypatch):
    with refused("text.decoder", "not installed", "lakewright[vllm]", "own"):
        start_vllm(text_checkpoint(), own.model, own.tokenizer)
    made_up_vllm.install(monkeypatch)
    monkeypatch.setattr("lakewright.policy.inference.vllm_answers.resolve_device", lambda device: "cpu")
    with refused("text.decoder is vllm", "no CUDA device", "own"):
        start_vllm(text_checkpoint(), own.model, own.tokenizer)


def test_a_command_lets_vllm_write_nothing_to_the_standard_output_unless_it_is_asked_to(monkeypatch):
    monkeypatch.setattr(os, "environ", {"VLLM_LOGGING_LEVEL": "DEBUG"})
    prepare_libraries()
    assert os.environ["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
    assert os.environ["VLLM_LOGGING_LEVEL"] == "DEBUG"


@pytest.mark.deep
def test_the_real_vllm_answers_as_the_own_decoder(tmp_path):
    model, found = model_for_vllm(tmp_path / "model"), tmp_path / "found.json"
    environment = ON_CPU | {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    run_there(real_vllm(), "-m", "tests.support.tools.vllm_answers", model, found, **environment)
    seen = json.loads(Path(found).read_text())
    assert seen["differences"] == {}, "between the two decoders"
    known = seen["parameters"]
    assert set(made_up_vllm.SamplingParams.__struct_fields__) <= set(known["SamplingParams"])
    assert {"dtype", "gpu_memory_utilization", "structured_outputs_config"} <= set(known["LLM"])
    assert set(made_up_vllm.ENGINE) <= set(known["EngineArgs"])
    assert {"prompts", "sampling_params", "use_tqdm"} <= set(known["generate"])
    assert "json" in known["StructuredOutputsParams"]
    assert "longer" in seen["refused"] or "maximum" in seen["refused"], seen["refused"]
