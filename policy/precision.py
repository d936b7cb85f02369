"""Mixed precision: models that keep float32 weights and compute in bfloat16."""

import contextlib

import torch
from transformers import PreTrainedModel


def compute_in_bfloat16(model: PreTrainedModel) -> None:
    """Marks a model, so that `computing` has it compute in bfloat16. Copies of the model are marked too."""
    model.computes_in = torch.bfloat16


def computes_in_bfloat16(model: PreTrainedModel) -> bool:
    """Whether a model is marked."""
    return getattr(model, "computes_in", None) is torch.bfloat16


def computing(model: PreTrainedModel) -> contextlib.AbstractContextManager:
    """A context in which a marked model computes in bfloat16, its weights rounded once."""
    if computes_in_bfloat16(model):
        return torch.autocast(model.device.type, torch.bfloat16)
    return contextlib.nullcontext()
