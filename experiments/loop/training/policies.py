"""The policies of a run, read with the codec, number type and device of its settings."""

from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.experiments.loop.settings import RunSettings
from lakewright.policy.models import compute_in_bfloat16, load_checkpoint, load_model


def load_policy(
    settings: RunSettings, place: str | Path, device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The policy in a checkpoint, on `device` or that of the settings. Raises InputError as `load_checkpoint`."""
    model, tokenizer = load_checkpoint(place, settings.codec, _dtype(settings), device or settings.device)
    return _as_set(settings, model), tokenizer


def load_engineer(settings: RunSettings, place: str | Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model in a checkpoint of any codec, to be asked as the engineer. Raises InputError as `load_model`."""
    model, tokenizer = load_model(place, _dtype(settings), settings.device)
    return _as_set(settings, model), tokenizer


def _as_set(settings: RunSettings, model: PreTrainedModel) -> PreTrainedModel:
    if settings.autocast:
        compute_in_bfloat16(model)
    if settings.freeze_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    return model


def _dtype(settings: RunSettings) -> torch.dtype:
    return torch.bfloat16 if settings.grpo.host.bf16 else torch.float32
