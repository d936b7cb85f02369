"""The shape of a model that begins with random weights, and the shapes that have a name."""

from typing import Annotated, Literal

import msgspec

from lakewright.policy.networks import BoardNetworkSettings


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of the from-scratch model; the default has 0.6 million parameters."""

    architecture: Literal["qwen3", "board"] = "qwen3"
    """Qwen3's layers, of the widths that follow, or a network that computes on the board, of the shape `board`."""
    board: BoardNetworkSettings = BoardNetworkSettings()
    """The shape of a board network."""
    hidden: Annotated[int, msgspec.Meta(ge=1, le=1 << 14)] = 128
    """Width of the residual stream, a multiple of 2 x heads."""
    layers: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    """Transformer layers."""
    heads: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    """Attention heads in each layer."""
    mlp: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = 192
    """Width of the feed-forward layers."""
    positions: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 512
    """Longest sequence in tokens."""

    def __post_init__(self) -> None:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden is {self.hidden}, no multiple of 2 x {self.heads} heads; make it one")


FAMILY = {
    "0.6M": ModelSettings(),
    "3M": ModelSettings(hidden=256, layers=6, heads=8, mlp=320),
    "25M": ModelSettings(hidden=512, layers=8, heads=8, mlp=1344),
    "100M": ModelSettings(hidden=768, layers=14, heads=12, mlp=2048),
    "board": ModelSettings(architecture="board"),
}
ModelName = Literal["0.6M", "3M", "25M", "100M", "board"]


def resolve_shape(settings: ModelSettings | ModelName) -> ModelSettings:
    """Return the shape that settings are or name."""
    return FAMILY[settings] if isinstance(settings, str) else settings
