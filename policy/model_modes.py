"""Whether a model trains, with dropout, or answers."""

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import PreTrainedModel


@contextmanager
def in_mode(model: PreTrainedModel, *, training: bool = False) -> Iterator[None]:
    """Answers, or trains, within the context; afterwards the model is in the mode that it was in."""
    before = model.training
    model.train(training)
    try:
        yield
    finally:
        model.train(before)
