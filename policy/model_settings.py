"""The shape of a model that begins with random weights, and the shapes that have a name."""

from typing import Literal

import msgspec

from core_jax.support import Count


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of the from-scratch model; the default has 0.6 million parameters."""

    hidden: Count = 128
    """Width of the residual stream, a multiple of 2 x heads."""
    layers: Count = 4
    """Transformer layers."""
    heads: Count = 4
    """Attention heads in each layer."""
    mlp: Count = 192
    """Width of the feed-forward layers."""
    positions: Count = 512
    """Longest sequence in tokens."""

    def __post_init__(self) -> None:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden is {self.hidden}, no multiple of 2 x {self.heads} heads; make it one")


FAMILY = {
    "0.6M": ModelSettings(),
    "3M": ModelSettings(hidden=256, layers=6, heads=8, mlp=320),
    "25M": ModelSettings(hidden=512, layers=8, heads=8, mlp=1344),
    "100M": ModelSettings(hidden=768, layers=14, heads=12, mlp=2048),
}
ModelName = Literal["0.6M", "3M", "25M", "100M"]
