"""Decoders: what reads prompts once and then gives the logits of answers, one word at a time."""

import functools
from collections.abc import Callable
from typing import Protocol

import torch
from transformers import PreTrainedModel

from lakewright.policy.inference.transformer_decoder import TransformerDecoder, has_known_layers
from lakewright.policy.networks import BoardDecoder, BoardNetwork


class AnswerDecoder(Protocol):
    """The state of B boards with G answers each. V: the words of the vocabulary."""

    def read(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Reads prompts int [B, P], padded on the left (mask: 0 there): the logits of the first word, [B, G, V]."""
        ...

    def add(self, tokens: torch.Tensor) -> torch.Tensor:
        """Adds one word to every answer, int [B, G]: the logits of the next, [B, G, V]."""
        ...

    def keep(self, boards: torch.Tensor) -> None:
        """Continues with some boards only, int [B']."""
        ...


def ends_answers_singly(model: PreTrainedModel) -> bool:
    """Whether answers to one prompt are decoded like those to different ones, each until it ends by itself.

    A board network reads equal boards once anyway; a transformer keeps the answers to a prompt together.
    """
    return isinstance(model, BoardNetwork)


def decoder_of(model: PreTrainedModel) -> Callable[[int, int], AnswerDecoder] | None:
    """What makes a decoder of a model, for copies of answers and the length of the longest; None where it has none."""
    if isinstance(model, BoardNetwork):
        return functools.partial(BoardDecoder, model)
    return functools.partial(TransformerDecoder, model) if has_known_layers(model) else None
