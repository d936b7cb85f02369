"""vLLM 0.30 by its own signatures, around this package's decoder; a deep test compares them with the real vLLM."""

import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from tqdm import tqdm

from lakewright.policy.inference import ModelAnswers
from lakewright.policy.models import load_model

ENGINE = ("load_format", "max_model_len", "logprobs_mode", "max_logprobs")  # further arguments of an `LLM`


class StructuredOutputsParams(msgspec.Struct, forbid_unknown_fields=True):
    """What an answer must fit."""

    json: str | dict | None = None


class SamplingParams(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that are given, and vLLM's checks of them."""

    n: int = 1
    temperature: float = 1.0
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    detokenize: bool = True
    structured_outputs: StructuredOutputsParams | None = None

    def __post_init__(self) -> None:
        if self.n > 1 and not self.temperature:
            raise ValueError(f"n must be 1 when using greedy sampling, got {self.n}.")
        if not self.max_tokens:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}.")
        if self.logprob_token_ids is not None and self.logprobs != len(self.logprob_token_ids):
            raise ValueError("When both logprobs and logprob_token_ids are set, logprobs must equal len")


class LLM:
    """An engine. `seen`: the parameters of all requests; `given`: its arguments."""

    seen: list[SamplingParams]
    given: dict[str, Any]
    last: "LLM"

    def __init__(
        self,
        model: str,
        *,
        dtype: str = "auto",
        seed: int = 0,
        gpu_memory_utilization: float = 0.92,
        structured_outputs_config: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        assert set(kwargs) <= {*ENGINE}, kwargs
        LLM.last = self
        self.given = {"dtype": dtype, "share": gpu_memory_utilization, **kwargs}
        self.longest, self.seen, self.open = kwargs["max_model_len"], [], True
        self._writer = ModelAnswers(*load_model(model, device="cpu"))
        core = SimpleNamespace(shutdown=lambda: vars(self).update(open=False))
        self.llm_engine = SimpleNamespace(engine_core=core)

    def generate(
        self,
        prompts: Sequence[dict[str, list[int]]],
        sampling_params: Sequence[SamplingParams],
        *,
        use_tqdm: bool | Callable[..., tqdm] = True,
    ) -> list[Any]:
        """One request after another; the bar is used as vLLM uses it."""
        assert callable(use_tqdm)
        asked = list(use_tqdm(prompts, desc="Rendering prompts"))
        bar = use_tqdm(total=len(prompts), desc="Processed prompts", dynamic_ncols=True, postfix="est. speed: 0")
        done = []
        for prompt, how in zip(asked, sampling_params, strict=True):
            self.seen.append(how)
            done.append(SimpleNamespace(outputs=self._answer(prompt["prompt_token_ids"], how)))
            assert bar.format_dict["elapsed"] > 0, "the speed is a quotient"
            bar.postfix = "est. speed: 1"
            bar.update(how.n)
        bar.close()
        return done

    def _answer(self, prompt: list[int], how: SamplingParams) -> list[Any]:
        if len(prompt) > self.longest:
            raise ValueError(f"The decoder prompt (length {len(prompt)}) is longer than the maximum of {self.longest}")
        if how.logprob_token_ids is not None:
            weights = self._writer.weigh(prompt, how.logprob_token_ids)
            scores = (SimpleNamespace(logprob=weight - 3.0) for weight in weights)
            known = dict(zip(how.logprob_token_ids, scores, strict=True))
            return [SimpleNamespace(token_ids=how.logprob_token_ids[:1], logprobs=[known])]
        schema = how.structured_outputs.json if how.structured_outputs else None
        with torch.random.fork_rng():
            torch.manual_seed(how.seed or 0)
            given = {"max_new_tokens": how.max_tokens, "temperature": how.temperature, "schema": schema}
            made = self._writer.sample([prompt], copies=how.n, **given)
        pairs = zip(made.answers, made.log_probs, strict=True)
        return [self._describe(*pair, scored=how.logprobs is not None) for pair in pairs]

    def _describe(self, answer: list[int], scores: list[float], scored: bool) -> Any:
        entries = [{token: SimpleNamespace(logprob=score)} for token, score in zip(answer, scores, strict=True)]
        return SimpleNamespace(token_ids=tuple(answer), logprobs=entries if scored else None)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts it in the place of vLLM, on a machine with a GPU of 80 GB, half of it free."""
    vllm, parameters = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    vars(vllm).update(LLM=LLM, SamplingParams=SamplingParams, __path__=[], __spec__=SimpleNamespace())
    vars(parameters).update(StructuredOutputsParams=StructuredOutputsParams)
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)
    module = "lakewright.policy.inference.vllm_answers."
    monkeypatch.setattr(module + "resolve_device", lambda device: "cuda")
    monkeypatch.setattr(module + "count_free_bytes", lambda device: 40e9)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=80e9))
