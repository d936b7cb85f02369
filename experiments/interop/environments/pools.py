"""The certified boards on which episodes are played."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from core_jax.config import EnvConfig
from core_jax.errors import InputError
from core_jax.generator import generate
from core_jax.lake import EnvParams
from core_jax.types import Labels

MARGIN = 2  # times the longest optimal plan: the steps of an episode, unless it is said how many


class BoardPool(NamedTuple):
    """Boards of one size and number of agents, on the device, and their labels, on the host; P boards."""

    params: EnvParams
    labels: Labels

    @property
    def boards(self) -> int:
        """How many there are."""
        return self.params.pool.holes.shape[0]

    @property
    def size(self) -> int:
        """The side of a board, in cells."""
        return self.params.pool.holes.shape[1]

    @property
    def agents(self) -> int:
        """The number of agents on each."""
        return self.params.pool.starts.shape[1]


def board_pool(
    size: int, agents: int, hole_ratio: float, wait_ratio: float, boards: int, seed: int, step_limit: int = 0
) -> BoardPool:
    """`boards` solvable boards of a kind; the same for the same arguments.

    step_limit: the joint moves of an episode; 0 for twice the longest optimal makespan of the pool. Raises InputError
    where such boards cannot be drawn.
    """
    if step_limit < 0:
        raise InputError(f"step_limit is {step_limit}; give the joint moves of an episode, or 0")
    try:
        config = EnvConfig.single(size, agents, hole_ratio, wait_ratio)
    except ValueError as error:
        raise InputError(str(error)) from None
    drawn = generate(config, seed, boards)[size]
    limit = step_limit or MARGIN * int(drawn.labels.makespan.max())
    return BoardPool(EnvParams(jax.tree.map(jnp.asarray, drawn.boards), jnp.int32(limit)), drawn.labels)
