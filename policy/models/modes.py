"""The modes of a model: training or answering, and mixed precision with float32 weights and bfloat16 arithmetic."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from transformers import PreTrainedModel


@contextmanager
def set_mode(model: PreTrainedModel, *, training: bool = False) -> Iterator[None]:
    """Within the context the model answers, or trains (with dropout); afterwards it is in its earlier mode again."""
    before = model.training
    model.train(training)
    try:
        yield
    finally:
        model.train(before)


def compute_in_bfloat16(model: PreTrainedModel) -> None:
    """Mark a model, so that `use_precision` makes it compute in bfloat16. Copies of the model are marked too."""
    model.computes_in = torch.bfloat16


def computes_in_bfloat16(model: PreTrainedModel) -> bool:
    """Return whether a model is marked by `compute_in_bfloat16`."""
    return getattr(model, "computes_in", None) is torch.bfloat16


def use_precision(model: PreTrainedModel) -> AbstractContextManager:
    """A context in which a marked model computes in bfloat16, its weights rounded once."""
    if computes_in_bfloat16(model):
        return torch.autocast(model.device.type, torch.bfloat16)
    return nullcontext()
