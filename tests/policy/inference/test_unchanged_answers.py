"""Answers of tiny models as they were before decoding was made for GPUs, in each precision.

They are in `unchanged_answers.json`, which `python -m tests.policy.inference.test_unchanged_answers` writes.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from lakewright.policy.inference import SchemaSettings, answer_in_json, sample
from lakewright.policy.models import compute_in_bfloat16, load_model
from tests.policy.inference.test_json_schema import SCHEMA
from tests.policy.inference.test_sampling import LENGTH, MODELS, PROMPTS, decided
from tests.support.models.byte_language_model import text_checkpoint
from tests.support.models.tiny_policy import tokenizer

RECORDED = Path(__file__).with_name("unchanged_answers.json")


def in_bfloat16(model: PreTrainedModel) -> PreTrainedModel:
    return model.to(torch.bfloat16)


def computing_in_bfloat16(model: PreTrainedModel) -> PreTrainedModel:
    compute_in_bfloat16(model)
    return model


PRECISIONS: dict[str, Callable[[PreTrainedModel], PreTrainedModel]] = {
    "float32": lambda model: model,
    "bfloat16": in_bfloat16,
    "computed in bfloat16": computing_in_bfloat16,
}


def answer_prompts(kind: str, precision: str) -> dict[str, Any]:
    """Greedy and sampled answers of one model."""
    model = PRECISIONS[precision](decided(MODELS[kind]()))
    found: dict[str, Any] = {}
    for name, copies, temperature in (("greedy", 1, 0.0), ("greedy groups", 3, 0.0), ("sampled", 3, 3.0)):
        torch.manual_seed(11)
        how = {"copies": copies, "temperature": temperature, "max_new_tokens": LENGTH, "batch": 24}
        found[name] = sample(model, tokenizer(), PROMPTS[:12], **how).answers
    return found


def answer_question(temperature: float) -> str:
    """What the model of bytes answers under a schema, after some free tokens."""
    model, words = load_model(text_checkpoint(), device="cpu")
    how = SchemaSettings(reasoning=12, answer=60, temperature=temperature)
    return answer_in_json(model, words, [{"role": "user", "content": "Which?"}], SCHEMA, how, 5)[0]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", MODELS)
def test_answers_are_those_of_before(kind, precision):
    assert answer_prompts(kind, precision) == json.loads(RECORDED.read_text())[f"{kind}, {precision}"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_engineers_answer_is_that_of_before(temperature):
    assert answer_question(temperature) == json.loads(RECORDED.read_text())[f"engineer at {temperature}"]


if __name__ == "__main__":
    recorded: dict[str, Any] = {f"{kind}, {how}": answer_prompts(kind, how) for kind in MODELS for how in PRECISIONS}
    recorded |= {f"engineer at {temperature}": answer_question(temperature) for temperature in (0.0, 1.0)}
    RECORDED.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")
