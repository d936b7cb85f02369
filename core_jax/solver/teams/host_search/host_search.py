"""Labels of batches of boards by the compiled search."""

import dataclasses

import numpy as np

from lakewright.core_jax.lake.label_batches import trim_plans
from lakewright.core_jax.solver.teams.host_search.label_search import ANY, search_boards
from lakewright.core_jax.solver.teams.host_search.workspace import ANSWER, CELLS, STEPS, make_workspace
from lakewright.core_jax.support.compiled_code import compile_all
from lakewright.core_jax.support.profiling import in_phase
from lakewright.core_jax.types import PAD, Board

# Joint states of one question, after which it is left open: a formula then takes about as long.
NODES, NODES_OF_THREE = 6_000, 60_000


@dataclasses.dataclass(frozen=True)
class Searched:
    """The results of searching B boards.

    answers: [B], of dtype ANSWER, see `workspace`. moves, fastest: int8 [B, K, T], plans of least cost and of least
    makespan, if known, without waits after the last move.
    """

    answers: np.ndarray
    moves: np.ndarray
    fastest: np.ndarray


def search_batch(boards: Board, wanted: np.ndarray | None = None, nodes: int | None = None) -> Searched:
    """Labels B boards of three and more agents, as far as nodes go.

    The result of a board depends on that board alone. A board of more than CELLS free cells is left open.

    Args:
        boards: with leading axis B.
        wanted: bool [B] or None; the makespan of a board whose forced wait differs is not searched.
        nodes: joint states searched for one question; None for NODES or NODES_OF_THREE.
    """
    compile_all()
    agents = boards.starts.shape[1]
    nodes = (NODES_OF_THREE if agents == 3 else NODES) if nodes is None else nodes
    prefer = np.full(len(boards.starts), ANY, np.int8) if wanted is None else wanted.astype(np.int8)
    holes = np.ascontiguousarray(boards.holes, bool)
    starts, goals = (np.ascontiguousarray(ends, np.int32) for ends in (boards.starts, boards.goals))
    return Searched(*in_phase("search", _search_arrays, holes, starts, goals, prefer, nodes))


def _search_arrays(
    holes: np.ndarray, starts: np.ndarray, goals: np.ndarray, prefer: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Searches boards of one size: answers, moves and fastest of `Searched`.

    Args:
        holes: bool [B, n, n].
        starts: int32 [B, K, 2].
        goals: int32 [B, K, 2].
        prefer: int8 [B], 0, 1 or ANY, see `search_boards`.
        nodes: joint states of one question.
    """
    count, agents = starts.shape[:2]
    answers = np.zeros(count, ANSWER)
    answers["solvable"] = True
    moves = np.full((count, 2, agents, STEPS), PAD, np.int8)
    free = (~holes).sum(axis=(1, 2))
    fit = free <= CELLS
    if fit.any():
        work, table = make_workspace(agents, int(free[fit].max()))
        found, plans = answers[fit], moves[fit]
        search_boards(work, table, holes[fit], starts[fit], goals[fit], prefer[fit], nodes, found, plans)
        answers[fit], moves[fit] = found, plans
    same = answers["makespan_known"] & (answers["fastest_steps"] == 0)  # the plan of least cost is the fastest
    moves[same, 1] = moves[same, 0]
    return answers, trim_plans(moves[:, 0]), trim_plans(moves[:, 1])
