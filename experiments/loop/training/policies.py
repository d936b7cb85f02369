"""The policies of a run, read with the codec, number type and device of its settings."""

from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from experiments.loop.settings import RunSettings
from policy.checkpoints import load_checkpoint
from policy.precision import compute_in_bfloat16


def load_policy(
    settings: RunSettings, place: str | Path, device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The policy in a checkpoint, on `device` or that of the settings. Raises InputError as `load_checkpoint`."""
    model, tokenizer = load_checkpoint(place, settings.codec, dtype_of(settings), device or settings.device)
    if settings.autocast:
        compute_in_bfloat16(model)
    if settings.freeze_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    return model, tokenizer


def dtype_of(settings: RunSettings) -> torch.dtype:
    """The number type of the models of a run."""
    return torch.bfloat16 if settings.grpo.host.bf16 else torch.float32
