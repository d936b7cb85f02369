"""Optimal plans and certificates for three and more agents, on batches of one map size.

Exact optima of every pair bound a depth-first search (`core_jax.search`), which solves most boards within a few steps.
The others are looked at more closely: three agents by a flood of all their joint states, which proves what has no
plan, and a search without limit; more agents through the optima of their groups of three and four, which raise the
bounds. A search of four or more agents that is not finished within its budget leaves its board undecided.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linprog

from core_jax.bitboards import BOARDS_PER_WORD, pack, side
from core_jax.labels import concatenate
from core_jax.looks import LOOKS, Optimum, long_look, look, replaced
from core_jax.pairs import teams
from core_jax.parallel import on_all_cores
from core_jax.search import BIG, Mode, root_bounds
from core_jax.team import FAR, Team, joined, pair_index, pairs_of, rows_of, without
from core_jax.triples import triple_cost_flood, triple_makespan_flood
from core_jax.types import PAD, Board, Certificate, Labels, Status

BUDGET = 1 << 14  # steps of the last search for four or more agents, after which a board stays undecided
TABLE_BYTES = 1 << 29  # of the tables of teams that are labelled at once
GROUPED = 48  # hard teams whose groups are looked at at once
LARGEST_GROUP = 4  # of agents, whose optima bound those of a larger team
Bounds = tuple[np.ndarray, np.ndarray]  # lower bounds int32 [B] of an optimum, and of the sum of costs without waits


def solve_teams(boards: Board, distance: np.ndarray, makespan_plans: bool = False, budget: int = BUDGET) -> Labels:
    """Labels B boards of three or more agents, numpy arrays throughout.

    Args: distance, int16 [B, K, n, n] as from `core_jax.shortest.distances`; budget, the steps of the last search for
    four or more agents, after which a board is undecided.
    """
    at_once = teams_at_once(boards.holes.shape[-1], boards.starts.shape[1])
    parts = []
    for first in range(0, len(boards.starts), at_once):
        some = rows_of((boards, distance), np.arange(first, min(first + at_once, len(boards.starts))))
        parts.append(_labels(*_teams(*some), makespan_plans, budget))
    return concatenate(parts)


def teams_at_once(size: int, agents: int) -> int:
    """How many teams are labelled at once, for the memory that their tables take."""
    table = 3 * agents * (agents - 1) // 2 * (size * (size + 1)) ** 2
    return max(BOARDS_PER_WORD, TABLE_BYTES // table // BOARDS_PER_WORD * BOARDS_PER_WORD)


def _teams(boards: Board, distance: np.ndarray) -> tuple[Team, np.ndarray, np.ndarray]:
    """The teams of B boards, and by their pairs lower bounds int32 [B] of the sum of costs and of the makespan."""
    count = len(boards.starts)

    def of_word(first: int) -> tuple[Team, Any, Any]:
        rows = np.minimum(np.arange(first, first + BOARDS_PER_WORD), count - 1)
        team = teams(*rows_of((boards, distance), rows))
        return rows_of((team, *_root_bounds(team)), np.arange(min(BOARDS_PER_WORD, count - first)))

    return joined(on_all_cores(of_word, range(0, count, BOARDS_PER_WORD)))


_root_bounds = jax.jit(jax.vmap(root_bounds))


def _labels(
    team: Team, least_cost: np.ndarray, least_makespan: np.ndarray, makespan_plans: bool, budget: int
) -> Labels:
    arrivals = optimum(team, Mode.MAKESPAN, least_makespan, budget)
    # What the makespan has shown to have no plan is not looked at again.
    costs = optimum(team, Mode.COSTS, np.where(arrivals.bound < BIG, least_cost, BIG), budget)
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


def optimum(team: Team, objective: Mode, lower: np.ndarray, budget: int = BUDGET) -> Optimum:
    """The optimal sum of costs, or makespan, of B teams, as far as it is found; three agents are always decided.

    team: numpy arrays. lower: int32 [B], a lower bound of the optimum, BIG where there is no plan; for three agents and
    the sum of costs it must be BIG if there is none. budget: steps of the last search for four or more agents.
    """
    three = team.goals.shape[1] == 3
    known = look(team, objective, lower, lower, LOOKS if three else LOOKS[:1])
    hard = np.flatnonzero((lower < BIG) & ~known.found)
    at_once = len(hard) if three else GROUPED
    for first in range(0, len(hard), max(at_once, 1)):
        rows = hard[first : first + at_once]
        some = rows_of(team, rows)
        bound, moving = _flooded(some, objective, known.bound[rows]) if three else _bounds_of_groups(some, objective)
        bound = np.maximum(bound, known.bound[rows])
        known = replaced(known, rows, _closer_look(some, objective, bound, moving, budget))
    return known


def _closer_look(team: Team, objective: Mode, lower: np.ndarray, moving: np.ndarray, budget: int) -> Optimum:
    found = look(team, objective, lower, moving, LOOKS[1:])
    left = np.flatnonzero(~found.found & (lower < BIG))
    if len(left):
        longer = long_look(rows_of(team, left), objective, found.bound[left], moving[left], budget)
        found = replaced(found, left, longer)
    return found


def _bounds_of_groups(team: Team, objective: Mode) -> Bounds:
    """Lower bounds for hard teams from the optima of their groups of three agents, then of four."""
    agents, count = team.goals.shape[1], len(team.goals)
    known = _pair_optima(team, objective)
    for members in range(3, min(agents, LARGEST_GROUP + 1)):
        groups = list(itertools.combinations(range(agents), members))
        parts = joined([without(team, [agent for agent in range(agents) if agent not in group]) for group in groups])
        lower, moving = joined([_least_bounds(team, objective, known, group) for group in groups])
        found = look(parts, objective, lower, moving, LOOKS[:2])
        lower, moving = found.bound.copy(), np.maximum(moving, found.bound + (found.waits & found.found))
        hard = np.flatnonzero((lower < BIG) & ~found.found)
        if members == 3 and len(hard):
            lower[hard], moving[hard] = _flooded(rows_of(parts, hard), objective, lower[hard])
        for place, group in enumerate(groups):
            here = slice(place * count, (place + 1) * count)
            known[group] = lower[here], moving[here]
    return _least_bounds(team, objective, known, tuple(range(agents)))


def _pair_optima(team: Team, objective: Mode) -> dict[tuple[int, ...], Bounds]:
    """What the tables say of each pair of agents from its starts."""
    first, second = (team.starts[:, ends] for ends in pairs_of(team.goals.shape[1]).T)
    every, pairs = np.arange(len(team.goals))[:, None], np.arange(team.pairs.shape[2])
    costs = [np.asarray(team.pairs)[every, mode, pairs, first, second].astype(int) for mode in (objective, Mode.MOVING)]
    lower, moving = (np.where(cost == FAR, BIG, cost) for cost in costs)
    return {pair: (lower[:, place], moving[:, place]) for pair, place in pair_index(team.goals.shape[1]).items()}


def _least_bounds(team: Team, objective: Mode, known: dict[tuple[int, ...], Bounds], group: tuple[int, ...]) -> Bounds:
    """Lower bounds for a group of agents from those of its parts."""
    parts = [part for part in known if set(part) <= set(group)]
    lower, moving = (np.stack([known[part][kind] for part in parts], axis=1) for kind in (0, 1))
    if objective == Mode.MAKESPAN:
        return lower.max(axis=1), moving.max(axis=1)
    members = np.array([[agent in part for agent in group] for part in parts])
    every = np.arange(len(team.goals))[:, None]
    alone = np.asarray(team.distance)[every, list(group), team.starts[:, list(group)]].astype(int)
    return _least_sums(members, alone, lower), _least_sums(members, alone, moving)


def _least_sums(members: np.ndarray, alone: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The least sum of costs when each group of agents pays at least so much: a linear program, rounded up.

    Args: members bool [G, K]; alone int [B, K], what each agent pays at least; groups int [B, G].
    """
    sums = np.where(groups.max(axis=1) >= BIG, BIG, alone.sum(axis=1))
    for row in np.flatnonzero((groups > alone @ members.T).any(axis=1) & (sums < BIG)):
        limits = [(least, None) for least in alone[row]]
        answer = linprog(np.ones(alone.shape[1]), A_ub=-members.astype(float), b_ub=-groups[row], bounds=limits)
        sums[row] = np.ceil(answer.fun - 1e-6)
    return sums


def _flooded(team: Team, objective: Mode, lower: np.ndarray) -> Bounds:
    """Optima of B teams of which three agents are present, by exhaustive flood, and bounds without waits.

    BIG where there is no plan. lower: int32 [B], a lower bound of the optimum.
    """
    count = len(team.goals)
    present = np.argsort(team.absent, axis=1, kind="stable")[:, :3]
    flood = _cost_flood if objective == Mode.COSTS else _makespan_flood

    def of_word(first: int) -> tuple[np.ndarray, ...]:
        rows = np.minimum(np.arange(first, first + BOARDS_PER_WORD), count - 1)
        three = (field[rows[:, None], present[rows]] for field in (team.distance, team.goals, team.starts))
        return rows_of(flood(*three), np.arange(min(BOARDS_PER_WORD, count - first)))

    optimal, waits = joined(on_all_cores(of_word, range(0, count, BOARDS_PER_WORD))) if count else (lower, lower)
    optimal = np.where(optimal < 0, BIG, optimal)
    return optimal, optimal + waits


@jax.jit
def _makespan_flood(distance: jax.Array, goals: jax.Array, starts: jax.Array) -> tuple[jax.Array, jax.Array]:
    makespan = triple_makespan_flood(*_word(distance, goals, starts))
    return makespan, jnp.zeros(BOARDS_PER_WORD, bool)


@jax.jit
def _cost_flood(distance: jax.Array, goals: jax.Array, starts: jax.Array) -> tuple[jax.Array, jax.Array]:
    return triple_cost_flood(*_word(distance, goals, starts))


def _word(distance: jax.Array, goals: jax.Array, starts: jax.Array) -> tuple[int, jax.Array, jax.Array, jax.Array]:
    free = pack(jnp.any(distance < FAR, axis=1))  # no agent leaves the cells that its goal is reached from
    return side(distance.shape[-1]), free, goals.T, starts.T
