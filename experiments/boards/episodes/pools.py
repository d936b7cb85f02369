"""The certified boards on which episodes are played, or one of a user's own: a map as in FrozenLake, or a row."""

import functools
from collections.abc import Mapping
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
from lakewright.experiments.boards.formats.cells import pad_to_square

LETTERS = "SFHG"
LARGEST = 256  # cells on a side
REMEDY = "give a line of S, F, H and G for each row of the board, as FrozenLake takes it, or a row of a file of boards"
MARGIN = 2  # times the longest optimal plan: the steps of an episode where no limit is given
POOLS = 64  # in memory at most; a forked process uses them, because it cannot run JAX to draw more


def read_board(desc: Any) -> Row:
    """The row of a board.

    desc: a row or its fields, as JSON has them; or for one agent lines of S (start), F (frozen), H (hole) and G (goal),
    as Gymnasium's FrozenLake takes them: strings, bytes, or arrays of letters. A rectangle's rows are padded with
    holes, to the right or below, so each plan is one of the rectangle.

    Raises InputError with the line, the value and the remedy.
    """
    if isinstance(desc, Row):
        return desc
    if isinstance(desc, Mapping):
        fields = {"id": "desc", **desc}
        known = {name: value for name, value in fields.items() if name in Row.__struct_fields__}
        if unknown := [name for name in fields if name not in known]:
            raise InputError(f"desc: unknown field {unknown[0]!r:.60}; choose from {', '.join(Row.__struct_fields__)}")
        return convert(msgspec.to_builtins(known), Row, "desc")
    lines = _read_lines(desc)
    found: dict[str, list[tuple[int, int]]] = {"S": [], "G": []}
    for number, line in enumerate(lines):
        if other := line.strip(LETTERS):
            raise InputError(f"desc[{number}] has the letter {other[0]!r}; {REMEDY}")
        for column, letter in enumerate(line):
            if letter in found:
                found[letter].append((number, column))
    for letter, cells in found.items():
        if len(cells) != 1:
            raise InputError(f"desc has {len(cells)} cells {letter}; give one S and one G, or a row for several agents")
    grid = pad_to_square(["".join("H" if letter == "H" else "." for letter in line) for line in lines])
    return Row("desc", len(grid), 1, grid, found["S"], found["G"])


def _read_lines(desc: Any) -> list[str]:
    """Lines of equal length, from strings, bytes, or arrays or lists of letters."""
    if isinstance(desc, str | bytes) or not isinstance(desc, list | tuple | np.ndarray) or not len(desc):
        raise InputError(f"desc is {desc!r:.60}; {REMEDY}")
    lines = [_read_line(line, number) for number, line in enumerate(desc)]
    if max(len(lines), len(lines[0])) > LARGEST:
        raise InputError(f"desc has {len(lines)} lines of {len(lines[0])}; give at most {LARGEST} cells on a side")
    for number, line in enumerate(lines):
        if not line or len(line) != len(lines[0]):
            raise InputError(f"desc[{number}] has {len(line)} cells, desc[0] {len(lines[0])}; make all lines equal")
    return lines


def _read_line(line: Any, number: int) -> str:
    try:
        parts = [line] if isinstance(line, str | bytes) else list(line)
        return "".join(part.decode("ascii") if isinstance(part, bytes) else part for part in parts)
    except (TypeError, UnicodeDecodeError, AttributeError):
        raise InputError(f"desc[{number}] is {line!r:.60}; {REMEDY}") from None


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
    """The seed of these boards."""
    step_limit: Natural = 0
    """Joint moves of an episode; 0 for twice the longest optimal makespan of the pool."""
    desc: Any = None
    """Your own board, instead of all options except `step_limit`: see `read_board`."""


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
