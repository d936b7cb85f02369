"""Answers sampled by vLLM: TRL's own code around a made-up engine, as vLLM needs a GPU."""

import inspect
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trl.generation import vllm_generation
from trl.generation.vllm_generation import VLLMGeneration

from policy.codecs.tokens import ID, encode_answer, encode_prompt
from policy.training import RewardSettings
from policy.training.hardware import sampled_by_vllm
from policy.training.rollouts import answer_groups
from tests.support.models.tiny_policy import HORIZON, tasks, tokenizer

COPIES = 3
ASKED = list(tasks()[:4])
PROMPTS = [encode_prompt(task.board) for task in ASKED]


class Engine:
    """vLLM as `LLM` in this process, and as the client of a server: each copy of an answer is recognised by its scores.

    The first copy of a prompt is the certified plan, the others end at once. A token of copy c at place t of prompt p
    has the log-probability -(100 p + 10 c + t).
    """

    def __init__(self) -> None:
        self.seen: list[int] = []

    def generate(self, prompts: list, **how: Any) -> Any:
        """One answer a prompt in this process; by a server `n` of them, in one flat list."""
        if "use_tqdm" in how:
            return [self._request(prompt["prompt_token_ids"]) for prompt in prompts]
        made = [self._made(prompt) for prompt in prompts for _ in range(how["n"])]
        answers, scores = zip(*made, strict=True)
        sampled = {"prompt_ids": prompts, "completion_ids": list(answers)}
        return sampled | {"logprobs": [[[score] for score in row] for row in scores], "logprob_token_ids": None}

    def _request(self, prompt: list[int]) -> SimpleNamespace:
        answer, scores = self._made(prompt)
        scored = [{token: SimpleNamespace(rank=1, logprob=score)} for token, score in zip(answer, scores, strict=True)]
        return SimpleNamespace(prompt_token_ids=prompt, outputs=[SimpleNamespace(token_ids=answer, logprobs=scored)])

    def _made(self, prompt: list[int]) -> tuple[list[int], list[float]]:
        number = PROMPTS.index(prompt)
        copy = self.seen.count(number)
        self.seen.append(number)
        answer = expected_answer(number, copy)
        return answer, [-(100.0 * number + 10 * copy + place) for place in range(len(answer))]


def expected_answer(number: int, copy: int) -> list[int]:
    return [ID["<eos>"]] if copy else encode_answer(ASKED[number].board, ASKED[number].moves)


@pytest.fixture(params=["colocate", "server"])
def trainer(request, monkeypatch) -> SimpleNamespace:
    """A trainer with TRL's `VLLMGeneration`, made without starting the vLLM that is not there."""
    monkeypatch.setattr(vllm_generation, "SamplingParams", SimpleNamespace, raising=False)
    signature = inspect.signature(VLLMGeneration.__init__)
    defaults = {name: given.default for name, given in signature.parameters.items() if name != "self"}
    generation = object.__new__(VLLMGeneration)
    accelerator = SimpleNamespace(is_main_process=True, process_index=0)
    engine = Engine()
    has = {
        "mode": request.param,
        "accelerator": accelerator,
        "model": torch.nn.Identity(),
        "llm": engine,
        "vllm_client": engine,
    }
    vars(generation).update({**defaults, **has, "generation_kwargs": {}})
    return SimpleNamespace(vllm_generation=generation, use_vllm=True)


def test_answers_and_log_probabilities_come_back_in_the_order_of_the_prompts(trainer):
    made = sampled_by_vllm(trainer, PROMPTS, COPIES)
    places = [(number, copy) for number in range(len(PROMPTS)) for copy in range(COPIES)]
    assert made.answers == [expected_answer(*place) for place in places]
    for (number, copy), answer, scores in zip(places, made.answers, made.log_probs, strict=True):
        assert scores == [-(100.0 * number + 10 * copy + at) for at in range(len(answer))], f"{number}, copy {copy}"


def test_groups_sampled_by_vllm_are_judged_each_for_its_board(trainer):
    groups = answer_groups(
        None, tokenizer(), ASKED, COPIES, RewardSettings(), horizon=HORIZON, temperature=1.0, trainer=trainer
    )
    for number, group in enumerate(groups):
        assert group.prompt == PROMPTS[number]
        assert group.rewards[0] == pytest.approx(1), f"the certified plan of board {number}"
        assert (group.rewards[1:] < 0.5).all(), f"nobody moves on board {number}"


def test_trl_is_called_as_the_installed_version_expects():
    asked = inspect.signature(VLLMGeneration.generate).bind(None, prompts=[], images=None, num_generations=1)
    assert list(asked.arguments) == ["self", "prompts", "images", "num_generations"]
    doc = inspect.getdoc(VLLMGeneration.generate) or ""
    assert "Tuple of (prompt_ids, completion_ids, logprobs, logprob_token_ids)" in doc, "TRL answers otherwise now"
