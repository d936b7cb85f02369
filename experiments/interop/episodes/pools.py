"""The certified boards on which episodes are played."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import Batch, generate
from lakewright.core_jax.lake import EnvParams
from lakewright.core_jax.rows import Row, rows_of
from lakewright.core_jax.support import Count, Natural, convert
from lakewright.core_jax.types import Labels

MARGIN = 2  # times the longest optimal plan: the steps of an episode where no limit is given


class PoolOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The boards of an environment and the length of its episodes; every environment takes these arguments by name."""

    size: int = 5
    """Cells on a side of the board, 3 to 16."""
    agents: int = 2
    """Agents on a board, 1 to 8."""
    hole_ratio: float = 0.3
    """Holes / (cells that are neither start nor goal), 0 to 0.5."""
    wait_ratio: float = 0.5
    """Share of boards on which every plan of optimal sum of costs waits, 0 to 1."""
    boards: Count = 256
    """Certified boards that episodes are played on."""
    pool_seed: int = 0
    """The seed that draws them."""
    step_limit: Natural = 0
    """Joint moves of an episode; 0 for twice the longest optimal makespan of the pool."""


class BoardPool(NamedTuple):
    """Boards of one size and number of agents, on the device, and their labels, on the host; P boards."""

    params: EnvParams
    labels: Labels

    @property
    def boards(self) -> int:
        """The number of boards."""
        return self.params.pool.holes.shape[0]

    @property
    def size(self) -> int:
        """The side of a board, in cells."""
        return self.params.pool.holes.shape[1]

    @property
    def agents(self) -> int:
        """The number of agents on each."""
        return self.params.pool.starts.shape[1]


def board_pool(**given: Any) -> BoardPool:
    """The boards of `PoolOptions`, the same for the same options. Raises InputError where they cannot be drawn."""
    options, _, drawn = _check_options(given)
    limit = options.step_limit or MARGIN * int(drawn.labels.makespan.max())
    return BoardPool(EnvParams(jax.tree.map(jnp.asarray, drawn.boards), jnp.int32(limit)), drawn.labels)


def pool_rows(**given: Any) -> list[Row]:
    """The rows of the boards of `board_pool`, in its order, with their plans."""
    options, config, drawn = _check_options(given)
    return rows_of({options.size: drawn}, config)


def _check_options(given: dict[str, Any]) -> tuple[PoolOptions, EnvConfig, Batch]:
    options = convert(given, PoolOptions, "lake")
    try:
        config = EnvConfig.single(options.size, options.agents, options.hole_ratio, options.wait_ratio)
    except ValueError as error:
        raise InputError(str(error)) from None
    return options, config, generate(config, options.pool_seed, options.boards)[options.size]
