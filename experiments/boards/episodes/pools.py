"""The certified boards on which episodes are played."""

import functools
from typing import Any, NamedTuple

import jax
import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import Batch, generate
from lakewright.core_jax.lake import EnvParams
from lakewright.core_jax.rows import Fingerprint, Row, boards_of, fingerprint, rows_of, solve_rows
from lakewright.core_jax.solver import solve
from lakewright.core_jax.support import Count, Natural, convert
from lakewright.core_jax.types import Board, Labels, Status
from lakewright.experiments.boards.episodes.own_boards import read_board

MARGIN = 2  # times the longest optimal plan: the steps of an episode where no limit is given
POOLS = 64  # that are kept: a process that is forked finds them, as it cannot draw any


class PoolOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The boards of an environment and the length of its episodes; every environment takes these arguments by name."""

    size: int = 5
    """Cells on a side of the board, 3 to 16."""
    agents: int = 2
    """Agents on a board, 1 to 8."""
    hole_ratio: float = 0.3
    """Holes / (cells that are neither start nor goal), 0 to 0.5."""
    wait_ratio: float = 0.5
    """Share of boards on which every plan of optimal sum of costs waits, 0 to 1; 0 by default for one agent."""
    boards: Count = 256
    """Certified boards that episodes are played on."""
    pool_seed: int = 0
    """The seed that draws them."""
    step_limit: Natural = 0
    """Joint moves of an episode; 0 for twice the longest optimal makespan of the pool."""
    desc: Any = None
    """A board of one's own, instead of all options but `step_limit`: see `read_board`."""


class BoardPool(NamedTuple):
    """Boards of one size and number of agents, and their labels, as arrays of NumPy; P boards."""

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
    """The boards of `PoolOptions`, the same for the same options. Raises InputError if they cannot be drawn."""
    options, own = _check_options(given)
    boards, labels = _draw_pool(options)[:2] if own is None else _label_board(fingerprint(own))
    limit = options.step_limit or max(1, MARGIN * int(labels.makespan.max()))
    return BoardPool(EnvParams(boards, np.int32(limit)), labels)  # type: ignore[arg-type]


def pool_rows(**given: Any) -> list[Row]:
    """The rows of the boards of `board_pool`, in its order, with their plans."""
    options, own = _check_options(given)
    if own is not None:
        _label_board(fingerprint(own))
        return solve_rows([own])
    *_, batch, config = _draw_pool(options)
    return rows_of({options.size: batch}, config)


def _check_options(given: dict[str, Any]) -> tuple[PoolOptions, Row | None]:
    """The options, hashable, and the board of one's own."""
    desc = given.get("desc")
    if desc is not None:
        if other := [name for name in given if name not in ("desc", "step_limit")]:
            raise InputError(f"lake: desc and {other[0]} = {given[other[0]]!r:.60} exclude each other; remove one")
        given = {name: value for name, value in given.items() if name != "desc"}
    if given.get("agents") == 1:
        given = {"wait_ratio": 0.0, **given}
    return convert(given, PoolOptions, "lake"), None if desc is None else read_board(desc)


@functools.lru_cache(POOLS)
def _draw_pool(options: PoolOptions) -> tuple[Board, Labels, Batch, EnvConfig]:
    try:
        config = EnvConfig.single(options.size, options.agents, options.hole_ratio, options.wait_ratio)
    except ValueError as error:
        raise InputError(str(error)) from None
    batch = generate(config, options.pool_seed, options.boards)[options.size]
    return *jax.tree.map(np.asarray, (batch.boards, batch.labels)), batch, config


@functools.lru_cache(POOLS)
def _label_board(parts: Fingerprint) -> tuple[Board, Labels]:
    """A board with a leading axis of 1, and its labels. Raises InputError if missing."""
    grid, starts, goals = map(list, parts)
    boards = boards_of([Row("desc", len(grid), len(starts), grid, starts, goals)])  # type: ignore[arg-type]
    labels = jax.tree.map(np.asarray, solve(boards))
    status = Status(int(labels.status[0]))
    if status == Status.UNSOLVABLE:
        raise InputError("desc: the board has no solution; give one on which all agents can reach their goals")
    if status == Status.UNDECIDED:
        raise InputError(f"desc: no optimum is known of the board with {len(starts)} agents; give one with fewer")
    return boards, labels
