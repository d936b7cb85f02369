"""Answers of a checkpoint by the real vLLM and by this package: run by the Python of an environment with vLLM.

python -m tests.support.tools.vllm_answers CHECKPOINT FILE writes to FILE what differs between the two, the parameters
that vLLM knows, and what it says to a prompt that is too long.
"""

import dataclasses
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import torch
from vllm import LLM, SamplingParams
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import StructuredOutputsParams

from lakewright.core_jax.errors import InputError
from lakewright.policy.inference import AnswerWriter, ModelAnswers, Samples, start_vllm
from lakewright.policy.models import load_model

CLOSE = 1e-4  # between two log-probabilities in full precision
TEXTS = ("5x5 H11,23\n0: right from 20\n", "what is it? " * 4)
SCHEMA = {
    "type": "object",
    "properties": {"n": {"enum": [-1, 0, 12]}, "name": {"enum": ["a", "bb"]}},
    "required": ["n", "name"],
    "additionalProperties": False,
}


def list_parameters() -> dict[str, list[str]]:
    """The names that vLLM knows."""
    calls = {"LLM": LLM.__init__, "generate": LLM.generate, "SamplingParams": SamplingParams}
    found = {name: list(inspect.signature(call).parameters) for name, call in calls.items()}
    kinds = (EngineArgs, StructuredOutputsParams)
    return found | {kind.__name__: [field.name for field in dataclasses.fields(kind)] for kind in kinds}


def compare(own: ModelAnswers, other: AnswerWriter) -> dict[str, Any]:
    """What differs, by name."""
    prompts = [own.tokenizer.encode(text) for text in TEXTS]
    greedy: dict[str, Any] = {"max_new_tokens": 24, "temperature": 0.0}
    pairs = {
        "greedy": [one.sample(prompts, copies=2, **greedy).answers for one in (own, other)],
        "json": [one.write(prompts[0], schema=SCHEMA, **greedy) for one in (own, other)],
        "stopped": [one.write(prompts[0], stop=lambda said: len(said) == 7, **greedy) for one in (own, other)],
        "seeds": [draw(other, prompts, 0).answers, draw(other, prompts, 0).answers],
    }
    different = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    weights = [one.weigh(prompts[0], [5, 9, 11]) for one in (own, other)]
    sampled = draw(other, prompts, 1)
    if len({tuple(answer) for answer in sampled.answers}) < len(sampled.answers):
        different["copies"] = sampled.answers
    scores = [score for row in sampled.log_probs for score in row]
    asked = [prompt for prompt in prompts for _ in range(4)]
    wanted = [score for pair in zip(asked, sampled.answers, strict=True) for score in weigh(own, *pair)]
    for name, pair in {"weights": weights, "scores": [scores, wanted]}.items():
        if not torch.allclose(*map(torch.tensor, pair), atol=CLOSE):
            different[name] = pair
    schemas = other.sample(prompts[:1], copies=5, max_new_tokens=60, temperature=1.0, schema=SCHEMA, scored=False)
    try:
        [json.loads(own.tokenizer.decode(answer, skip_special_tokens=True)) for answer in schemas.answers]
    except ValueError as error:
        different["schemas"] = str(error)
    return different


def draw(other: AnswerWriter, prompts: list[list[int]], seed: int) -> Samples:
    """Four answers to each prompt."""
    torch.manual_seed(seed)
    return other.sample(prompts, copies=4, max_new_tokens=24, temperature=0.8)


def weigh(own: ModelAnswers, prompt: list[int], answer: list[int]) -> list[float]:
    """The log-probabilities of an answer by transformers, at the temperature of `draw`."""
    with torch.inference_mode():
        logits = own.model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return (logits / 0.8).log_softmax(-1).gather(1, torch.tensor(answer)[:, None])[:, 0].tolist()


def main(checkpoint: str, file: str) -> None:
    """Compares and writes."""
    own, refused = ModelAnswers(*load_model(checkpoint, device="cpu")), ""
    with start_vllm(checkpoint, own.model, own.tokenizer, longest=2048, share=0.3) as other:
        different = compare(own, other)
        try:
            other.sample([[5] * 3000], max_new_tokens=4, temperature=0.0)
        except InputError as error:
            refused = str(error)
    found = {"differences": different, "parameters": list_parameters(), "refused": refused}
    Path(file).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
