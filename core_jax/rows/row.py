"""The row: one board with its labels, their checks, and its identity."""

import hashlib
import math
import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from lakewright.core_jax.terms import CERTIFICATE_NAMES, DELTAS, MOVES, STATUS_NAMES

if TYPE_CHECKING:
    from lakewright.core_jax.types import Board

CERTIFICATES = CERTIFICATE_NAMES[1:]  # of a row without one, null says so
# What a row of the benchmark has beyond a row: ignored wherever rows are read.
BENCHMARK_FIELDS = pa.schema(
    [
        ("sample_id", pa.string()),
        ("num_agents", pa.int32()),
        ("text", pa.string()),
        ("wait_ratio", pa.float64()),
        ("drawn_hole_ratio", pa.float64()),
        ("drawn_wait_ratio", pa.float64()),
    ]
)
BENCHMARK_COLUMNS = frozenset(BENCHMARK_FIELDS.names)
# The index of a table of pandas, which writes it as a column by one of these names: ignored likewise.
INDEX_COLUMN = re.compile(r"__index_level_\d+__|level_\d+|index|Unnamed: \d+|")
Cost = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Fingerprint: TypeAlias = tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("size", pa.int32()),
        ("agents", pa.int32()),
        ("grid", pa.list_(pa.string())),
        ("starts", pa.list_(pa.list_(pa.int32()))),
        ("goals", pa.list_(pa.list_(pa.int32()))),
        ("hole_ratio", pa.float64()),
        ("status", pa.string()),
        ("makespan", pa.int32()),
        ("sum_of_costs", pa.int32()),
        ("wait_required", pa.bool_()),
        ("plan", pa.list_(pa.string())),
        ("makespan_plan", pa.list_(pa.string())),
        ("certificate", pa.string()),
    ]
)


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board, its labels, and plans that reach them. Labels are null until solved, or if unsolvable or undecided.

    grid: `.` frozen, `H` hole. status: solvable, unsolvable or undecided. plan: a string of U D L R W for each agent,
    together of cost `sum_of_costs`. makespan_plan: one that reaches `makespan`, if asked for. certificate: why the
    labels are certain, by name of `Certificate`. Raises ValueError if a field contradicts another.
    """

    id: str
    size: int
    agents: int
    grid: list[str]
    starts: list[tuple[int, int]]
    goals: list[tuple[int, int]]
    hole_ratio: float | None = None
    status: str | None = None
    makespan: Cost | None = None
    sum_of_costs: Cost | None = None
    wait_required: bool | None = None
    plan: list[str] | None = None
    makespan_plan: list[str] | None = None
    certificate: str | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size is {self.size}; a board has at least 1 cell a side")
        if self.agents < 1:
            raise ValueError(f"agents is {self.agents}; there must be at least 1")
        if self.hole_ratio is not None and not math.isfinite(self.hole_ratio):
            raise ValueError(f"hole_ratio is {self.hole_ratio}; give a number, or null")
        _check_grid(self.grid, self.size)
        _check_cells("starts", self.starts, self)
        _check_cells("goals", self.goals, self)
        _check_word("status", self.status, STATUS_NAMES)
        _check_word("certificate", self.certificate, CERTIFICATES)
        if self.plan is not None:
            check_plan(self.plan, self.agents)
        if self.makespan_plan is not None:
            check_plan(self.makespan_plan, self.agents, "makespan_plan")


class PlanRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan for the board of the same id."""

    id: str
    plan: list[str]


def check_plan(plan: list[str], agents: int, name: str = "plan") -> None:
    """Raises ValueError unless `plan` is a string of known moves for each agent."""
    if len(plan) != agents:
        raise ValueError(f"{name} has {len(plan)} strings for {agents} agents; give one string per agent")
    for agent, moves in enumerate(plan):
        if unknown := moves.strip(MOVES):
            raise ValueError(f"{name}[{agent}] has the move {unknown[0]!r}; use {' '.join(MOVES)} only")


def _check_grid(grid: list[str], size: int) -> None:
    if len(grid) == size and set(map(len, grid)) == {size} and not "".join(grid).strip(".H"):
        return  # as nearly always: there are millions of rows
    if len(grid) != size:
        raise ValueError(f"grid has {len(grid)} lines for size {size}; give one line per row of the board")
    for number, line in enumerate(grid):
        if len(line) != size:
            raise ValueError(f"grid[{number}] is {line!r:.40}, not {size} cells long; give one cell per column")
        if unknown := line.strip(".H"):
            raise ValueError(f"grid[{number}] holds {unknown[0]!r}; use '.' for frozen and 'H' for a hole")


def _check_word(name: str, word: str | None, choices: Sequence[str]) -> None:
    if word is not None and word not in choices:
        raise ValueError(f"{name} is {word!r:.40}; choose from {', '.join(choices)}, or null")


def _check_cells(name: str, cells: list[tuple[int, int]], row: Row) -> None:
    if len(cells) != row.agents:
        raise ValueError(f"{name} has {len(cells)} cells for {row.agents} agents; give one per agent")
    for agent, (line, column) in enumerate(cells):
        if not (0 <= line < row.size and 0 <= column < row.size):
            board = f"{row.size}x{row.size} board"
            raise ValueError(f"{name}[{agent}] is [{line}, {column}], off the {board}; use 0-based cells")
        if row.grid[line][column] == "H":
            raise ValueError(f"{name}[{agent}] is [{line}, {column}], a hole; choose a frozen cell")
    if len(set(cells)) != len(cells):
        raise ValueError(f"{name} are {[list(cell) for cell in cells]}: two agents share a cell; make them distinct")


def fingerprint(row: Row) -> Fingerprint:
    """Grid, starts and goals: what exactly the rows of one board share, whatever their ids and labels."""
    return tuple(row.grid), tuple(row.starts), tuple(row.goals)


def board_key(row: Row) -> str:
    """The SHA-256 of the fingerprint as compact JSON: what files call a board, whatever its id, place and labels."""
    return hashlib.sha256(msgspec.json.encode(fingerprint(row))).hexdigest()


def symmetric_fingerprint(board: "Board") -> bytes:
    """A key that is equal for exactly those boards that turns, mirrors and another order of agents make of one.

    Args: board, of numpy arrays.
    """
    size = board.holes.shape[0]
    places, holes = np.arange(size * size).reshape(size, size), np.asarray(board.holes)
    starts, goals = (np.asarray(ends) for ends in (board.starts, board.goals))
    forms = []
    for mirrored in (False, True):
        for turns in range(4):
            turned = np.rot90(places.T if mirrored else places, turns)  # the place that each one now shows
            moved_to = np.argsort(turned, axis=None).reshape(size, size)
            pairs = np.stack([moved_to[ends[:, 0], ends[:, 1]] for ends in (starts, goals)], 1)
            pairs = pairs[np.lexsort(pairs.T)].astype(np.uint16)
            forms.append(holes.reshape(-1)[turned].tobytes() + pairs.tobytes())
    return min(forms)


def find_distance(row: Row, agent: int) -> int | None:
    """The number of steps of an agent's shortest path as if it were alone; None if its goal cannot be reached."""
    start, goal = row.starts[agent], row.goals[agent]
    steps, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        if here == goal:
            return steps[here]
        for down, right in DELTAS:
            there = (here[0] + down, here[1] + right)
            on_board = 0 <= there[0] < row.size and 0 <= there[1] < row.size
            if on_board and row.grid[there[0]][there[1]] == "." and there not in steps:
                steps[there] = steps[here] + 1
                queue.append(there)
    return None
