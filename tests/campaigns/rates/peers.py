"""Other people's exact solvers on our boards, for the comparison only: `pip install lakewright[bench]`.

They answer with an optimal sum of costs and its plan, nothing else. Each has its own process a core, since they hold
the interpreter; this module is imported there and therefore stays free of JAX.
"""

import contextlib
import dataclasses
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

SECONDS_A_BOARD = 1.0  # what longer takes is undecided
PATIENCE = 120.0  # seconds to hear from a worker, which may have been killed for its memory
UNSOLVABLE = -1
Square = tuple[int, int]


class PlainBoard(NamedTuple):
    """One board for a peer: rows of booleans, true if there is a hole, and (row, column) cells."""

    holes: list[list[bool]]
    starts: list[Square]
    goals: list[Square]


@dataclasses.dataclass(frozen=True)
class Peer:
    """A solver. `solve` returns the sum of costs of its plan, UNSOLVABLE, or None if its time ran out.

    decides: whether it ends on boards without a solution; others search them until their time is over.
    """

    name: str
    package: str
    decides: bool
    solve: Callable[[PlainBoard], int | None]


@dataclasses.dataclass(frozen=True)
class PeerAnswers:
    """The result of one worker on boards `first`, `first + 1` ... (modulo their number), and in how many seconds."""

    first: int
    costs: list[int | None]
    seconds: float

    @property
    def rate(self) -> float:
        """Boards a second."""
        return len(self.costs) / self.seconds


def w9_cbs(board: PlainBoard) -> int | None:
    """w9-pathfinding's conflict-based search, C++."""
    from w9_pathfinding.mapf import CBS

    return _solve_with_w9(CBS, board)


def w9_joint_astar(board: PlainBoard) -> int | None:
    """w9-pathfinding's A* over joint states with operator decomposition, C++."""
    from w9_pathfinding.mapf import MultiAgentAStar

    return _solve_with_w9(MultiAgentAStar, board)


def pymapf_cbs(board: PlainBoard) -> int | None:
    """pymapf's conflict-based search, Python."""
    from pymapf.algorithms.cbs import ConflictBasedSearch
    from pymapf.core import Agent, GridMap, MAPFProblem

    ends = zip(board.starts, board.goals, strict=True)
    agents = [Agent(str(agent), start, goal) for agent, (start, goal) in enumerate(ends)]
    solution = ConflictBasedSearch(time_limit=SECONDS_A_BOARD).solve(MAPFProblem(GridMap(board.holes), agents))
    return None if solution is None else solution.sum_of_costs


PEERS = (
    Peer("w9-pathfinding CBS", "w9-pathfinding", False, w9_cbs),
    Peer("w9-pathfinding MultiAgentAStar", "w9-pathfinding", True, w9_joint_astar),
    Peer("pymapf CBS", "pymapf", False, pymapf_cbs),
)


def find_version(peer: Peer) -> str | None:
    """The installed version, None if missing."""
    try:
        return metadata.version(peer.package)
    except metadata.PackageNotFoundError:
        return None


class Crew:
    """As many worker processes as asked for, waiting for boards."""

    def __init__(self, pool, workers: int) -> None:
        self._pool = pool
        self._workers = workers

    def solve(self, peer: Peer, boards: Sequence[PlainBoard], first: int, seconds: float) -> list[PeerAnswers]:
        """Every worker solves boards, each from a place of its own, until `seconds` are over.

        Args:
            peer: the solver.
            boards: the boards to solve, in turn.
            first: the place at which the first worker begins.
            seconds: the time after which no further board is begun.

        Raises multiprocessing.TimeoutError if a worker doesn't report.
        """
        stride = max(1, len(boards) // self._workers)
        places = [(first + worker * stride) % len(boards) for worker in range(self._workers)]
        jobs = [(peer.solve, boards, place, seconds) for place in places]
        return self._pool.starmap_async(_solve_for, jobs, chunksize=1).get(seconds + PATIENCE)


@contextlib.contextmanager
def start_crew(workers: int) -> Iterator[Crew]:
    """Starts the workers; they end with the block. Nothing is timed while they import what they need."""
    context = multiprocessing.get_context("spawn")  # a fork of a process with XLA's threads may hang
    barrier = context.Barrier(workers)
    with context.Pool(workers, _enter_barrier, (barrier,)) as pool:
        pool.map(_meet_others, range(workers), chunksize=1)
        yield Crew(pool, workers)


_all_here: Barrier


def _enter_barrier(barrier: Barrier) -> None:
    global _all_here
    _all_here = barrier


def _meet_others(worker: int) -> None:
    """Returns once all workers are there."""
    _all_here.wait()


def _solve_for(
    solve: Callable[[PlainBoard], int | None], boards: Sequence[PlainBoard], first: int, seconds: float
) -> PeerAnswers:
    solve(boards[first])  # imports and set-up are left out of the rate
    _all_here.wait()  # all cores work at the same time, or the rate of one would pass for that of many
    costs: list[int | None] = []
    begun = time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds:
        costs.append(solve(boards[(first + len(costs)) % len(boards)]))
    return PeerAnswers(first, costs, passed)


def _solve_with_w9(algorithm, board: PlainBoard) -> int | None:
    """Its cells are (column, row), its paths end at the final arrival, and swaps are legal unless forbidden."""
    from w9_pathfinding.envs import Grid

    grid = Grid([[-1 if hole else 1 for hole in row] for row in board.holes], edge_collision=True)
    starts, goals = ([(column, row) for row, column in cells] for cells in (board.starts, board.goals))
    longest = 4 * len(board.holes) ** 2
    try:
        paths = algorithm(grid).mapf(starts, goals, max_length=longest, max_time=SECONDS_A_BOARD)
    except RuntimeError:  # the time is over
        return None
    return sum(len(path) - 1 for path in paths) if paths else UNSOLVABLE
