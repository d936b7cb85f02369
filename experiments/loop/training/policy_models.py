"""The models of a run: policies and engineers read from checkpoints, and the memory and cores that they get.

Torch gets as many threads as there are cores free of other work, measured repeatedly while it trains: threads that
share a core with other work wait for each other at every operation. With one of two cores busy, a GRPO step took twice
as long on two threads as on one.
"""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.support import count_cores
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.inference import AnswerWriter, VllmAnswers, start_vllm
from lakewright.policy.models import compute_in_bfloat16, load_checkpoint, load_model

INTERVAL = 2.0  # seconds between two measurements
ROOM = 8192  # tokens of the longest prompt that vLLM keeps room for, an engineer's with its evidence


def load_policy(
    settings: RunSettings, place: str | Path, device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The policy in a checkpoint, on `device` or the settings' device. Raises InputError as `load_checkpoint`."""
    model, tokenizer = load_checkpoint(place, settings.codec, _choose_dtype(settings), device or settings.device)
    return _apply_settings(settings, model), tokenizer


def load_engineer(
    settings: RunSettings, place: str | Path, device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model in a checkpoint of any codec, to be asked as the engineer, on `device` or the settings' device.

    Raises InputError as `load_model`.
    """
    model, tokenizer = load_model(place, _choose_dtype(settings), device or settings.device)
    return _apply_settings(settings, model), tokenizer


def _apply_settings(settings: RunSettings, model: PreTrainedModel) -> PreTrainedModel:
    if settings.autocast:
        compute_in_bfloat16(model)
    if settings.freeze_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    return model


def _choose_dtype(settings: RunSettings) -> torch.dtype:
    return torch.bfloat16 if settings.grpo.host.bf16 else torch.float32


def choose_device(settings: RunSettings) -> str:
    """The device of a model that answers and nothing else: the CPU if vLLM answers for it on the GPU."""
    return settings.device if settings.text.decoder == "own" else "cpu"


@contextmanager
def open_policy(
    settings: RunSettings, place: str | Path, scores: bool = False
) -> Iterator[tuple[PreTrainedModel, PreTrainedTokenizerFast, PreTrainedModel | AnswerWriter]]:
    """Yields the policy in a checkpoint and what answers for it within the block: the model itself, or vLLM.

    Args:
        settings: the run's settings.
        place: the checkpoint.
        scores: whether the model itself will score answers, on the settings' device; vLLM gives the GPU back first.

    Raises InputError as `load_policy` and `start_vllm`.
    """
    model, tokenizer = load_policy(settings, place, settings.device if scores else choose_device(settings))
    if settings.text.decoder == "own":
        yield model, tokenizer, model
        return
    with load_vllm(settings, place, model, tokenizer) as writer:
        yield model, tokenizer, writer


def load_vllm(
    settings: RunSettings, place: str | Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> VllmAnswers:
    """vLLM with a checkpoint, for prompts of ROOM tokens.

    Args:
        settings, place: see `open_policy`.
        model, tokenizer: the policy in that checkpoint.

    Raises InputError as `start_vllm`.
    """
    asked = settings.engineer
    longest = ROOM + max(settings.text.max_tokens, asked.reasoning + asked.answer)
    return start_vllm(place, model, tokenizer, longest)


def free_memory() -> None:
    """Gives up models that nothing but a cycle holds, and the memory of a GPU that torch has freed but still holds."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


class FreeCores:
    """Adapts torch's threads to the cores that other processes leave free, unless OMP_NUM_THREADS is set."""

    def __init__(self) -> None:
        self._fixed = "OMP_NUM_THREADS" in os.environ
        self._cores = count_cores()
        self._process = psutil.Process()
        self._last = self._measure_use()

    def adapt(self) -> None:
        """Sets torch's threads by the load since the last call; to be called between steps."""
        now = self._measure_use()
        elapsed, others = now[0] - self._last[0], now[1] - self._last[1]
        if self._fixed or elapsed < INTERVAL:
            return
        self._last = now
        torch.set_num_threads(free_cores(self._cores, others / elapsed))

    def _measure_use(self) -> tuple[float, float]:
        """The time, and the processor seconds that others have used so far."""
        system, own = psutil.cpu_times(), self._process.cpu_times()
        idle = system.idle + getattr(system, "iowait", 0.0)
        return time.monotonic(), sum(system[:8]) - idle - own.user - own.system


def free_cores(cores: int, others: float) -> int:
    """Whole cores left by other work that keeps `others` cores busy, at least one."""
    return max(1, min(cores, round(cores - others)))
