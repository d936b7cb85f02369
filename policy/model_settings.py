"""The shapes of models that begin with random weights."""

from typing import Annotated, Literal

import msgspec

BOARD_NETWORK = "lakewright_board"  # the model type of board networks, in config.json
ModelName = Literal["0.6M", "3M", "25M", "100M", "board"]


class BoardNetworkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of a board network, see policy.networks."""

    channels: Annotated[int, msgspec.Meta(ge=1, le=512)] = 32
    """Channels of the map of each agent."""
    iterations: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    """Iterations that make a map, all with the same weights."""
    hidden: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 96
    """Width of an agent's state at a step."""
    layers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 3
    """Rounds of messages between the agents at a step."""
    cost_to_go: bool = True
    """Whether maps begin with the distances of all cells from the goal, so they need not be learned."""
    keeps_rules: bool = True
    """Whether an agent never collides with an agent that chose earlier, as long as it has another move."""
    never_repeats: bool = True
    """Whether agents never repeat a joint position, as long as the last agent has another move."""


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of the from-scratch model; the default has 0.6 million parameters."""

    architecture: Literal["qwen3", "board"] = "qwen3"
    """Qwen3's layers with the widths below, or a network that computes on the board, with the shape `board`."""
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
            raise ValueError(f"hidden is {self.hidden}, not a multiple of 2 x {self.heads} heads; make it a multiple")


FAMILY = {
    "0.6M": ModelSettings(),
    "3M": ModelSettings(hidden=256, layers=6, heads=8, mlp=320),
    "25M": ModelSettings(hidden=512, layers=8, heads=8, mlp=1344),
    "100M": ModelSettings(hidden=768, layers=14, heads=12, mlp=2048),
    "board": ModelSettings(architecture="board"),
}


def resolve_shape(settings: ModelSettings | ModelName) -> ModelSettings:
    """Return the shape that settings are or name."""
    return FAMILY[settings] if isinstance(settings, str) else settings
