"""Optimal plans and certificates for three and more agents, on batches of one map size.

Exact optima of every pair bound a depth-first search (`core_jax.solver.teams.search`), which solves most boards within
a few steps. What it leaves open goes, board by board, to a satisfiability solver
(`core_jax.solver.teams.satisfiability`); that a board has no plan is shown by looking at all its joint states
(`core_jax.solver.teams.reachability`). An optimum far above its bound, which the solver does not come to, is one of
agents who have little room: then their joint states are few, and all of them are flooded
(`core_jax.solver.teams.exhaustive`). Three agents are always decided; a search for four or more that is not finished
within its budget leaves its board undecided.
"""

import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from core_jax.lake import BOARDS_PER_WORD, concatenate, side
from core_jax.solver.shortest_paths import FAR
from core_jax.solver.teams.exhaustive import Flood
from core_jax.solver.teams.pair_tables import teams
from core_jax.solver.teams.parallel_search import Optimum, look, replaced, stacked
from core_jax.solver.teams.reachability import solvable, steps_of
from core_jax.solver.teams.satisfiability import WINDOW, Answer, Puzzle, optimal_plan
from core_jax.solver.teams.search import BIG, Mode, root_bounds
from core_jax.solver.teams.team import Team, joined, pairs_of, rows_of
from core_jax.support import in_phase, on_all_cores, workers
from core_jax.types import PAD, Board, Certificate, Labels, Status

BUDGET = 1 << 16  # conflicts of the satisfiability solver, after which a board of four or more agents stays undecided
STATES = 1 << 22  # joint states of four or more agents that are looked at to show that there is no plan
PATIENCE = 1 << 12  # conflicts, after which a board is flooded that has, in all, no more joint moves than so many:
JOINT_MOVES, JOINT_MOVES_OF_THREE = 1 << 26, 1 << 28
UNLIMITED = 1 << 62
TABLE_BYTES = 1 << 29  # of the tables of teams that are labelled at once


def solve_teams(boards: Board, distance: np.ndarray, makespan_plans: bool = False, budget: int = BUDGET) -> Labels:
    """Labels B boards of three or more agents, numpy arrays throughout.

    Args: distance, int16 [B, K, n, n] as from `core_jax.solver.shortest_paths.distances`; budget, the
    conflicts of the satisfiability solver for four or more agents, after which a board is undecided.
    """
    prepared(boards.holes.shape[-1], boards.starts.shape[1]).result()
    return _in_parts(boards, distance, makespan_plans, budget)


@functools.cache
def prepared(size: int, agents: int) -> Future[Labels]:
    """The programs of `solve_teams`, compiled in a thread of its own once this is called.

    They take as long to compile as all that comes before them: to be called before that.
    """
    home = np.argwhere(np.ones((size, size), bool))[:agents].astype(np.int32)[None]
    board = Board(np.zeros((1, size, size), bool), home, home)  # type: ignore[arg-type]
    thread = ThreadPoolExecutor(1)
    found = thread.submit(_in_parts, board, np.zeros((1, agents, size, size), np.int16), False, BUDGET)
    thread.shutdown(wait=False)
    return found


def _in_parts(boards: Board, distance: np.ndarray, makespan_plans: bool, budget: int) -> Labels:
    count = len(boards.starts)
    # A part a worker: while one is searched for by the device, the formulas of another are solved on the host.
    share = -(-count // (workers() * BOARDS_PER_WORD)) * BOARDS_PER_WORD
    at_once = min(share, teams_at_once(boards.holes.shape[-1], boards.starts.shape[1]))

    def of_part(first: int) -> Labels:
        some = rows_of((boards, distance), np.arange(first, min(first + at_once, count)))
        return _labels(*some, makespan_plans, budget)

    return concatenate(on_all_cores(of_part, range(0, count, at_once)))


def teams_at_once(size: int, agents: int) -> int:
    """How many teams a worker labels at once, for the memory that the tables of all workers take."""
    table = 3 * agents * (agents - 1) // 2 * (size * (size + 1)) ** 2
    return max(BOARDS_PER_WORD, TABLE_BYTES // (workers() * table) // BOARDS_PER_WORD * BOARDS_PER_WORD)


def _teams(boards: Board, distance: np.ndarray) -> tuple[Team, np.ndarray, np.ndarray]:
    """The teams of B boards, and by their pairs lower bounds int32 [B] of the sum of costs and of the makespan."""
    count = len(boards.starts)

    def of_word(first: int) -> tuple[Team, Any, Any]:
        rows = np.minimum(np.arange(first, first + BOARDS_PER_WORD), count - 1)
        team = teams(*rows_of((boards, distance), rows))
        return rows_of((team, *_root_bounds(team)), np.arange(min(BOARDS_PER_WORD, count - first)))

    words = range(0, count, BOARDS_PER_WORD)
    return joined(on_all_cores(lambda first: in_phase("tables of pairs", of_word, first), words))


_root_bounds = jax.jit(jax.vmap(root_bounds))


def _labels(boards: Board, distance: np.ndarray, makespan_plans: bool, budget: int) -> Labels:
    team, least_cost, least_makespan = _teams(boards, distance)
    puzzle = functools.partial(_puzzle, boards, distance, team)
    arrivals = _optimum(team, puzzle, Mode.MAKESPAN, least_makespan, budget)
    # What the makespan has shown to have no plan is not looked at again.
    least = np.where(arrivals.bound < BIG, np.maximum(least_cost, _least_cost(team, arrivals.bound)), BIG)
    costs = _optimum(team, puzzle, Mode.COSTS, least, budget)
    unsolvable, solvable = costs.bound >= BIG, costs.found & arrivals.found
    bound_met = (costs.bound == least_cost) & ~costs.waits & (arrivals.bound == least_makespan)
    certificate = np.where(unsolvable, Certificate.FLOOD, np.where(bound_met, Certificate.BOUND, Certificate.SEARCH))

    def where_solvable(field: np.ndarray, otherwise: int) -> np.ndarray:
        return np.where(solvable.reshape(-1, *[1] * (field.ndim - 1)), field, otherwise).astype(field.dtype)

    labels: dict[str, Any] = {
        "status": np.where(solvable, Status.SOLVABLE, np.where(unsolvable, Status.UNSOLVABLE, Status.UNDECIDED)),
        "certificate": np.where(solvable | unsolvable, certificate, Certificate.NONE),
        "makespan": where_solvable(arrivals.bound, -1),
        "sum_of_costs": where_solvable(costs.bound, -1),
        "wait_required": costs.waits & solvable,
        "moves": where_solvable(costs.moves, PAD),
        "makespan_moves": where_solvable(arrivals.moves, PAD) if makespan_plans else None,
    }
    return Labels(**labels)


def _least_cost(team: Team, makespan: np.ndarray) -> np.ndarray:
    """The least sum of costs int32 [B] where somebody comes home no sooner than `makespan`, int32 [B]."""
    every = np.arange(len(team.goals))[:, None], np.arange(team.goals.shape[1])
    alone = np.asarray(team.distance)[*every, team.starts].astype(int)
    return np.sum(alone, axis=1) + np.maximum(0, makespan - np.max(alone, axis=1))


def _optimum(team: Team, puzzle: Callable[[int], Puzzle], objective: Mode, lower: np.ndarray, budget: int) -> Optimum:
    """The optimal sum of costs, or makespan, of B teams, as far as it is found.

    team: numpy arrays; puzzle, of each row. lower: int32 [B], a lower bound of the optimum, BIG where there is no plan;
    for the sum of costs it must be BIG if there is none.
    """
    agents = team.goals.shape[1]
    known = look(team, objective, lower)
    hard = np.flatnonzero((lower < BIG) & ~known.found)
    if not len(hard):
        return known

    def of_row(row: int) -> Optimum:
        limit = budget if agents > 3 else UNLIMITED
        return _as_optimum(_answer(puzzle(row), objective, int(known.bound[row]), limit), agents)

    return replaced(known, hard, stacked(on_all_cores(of_row, hard.tolist())))


def _answer(puzzle: Puzzle, objective: Mode, lower: int, budget: int) -> Answer:
    """An optimal plan; first a few bounds are tried, then it is made sure that there is a plan at all."""
    answer = in_phase("formulas", optimal_plan, puzzle, objective, lower, budget, most=lower + WINDOW)
    if answer.moves is not None:
        return answer
    three, cells = len(puzzle.starts) == 3, _cells(puzzle)
    limit = UNLIMITED if three else STATES
    if objective == Mode.MAKESPAN and in_phase("reachability", solvable, *cells, limit) is False:
        return Answer(None, BIG, False)
    flood = Flood(*cells)
    small = flood.joint_moves <= (JOINT_MOVES_OF_THREE if three else JOINT_MOVES)
    budget = min(budget, PATIENCE) if small else budget
    answer = in_phase("formulas", optimal_plan, puzzle, objective, answer.bound, budget)
    if answer.moves is None and small:
        flooded = flood.makespan if objective == Mode.MAKESPAN else flood.sum_of_costs
        answer = Answer(*in_phase("floods of all joint states", flooded))
    return answer


def _cells(puzzle: Puzzle) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `core_jax.solver.teams.reachability` asks for; no agent leaves the cells that its goal is reached from."""
    size = side(puzzle.distance.shape[1])
    free = (puzzle.distance < FAR).any(axis=0).reshape(size, size + 1)[:, :size]
    starts, goals = (cells // (size + 1) * size + cells % (size + 1) for cells in (puzzle.starts, puzzle.goals))
    return steps_of(~free), starts, goals


def _puzzle(boards: Board, distance: np.ndarray, team: Team, row: int) -> Puzzle:
    """One of B boards, with exact distances; a team has bytes."""
    agents = distance.shape[1]
    first, second = pairs_of(agents).T
    starts, goals = (np.asarray(cells)[row].astype(int) for cells in (team.starts, team.goals))
    padded = np.pad(distance[row].astype(int), ((0, 0), (0, 0), (0, 1)), constant_values=FAR).reshape(agents, -1)
    pair_costs = np.zeros((agents, agents), int)
    pair_costs[first, second] = team.pairs[row, Mode.COSTS, np.arange(len(first)), starts[first], starts[second]]
    return Puzzle(starts, goals, padded, pair_costs)


def _as_optimum(answer: Answer, agents: int) -> Optimum:
    moves = np.zeros((agents, 0), np.int8) if answer.moves is None else answer.moves
    found = answer.moves is not None
    return Optimum(np.array([found]), np.array([answer.bound]), np.array([answer.waits]), moves[None])
