"""Keys and values of prompts that are read once and serve many rows."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache


def cache_rows(cache: DynamicCache, rows: torch.Tensor) -> DynamicCache:
    """The keys and values of some rows, int [B], which may repeat; gradients included."""
    chosen = DynamicCache()
    layers: Any = cache.layers
    for number, layer in enumerate(layers):
        chosen.update(layer.keys[rows], layer.values[rows], number)
    return chosen


def common_prefix(prompts: Sequence[list[int]]) -> int:
    """How many tokens all prompts begin with, the last of each left out, as its scores are wanted."""
    first, last = min(prompts), max(prompts)  # all others lie between these
    shorter = min(len(prompt) for prompt in prompts) - 1
    return next((place for place in range(shorter) if first[place] != last[place]), shorter)
