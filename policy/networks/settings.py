"""The shape of a board network, as settings name it."""

from typing import Annotated

import msgspec

BOARD_NETWORK = "lakewright_board"  # the model type of board networks, in config.json


class BoardNetworkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of a board network, see policy.networks."""

    channels: Annotated[int, msgspec.Meta(ge=1, le=512)] = 32
    """Channels of the map of each agent."""
    iterations: Annotated[int, msgspec.Meta(ge=1, le=256)] = 4
    """Iterations by which a map is made; the weights are the same in all."""
    hidden: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 96
    """Width of what an agent knows at a step."""
    layers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 3
    """Rounds of messages between the agents at a step."""
    cost_to_go: bool = True
    """Whether maps begin with the distances of all cells from the goal, instead of having to learn them."""
    keeps_rules: bool = True
    """Whether an agent never collides with one that has chosen before it, as long as it has another move."""
    never_repeats: bool = True
    """Whether agents never come back to where all of them were together, as long as the last has another move."""
