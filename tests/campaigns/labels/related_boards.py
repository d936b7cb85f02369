"""Labels of related boards: what one implies for the other (metamorphic testing, Chen et al. 1998)."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import Board, Labels, Status


def find_contradictions(boards: Board, labels: Labels, random: np.random.Generator) -> np.ndarray:
    """On which of B boards the labels contradict those of a related board: bool [B]. Undecided labels contradict none.

    A board that is turned or mirrored, and its agents in another order, has the same optima and forced wait; one with
    starts and goals exchanged the same makespan. A further hole lowers no optimum, and an agent less raises none.
    """
    makespan, cost, wait = _read_optima(labels)
    wrong = np.zeros(len(cost), bool)
    alike = _read_optima(solve(_reorder_agents(_turn_boards(boards, random), random)))
    for ours, theirs in zip((makespan, cost, wait), alike, strict=True):
        wrong |= _check_relation(np.not_equal, ours, theirs)
    wrong |= _check_relation(
        np.not_equal, makespan, _read_optima(solve(Board(boards.holes, boards.goals, boards.starts)))[0]
    )
    narrower = _read_optima(solve(_with_a_hole(boards, random)))
    fewer = _read_optima(solve(Board(boards.holes, boards.starts[:, :-1], boards.goals[:, :-1])))
    for place, ours in enumerate((makespan, cost)):
        wrong |= _check_relation(np.less, narrower[place], ours) | _check_relation(np.greater, fewer[place], ours)
    return wrong


def _read_optima(labels: Labels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Makespan, sum of costs and forced wait, float [B] each: infinite without a plan, NaN if undecided."""
    status = np.asarray(labels.status)

    def known(field: Any) -> np.ndarray:
        return np.select([status == Status.SOLVABLE, status == Status.UNSOLVABLE], [field, np.inf], np.nan)

    return known(labels.makespan), known(labels.sum_of_costs), known(labels.wait_required)


def _check_relation(relation: Callable[..., np.ndarray], one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two known values are in a relation."""
    return relation(one, other) & ~np.isnan(one) & ~np.isnan(other)


def _turn_boards(boards: Board, random: np.random.Generator) -> Board:
    """All boards turned by the same quarters, and mirrored or not, but not left as they are."""
    quarters, mirrored = divmod(int(random.integers(1, 8)), 2)
    size = boards.holes.shape[-1]
    holes, *ends = (np.asarray(field) for field in (boards.holes, boards.starts, boards.goals))
    for _ in range(quarters):
        holes = np.rot90(holes, axes=(1, 2))
        ends = [np.stack([size - 1 - cells[..., 1], cells[..., 0]], axis=-1) for cells in ends]
    if mirrored:
        holes = holes[:, :, ::-1]
        ends = [np.stack([cells[..., 0], size - 1 - cells[..., 1]], axis=-1) for cells in ends]
    return jax.tree.map(np.ascontiguousarray, Board(holes, *ends))  # type: ignore[arg-type]


def _reorder_agents(boards: Board, random: np.random.Generator) -> Board:
    order = random.permutation(boards.starts.shape[1])
    return Board(boards.holes, boards.starts[:, order], boards.goals[:, order])


def _with_a_hole(boards: Board, random: np.random.Generator) -> Board:
    """A hole in the place of a free cell if no agent starts or ends; a board without such a cell stays unchanged."""
    taken = np.array(boards.holes)
    rows = np.arange(len(taken))[:, None]
    for cells in (boards.starts, boards.goals):
        taken[rows, cells[..., 0], cells[..., 1]] = True
    lots = np.where(taken, 0.0, random.random(taken.shape)).reshape(len(taken), -1)
    best = lots.argmax(axis=1)
    holes = np.array(boards.holes).reshape(len(taken), -1)
    holes[rows[:, 0], best] |= lots[rows[:, 0], best] > 0
    return Board(holes.reshape(boards.holes.shape), boards.starts, boards.goals)  # type: ignore[arg-type]
