"""Optimal plans and certificates for three and more agents, on batches of one map size.

Exact optima of every pair bound a depth-first search (`core_jax.search`), which solves most boards within a few steps.
The others are looked at more closely: three agents by a flood of all their joint states, which proves what has no
plan, and a search without limit; more agents through the optima of all but one of them, which raise the bounds. A
search of four or more agents that is not finished within its budget leaves its board undecided.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any, TypeVar

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linprog

from core_jax.bitboards import BOARDS_PER_WORD, pack, side
from core_jax.labels import concatenate
from core_jax.pairs import teams
from core_jax.parallel import on_all_cores
from core_jax.plans import pad_moves, trimmed
from core_jax.search import BIG, FAR, PARK, Found, Mode, Search, Team, advance, begin, pair_index, pairs_of, root_bounds
from core_jax.triples import triple_optima
from core_jax.types import PAD, Board, Certificate, Labels, Status

T = TypeVar("T")
LANES = 32  # searches side by side; the few hard ones go on in smaller groups
LARGEST_GROUP = 4  # of agents, whose optima bound those of a larger team
ORDERS = 4  # of the agents, in which a hard board is searched
TEAMS = 256  # labelled at once
HARD_TEAMS = 16  # looked at closely at once, for the memory that their parts take
LOOKS = (40, 256)  # steps for each agent, of the first and the second look at a board
OBJECTIVES = (Mode.COSTS, Mode.MAKESPAN)
BUDGET = 1 << 15  # steps of a search for four or more agents, after which a board stays undecided
MEMORY, HARD_MEMORY = 1 << 9, 1 << 14  # failed states that a search remembers


@flax.struct.dataclass
class Optimum:
    """What is known of one objective on B boards, numpy arrays.

    found: bool [B], a plan reaches `bound`, int32 [B], a lower bound of the optimum (BIG: there is no plan). waits:
    bool [B], no plan without waits does. moves: int8 [B, K, T], where found.
    """

    found: np.ndarray
    bound: np.ndarray
    waits: np.ndarray
    moves: np.ndarray


@flax.struct.dataclass
class Bounds:
    """Lower bounds int32 [B]: of the sum of costs, the same without waits, and of the makespan."""

    cost: np.ndarray
    moving: np.ndarray
    makespan: np.ndarray

    def of(self, objective: Mode) -> tuple[np.ndarray, np.ndarray]:
        """The bound of one objective, and that of the sum of costs without waits."""
        return self.makespan if objective == Mode.MAKESPAN else self.cost, self.moving


def solve_teams(boards: Board, distance: np.ndarray, makespan_plans: bool = False, budget: int = BUDGET) -> Labels:
    """Labels B boards of three or more agents, numpy arrays throughout.

    Args: distance, int16 [B, K, n, n] as from `core_jax.shortest.distances`; budget, the steps of the last search for
    four or more agents, after which a board is undecided.
    """
    parts = []
    for first in range(0, len(boards.starts), TEAMS):
        some = rows_of((boards, distance), np.arange(first, min(first + TEAMS, len(boards.starts))))
        parts.append(_labels(_teams(*some), makespan_plans, budget))
    return concatenate(parts)


def _teams(boards: Board, distance: np.ndarray) -> Team:
    count = len(boards.starts)

    def of_word(first: int) -> Team:
        rows = np.minimum(np.arange(first, first + BOARDS_PER_WORD), count - 1)
        return rows_of(teams(*rows_of((boards, distance), rows)), np.arange(min(BOARDS_PER_WORD, count - first)))

    return _joined(on_all_cores(of_word, range(0, count, BOARDS_PER_WORD)))


def _labels(team: Team, makespan_plans: bool, budget: int) -> Labels:
    costs, arrivals = optima(team, budget)
    least_cost, least_makespan = map(np.asarray, _root_bounds(team))
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


def optima(team: Team, budget: int = BUDGET) -> tuple[Optimum, Optimum]:
    """The optimal sum of costs and the optimal makespan of B teams, as far as they are found.

    team: numpy arrays with leading axis B. budget: steps of the last search for four or more agents; three are always
    decided.
    """
    cost, makespan = map(np.asarray, _root_bounds(team))
    bounds = Bounds(cost, cost, makespan)
    three = team.goals.shape[1] == 3
    costs, arrivals = (
        _look(team, objective, *bounds.of(objective), LOOKS if three else LOOKS[:1]) for objective in OBJECTIVES
    )
    hard = np.flatnonzero((cost < BIG) & ~(costs.found & arrivals.found))
    for first in range(0, len(hard), HARD_TEAMS):
        rows = hard[first : first + HARD_TEAMS]
        some = rows_of(team, rows)
        closer = Bounds(*_flooded(some)) if three else _bounds_of_groups(some)
        costs = _finished(some, Mode.COSTS, closer, costs, rows, budget)
        arrivals = _finished(some, Mode.MAKESPAN, closer, arrivals, rows, budget)
    return costs, arrivals


def rows_of(batch: T, rows: np.ndarray) -> T:
    """Some rows of a batch, as numpy arrays."""
    return jax.tree.map(lambda field: np.asarray(field)[rows], batch)


_root_bounds = jax.jit(jax.vmap(root_bounds))


def _look(team: Team, objective: Mode, lower: np.ndarray, moving: np.ndarray, looks: Sequence[int]) -> Optimum:
    """A search for each team, LANES of them side by side; what is not found in so many steps is tried again in more.

    lower, moving: int32 [B], lower bounds of the optimum, and of the sum of costs without waits. looks: the steps for
    each agent, of one look after the other.
    """
    known = _unknown(lower, team.goals.shape[1])
    for steps in looks:
        rows = np.flatnonzero(~known.found & (lower < BIG))
        limit = np.int32(steps * team.goals.shape[1])

        def of_group(first: int, rows: np.ndarray = rows, limit: np.int32 = limit) -> Optimum:
            places = np.arange(first, first + LANES)
            group = rows[np.minimum(places, len(rows) - 1)]
            bound = np.where(places < len(rows), lower[group], BIG)
            found = _run(MEMORY, False, rows_of(team, group), int(objective), bound, moving[group], limit)
            return _read(found, np.arange(min(LANES, len(rows) - first)))

        if len(rows):
            known = _replaced(known, rows, _stacked(on_all_cores(of_group, range(0, len(rows), LANES))))
    return known


def _finished(team: Team, objective: Mode, bounds: Bounds, known: Optimum, rows: np.ndarray, budget: int) -> Optimum:
    """`known` with what is found for its unfinished `rows`, whose team and bounds are given."""
    lower, moving = bounds.of(objective)
    better = _unknown(lower, team.goals.shape[1])
    left = np.flatnonzero(~known.found[rows])
    better = _replaced(better, left, _look(rows_of(team, left), objective, lower[left], moving[left], LOOKS[1:]))
    left = left[~better.found[left] & (lower[left] < BIG)]
    if len(left):
        longer = _long_look(rows_of(team, left), objective, better.bound[left], moving[left], budget)
        better = _replaced(better, left, longer)
    new = ~known.found[rows]
    return _replaced(known, rows[new], rows_of(better, new))


def _long_look(team: Team, objective: Mode, lower: np.ndarray, moving: np.ndarray, budget: int) -> Optimum:
    """A search of at most `budget` steps for each team, in several orders of its agents at once.

    The first plan counts: depth-first searches that differ in their order end early or late by chance (Gomes & Selman
    2001). Three agents, whose optima are known to exist, are searched until they are found.
    """
    orders = _orders(team.goals.shape[1])

    def of_team(row: int) -> Optimum:
        one = rows_of(team, np.full(1, row))
        variants = _joined([reordered(one, order) for order in orders])
        bound, steps = np.full(len(orders), lower[row]), budget
        while True:
            found = _run(HARD_MEMORY, True, variants, int(objective), bound, np.full_like(bound, moving[row]), steps)
            bound = np.full_like(bound, np.max(found.bound))  # what one order has ruled out, no other can find
            best = int(np.argmax(np.asarray(found.found) == Found.PLAN))
            answer = _read(found, np.array([best]))
            if answer.found[0] or len(orders[0]) > 3:
                break
            steps *= 4
        back = np.argsort(orders[best])
        return dataclasses.replace(
            answer, moves=answer.moves[:, back], bound=np.where(answer.found, answer.bound, bound[:1])
        )

    return _stacked(on_all_cores(of_team, range(len(lower))))


def _orders(agents: int) -> np.ndarray:
    """ORDERS orders of the agents, different as long as there are so many."""
    every = np.array(list(itertools.permutations(range(agents))))
    return every[np.linspace(0, len(every) - 1, ORDERS).astype(int)]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _run(memory, together, team, objective, bound, moving, steps) -> Search:
    """Searches until all have ended (any has, if `together`) or made so many steps."""
    horizon = max(64, 16 * side(team.distance.shape[-1]))
    start = jax.vmap(functools.partial(begin, horizon, memory), in_axes=(0, None, 0, 0))
    forward = jax.vmap(advance)

    def going(carry):
        step, searches = carry
        ended = together & jnp.any(searches.found == Found.PLAN)
        return (step < steps) & jnp.any(searches.found == Found.SEARCHING) & ~ended

    first = (jnp.int32(0), start(team, objective, bound, moving))
    return jax.lax.while_loop(going, lambda carry: (carry[0] + 1, forward(team, carry[1])), first)[1]


def _stacked(parts: Sequence[Optimum]) -> Optimum:
    horizon = max(part.moves.shape[-1] for part in parts)
    padded = [dataclasses.replace(part, moves=pad_moves(part.moves, horizon)) for part in parts]
    return Optimum(*map(np.concatenate, zip(*map(_fields, padded), strict=True)))


def _fields(record: Any) -> list[np.ndarray]:
    return [getattr(record, field.name) for field in dataclasses.fields(record)]


def _read(searches: Search, lanes: np.ndarray) -> Optimum:
    found = np.asarray(searches.found)[lanes] == Found.PLAN
    choice, time = np.asarray(searches.choice)[lanes], np.asarray(searches.time)[lanes]
    moves = np.moveaxis(choice, 1, 2).copy()
    steps = np.arange(moves.shape[-1])
    moves[(moves == PARK) | (steps >= time[:, None, None]) | ~found[:, None, None]] = PAD
    waits = np.asarray(searches.mode)[lanes] == Mode.COSTS
    return Optimum(found, np.asarray(searches.bound)[lanes], waits, trimmed(moves))


def _unknown(lower: np.ndarray, agents: int) -> Optimum:
    """Nothing but bounds."""
    no = np.zeros(len(lower), bool)
    return Optimum(no, lower, no, np.zeros((len(lower), agents, 0), np.int8))


def _replaced(known: Optimum, rows: np.ndarray, better: Optimum) -> Optimum:
    """`known` with `better` in some rows; plans are padded to one length."""
    horizon = max(known.moves.shape[-1], better.moves.shape[-1])
    fields = []
    for old, new in zip(_fields(known), _fields(better), strict=True):
        if old.ndim == 3:
            old, new = pad_moves(old, horizon), pad_moves(new, horizon)
        old = old.copy()
        old[rows] = new
        fields.append(old)
    return Optimum(*fields)


def _bounds_of_groups(team: Team) -> Bounds:
    """Lower bounds for hard teams from the optima of their parts: every three agents, then every four ...

    Three agents are flooded where a short search does not find their optima, so that a team of three has its optima.
    """
    agents = team.goals.shape[1]
    known = _pair_optima(team)
    for members in range(3, min(agents, LARGEST_GROUP + 1)):
        groups = list(itertools.combinations(range(agents), members))
        begin_with = [_least_bounds(team, known, group) for group in groups]
        parts = [without(team, [agent for agent in range(agents) if agent not in group]) for group in groups]
        found = _group_optima(_joined(parts), _joined(begin_with), members)
        for place, group in enumerate(groups):
            here = slice(place * len(team.goals), (place + 1) * len(team.goals))
            known[group] = Bounds(found.cost[here], found.moving[here], found.makespan[here])
    return _least_bounds(team, known, tuple(range(agents)))


def _pair_optima(team: Team) -> dict[tuple[int, ...], Bounds]:
    """What the tables say of each pair of agents from its starts."""
    at = team.pairs[
        np.arange(len(team.goals))[:, None, None],
        np.array([Mode.COSTS, Mode.MOVING, Mode.MAKESPAN])[:, None],
        np.arange(team.pairs.shape[2]),
        team.starts[:, None, pairs_of(team.goals.shape[1])[:, 0]],
        team.starts[:, None, pairs_of(team.goals.shape[1])[:, 1]],
    ].astype(int)
    return {pair: Bounds(*at[:, :, place].T) for pair, place in pair_index(team.goals.shape[1]).items()}


def _group_optima(team: Team, bounds: Bounds, members: int) -> Bounds:
    """The optima of parts of teams, or bounds of them where they are not found; BIG where there is no plan."""
    costs, arrivals = (_look(team, objective, *bounds.of(objective), LOOKS) for objective in OBJECTIVES)
    cost, makespan = costs.bound.copy(), arrivals.bound.copy()
    moving = np.maximum(bounds.moving, cost + (costs.waits & costs.found))
    hard = np.flatnonzero((cost < BIG) & ~(costs.found & arrivals.found))
    if members == 3 and len(hard):
        cost[hard], moving[hard], makespan[hard] = _flooded(rows_of(team, hard))
    return Bounds(cost, moving, makespan)


def _flooded(team: Team) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum of costs, a bound of it without waits, and makespan, int32 [B], of B teams of which three agents are present.

    By exhaustive flood; BIG where there is no plan.
    """
    count = len(team.goals)
    present = np.argsort(team.absent, axis=1, kind="stable")[:, :3]

    def of_word(first: int) -> tuple[np.ndarray, ...]:
        rows = np.minimum(np.arange(first, first + BOARDS_PER_WORD), count - 1)
        three = (field[rows[:, None], present[rows]] for field in (team.distance, team.goals, team.starts))
        return tuple(np.asarray(label)[: count - first] for label in _triple_optima(*three))

    words = range(0, count, BOARDS_PER_WORD)
    parts = on_all_cores(of_word, words)
    makespan, cost, waits = map(np.concatenate, zip(*parts, strict=True))
    cost = np.where(cost < 0, BIG, cost)
    return cost, cost + waits, np.where(makespan < 0, BIG, makespan)


@jax.jit
def _triple_optima(distance: jax.Array, goals: jax.Array, starts: jax.Array) -> tuple[jax.Array, ...]:
    free = pack(jnp.any(distance < FAR, axis=1))  # no agent leaves the cells that its goal is reached from
    return triple_optima(side(distance.shape[-1]), free, goals.T, starts.T)


def _least_bounds(team: Team, known: dict[tuple[int, ...], Bounds], group: tuple[int, ...]) -> Bounds:
    """Lower bounds for a group of agents from those of its parts."""
    if group in known:
        return known[group]
    parts = [part for part in known if set(part) <= set(group)]
    makespan = np.max([known[part].makespan for part in parts], axis=0)
    members = np.array([[agent in part for agent in group] for part in parts])
    alone = team.distance[np.arange(len(team.goals))[:, None], list(group), team.starts[:, list(group)]].astype(int)
    cost, moving = (
        np.array([_least_sum(members, *paid) for paid in zip(alone, np.stack(paid_by, axis=1), strict=True)])
        for paid_by in ([known[part].cost for part in parts], [known[part].moving for part in parts])
    )
    return Bounds(cost, moving, np.where(cost >= BIG, BIG, makespan))


def _least_sum(members: np.ndarray, alone: np.ndarray, groups: np.ndarray) -> int:
    """The least sum of costs when each group of agents pays at least so much: a linear program, rounded up."""
    if groups.max() >= BIG:
        return BIG
    if np.all(members @ alone >= groups):
        return int(alone.sum())
    answer = linprog(np.ones(len(alone)), A_ub=-members.astype(float), b_ub=-groups, bounds=[(d, None) for d in alone])
    return int(np.ceil(answer.fun - 1e-6))


def _joined(parts: list[T]) -> T:
    """One batch from several of the same shapes."""
    return jax.tree.map(lambda *fields: np.concatenate(fields), *parts)


def without(team: Team, agents: Sequence[int]) -> Team:
    """B teams in which some agents are absent: they are nowhere, in nobody's way, and cost nothing.

    The arrays keep their shapes, so that one program serves a team and all its parts.
    """
    absent = team.absent.copy()
    starts, goals, distance, alone, pairs = (
        field.copy() for field in (team.starts, team.goals, team.distance, team.alone, team.pairs)
    )
    nowhere = distance.shape[-1] - 1  # the last cell of the added column: never free
    for agent in agents:
        absent[:, agent] = True
        starts[:, agent] = goals[:, agent] = nowhere
        distance[:, agent], alone[:, agent] = FAR, 0
        distance[:, agent, nowhere] = 0
    for agent in agents:
        alone[:, :, agent] = distance
        for place, (first, second) in enumerate(pairs_of(absent.shape[1])):
            if first == agent:
                pairs[:, :, place] = distance[:, None, second, None, :]
            elif second == agent:
                pairs[:, :, place] = distance[:, None, first, :, None]
    return Team(absent, starts, goals, distance, alone, pairs)


def reordered(team: Team, order: np.ndarray) -> Team:
    """B teams with their agents in another order."""
    place = pair_index(len(order))
    pairs = [
        team.pairs[:, :, place[first, second]]
        if first < second
        else np.swapaxes(team.pairs[:, :, place[second, first]], -1, -2)
        for first, second in order[pairs_of(len(order))].tolist()
    ]
    return Team(
        absent=team.absent[:, order],
        starts=team.starts[:, order],
        goals=team.goals[:, order],
        distance=team.distance[:, order],
        alone=team.alone[:, order][:, :, order],
        pairs=np.stack(pairs, axis=2),  # type: ignore[arg-type]
    )
