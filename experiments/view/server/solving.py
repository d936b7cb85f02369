"""The real solver behind the editor: its programs for a kind of board are compiled before it is asked to answer."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, solve_rows

PATIENCE = 120.0  # seconds that a board waits for those before it, and for its answer
Kind = tuple[int, int]  # size and number of agents
NARROW = [
    (0, 0),
    (0, 1),
    (0, 2),
    (1, 0),
]  # two agents that pass here have no plan, as only a search proves


class CompilingError(Exception):
    """The programs for a kind of board are not ready yet."""


class Solver:
    """Solves boards one by one; those of a new kind once their programs are compiled, which it does by itself."""

    def __init__(self) -> None:
        self._one = ThreadPoolExecutor(1, "solver")
        self._lock = threading.Lock()
        self._ready: dict[Kind, Future[None]] = {}

    def solve(self, row: Row, patience: float) -> Row:
        """The row with its labels. Raises CompilingError where its programs are not ready within `patience` seconds."""
        try:
            self._prepare_programs(row).result(patience)
        except TimeoutError:
            raise CompilingError from None
        asked = self._one.submit(solve_rows, [row])
        try:
            [solved] = asked.result(PATIENCE)
        except TimeoutError:
            asked.cancel()
            raise InputError("the solver is busy with an earlier board; try again") from None
        return solved

    def _prepare_programs(self, row: Row) -> Future[None]:
        kind = row.size, row.agents
        with self._lock:
            if kind not in self._ready:
                self._ready[kind] = self._one.submit(_compile_kind, row)
            return self._ready[kind]


def _compile_kind(row: Row) -> None:
    """Solves a board, and one of its kind on which certificates do not hold, each alone, as the editor asks."""
    solve_rows([row])
    if row.agents > 1:
        solve_rows([_narrow_row(row.size, row.agents)])


def _narrow_row(size: int, agents: int) -> Row:
    """A board on which two agents have to pass each other where they cannot; the others keep out of the way."""
    aside = [cell for line in range(size) for column in range(size) if (cell := (line, column)) not in NARROW]
    others = aside[: 2 * (agents - 2)]
    starts, goals = [NARROW[0], NARROW[1], *others[::2]], [NARROW[2], NARROW[3], *others[1::2]]
    free = {*starts, *goals}
    grid = ["".join(".H"[(line, column) not in free] for column in range(size)) for line in range(size)]
    return Row("narrow", size, agents, grid, starts, goals)
