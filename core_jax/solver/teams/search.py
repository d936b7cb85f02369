"""Exact search for teams of any size: depth first over joint moves, agent by agent, under lower bounds of pairs.

The optimum of two agents bounds what any team that holds them can do; tables of these optima for every pair (see
`core_jax.solver.teams.pair_tables`) are exact, so a search that never leaves the bound finds most optimal plans without
turning back. When it exhausts a bound, no plan within it exists, and the bound is raised by one: iterative deepening
(Korf 1985). Moves are chosen one agent after the other (operator decomposition: Standley 2010); states that failed are
remembered with the budget that they failed under.

One search is one lane: `advance` takes one step of it. The batch is a vmap of `advance` inside one loop.
"""

import dataclasses
import enum
import functools
import itertools

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from core_jax.lake import offsets, side
from core_jax.solver.teams.team import FAR, Team, pair_index, pairs_of
from core_jax.types import WAIT

PARK = 5  # an agent on its goal stays there for good, and pays no more
OPTIONS = 6  # the moves of `MOVES`, and PARK
BIG = 1 << 12


class Mode(enum.IntEnum):
    """What a bound is on: the sum of costs of plans without waits, or of all plans, or the makespan."""

    MOVING = 0
    COSTS = 1
    MAKESPAN = 2


class Found(enum.IntEnum):
    """How far a search is."""

    SEARCHING = 0
    PLAN = 1
    CUT = 2  # the bound or the plan grew beyond what is searched


@flax.struct.dataclass
class Search:
    """A depth-first search: the path to the present node, and what failed.

    objective, mode, bound, found: int32 [].
    time, agent: int32 [], the next to choose a move. cells: int32 [T + 1, K] and parked: bool [T + 1, K] along the
    path; spent: int32 [T + 1]. choice: int8 [T, K], options; tried: int32 [T, K], the rank of the last option tried.
    keys: uint32 [memory, words] and budgets: int32 [memory], states that failed.
    """

    objective: jax.Array
    mode: jax.Array
    bound: jax.Array
    found: jax.Array
    time: jax.Array
    agent: jax.Array
    cells: jax.Array
    parked: jax.Array
    spent: jax.Array
    choice: jax.Array
    tried: jax.Array
    keys: jax.Array
    budgets: jax.Array


def root_bounds(team: Team) -> tuple[jax.Array, jax.Array]:
    """Lower bounds of sum of costs and of makespan by pairs, each int32 []; BIG where a pair has no way."""
    alone = _alone(team)
    pairs = pairs_of(len(team.goals))
    index = jnp.arange(len(pairs))
    _, both, makespan = team.pairs[:, index, *team.starts[pairs.T]].astype(jnp.int32)
    cost = jnp.sum(alone) + _matched(len(team.goals), jnp.maximum(0, both - jnp.sum(alone[pairs], axis=1))[:, None])[0]
    no_way = jnp.any(both == FAR)
    return jnp.where(no_way, BIG, cost), jnp.where(no_way, BIG, jnp.max(makespan))


def begin(horizon: int, memory: int, team: Team, objective: jax.Array, bound: jax.Array) -> Search:
    """A search that has yet to take its first step, for a plan of at most `horizon` steps, keeping `memory` failures.

    objective: int32 [], Mode.COSTS or Mode.MAKESPAN. bound: int32 [], a lower bound of the optimum. A team with bound
    BIG has no plan: it is not searched.
    """
    agents = len(team.goals)
    words = (agents + 1) // 2 + 1
    home = jnp.all(team.starts == team.goals)
    found = jnp.where(home, Found.PLAN, jnp.where(bound >= BIG, Found.CUT, Found.SEARCHING))
    return Search(
        objective=objective,
        mode=_first_mode(team, objective, bound),
        bound=bound,
        found=found.astype(jnp.int32),
        time=jnp.int32(0),
        agent=jnp.int32(0),
        cells=jnp.broadcast_to(team.starts, (horizon + 1, agents)).astype(jnp.int32),
        parked=jnp.zeros((horizon + 1, agents), bool),
        spent=jnp.zeros(horizon + 1, jnp.int32),
        choice=jnp.zeros((horizon, agents), jnp.int8),
        tried=jnp.full((horizon, agents), -1, jnp.int32),
        keys=jnp.zeros((memory, words), jnp.uint32),
        budgets=jnp.full(memory, -1, jnp.int32),
    )


def advance(team: Team, search: Search) -> Search:
    """One step of a search: the next option of the next agent, or back where none is left."""
    agents = team.goals.shape[0]
    time, agent = search.time, search.agent
    cells, parked, spent = search.cells[time], search.parked[time], search.spent[time]
    options = _options(team, search.mode, cells, parked)
    bounds = spent + _bounds(team, search.mode, cells, parked, options, agent, search.choice[time])
    rank = bounds * OPTIONS + jnp.array([1, 2, 3, 4, 5, 0])
    open_ones = (rank > search.tried[time, agent]) & (bounds <= search.bound)
    option = jnp.argmin(jnp.where(open_ones, rank, BIG * OPTIONS))
    searching = search.found == Found.SEARCHING
    chosen = searching & jnp.any(open_ones)
    choice = search.choice[time].at[agent].set(option.astype(jnp.int8))
    last = agent == agents - 1

    moved = cells + jnp.array((*offsets(side(team.distance.shape[-1])), 0), jnp.int32)[choice]
    now_parked = choice == PARK
    paid = jnp.where(search.mode == Mode.MAKESPAN, 1, jnp.sum(~now_parked))
    home = jnp.where(search.mode == Mode.MAKESPAN, jnp.all(moved == team.goals), jnp.all(now_parked))
    left = search.bound - spent - paid
    back = searching & ~chosen
    back_in_time = back & (agent == 0)
    # First written, then read: so the memory is changed in place.
    search = _remember(search, back_in_time, cells, parked, search.bound - spent)
    known = _failed(search, moved, now_parked, left)
    down = chosen & last & ~known & ~home
    too_deep = down & (time + 1 >= search.choice.shape[0])
    over = back_in_time & (time == 0)

    nowhere = search.choice.shape[0] + 1
    at = jnp.where(chosen, time, nowhere)
    deeper = jnp.where(down, time + 1, nowhere)
    next_time = jnp.where(down, time + 1, jnp.where(back_in_time & ~over, time - 1, time))
    next_agent = jnp.where(down, 0, jnp.where(chosen & ~last, agent + 1, jnp.where(back, agent - 1, agent)))
    next_agent = jnp.where(back_in_time, jnp.where(over, 0, agents - 1), next_agent)
    fresh_time = jnp.where(over | down | (chosen & ~last), next_time, nowhere)
    tried = search.tried.at[at, agent].set(rank[option], mode="drop").at[fresh_time, next_agent].set(-1, mode="drop")
    # A bound is exhausted: plans with waits come after those without, then the next bound.
    next_bound = search.bound + (search.mode != Mode.MOVING)
    next_mode = jnp.where(search.mode == Mode.MOVING, Mode.COSTS, _first_mode(team, search.objective, next_bound))
    found = jnp.where(chosen & last & home, Found.PLAN, jnp.where(too_deep, Found.CUT, search.found))
    return dataclasses.replace(
        search,
        mode=jnp.where(over, next_mode, search.mode),
        bound=jnp.where(over, next_bound, search.bound),
        found=found.astype(jnp.int32),
        time=jnp.where(chosen & last & home, time + 1, next_time),
        agent=next_agent,
        cells=search.cells.at[deeper].set(moved, mode="drop"),
        parked=search.parked.at[deeper].set(now_parked, mode="drop"),
        spent=search.spent.at[deeper].set(spent + paid, mode="drop"),
        choice=search.choice.at[at, agent].set(option.astype(jnp.int8), mode="drop"),
        tried=tried,
    )


def _first_mode(team: Team, objective: jax.Array, bound: jax.Array) -> jax.Array:
    """Under a bound on the sum of costs plans without waits come first; all of them are even moves from the least."""
    without = (objective == Mode.COSTS) & ((bound - jnp.sum(_alone(team))) % 2 == 0)
    return jnp.where(without, Mode.MOVING, objective).astype(jnp.int32)


def _alone(team: Team) -> jax.Array:
    """The distance of each agent to its goal: int32 [K]."""
    return team.distance[jnp.arange(len(team.goals)), team.starts].astype(jnp.int32)


def _options(team: Team, mode: jax.Array, cells: jax.Array, parked: jax.Array) -> jax.Array:
    """Which options each agent has, bool [K, OPTIONS]; the bounds sort out the holes."""
    kinds = jnp.arange(OPTIONS)
    at_home = (cells == team.goals) & (mode != Mode.MAKESPAN)
    may_wait = mode != Mode.MOVING
    free = jnp.where(kinds == PARK, at_home[:, None], jnp.where(kinds == WAIT, may_wait, True))
    return jnp.where(parked[:, None], kinds == PARK, free)


def _bounds(team: Team, mode, cells, parked, options, agent, choice) -> jax.Array:
    """What the rest of a plan costs at least if `agent` takes each of its options: int32 [OPTIONS].

    Agents before it have made their `choice`; those after it may do what serves best.
    """
    agents, count = team.distance.shape
    by = jnp.array((*offsets(side(count)), 0), jnp.int32)
    targets = cells[:, None] + by  # [K, OPTIONS]
    places = jnp.clip(targets, 0, count - 1)
    on_board = targets == places
    every = jnp.arange(agents)
    decided = every < agent
    options = jnp.where(decided[:, None], jnp.arange(OPTIONS) == choice[:, None], options) & on_board

    pairs = pairs_of(agents)
    first, second = pairs.T

    def of(entries, which):
        """Entries of each pair's first or second agent; slices are faster here than a gather."""
        return jnp.stack([entries[agent] for agent in which])

    index = jnp.arange(len(pairs))[:, None, None]
    both = _look_up(team.pairs, mode, index, of(places, first)[:, :, None], of(places, second)[:, None, :])
    swap = (of(targets, first)[:, :, None] == of(cells, second)[:, None, None]) & (
        of(targets, second)[:, None, :] == of(cells, first)[:, None, None]
    )
    # Where one is parked for good, the other has its way around it.
    around = _look_up(team.alone, every[:, None, None], every[None, :, None], places[:, None, :])
    park = jnp.arange(OPTIONS) == PARK
    first_around = jnp.stack([around[i, j] for i, j in pairs])[:, :, None]  # the second parks
    second_around = jnp.stack([around[j, i] for i, j in pairs])[:, None, :]
    apart = jnp.where(
        park[:, None] & park, 0, jnp.where(park[:, None], second_around, jnp.where(park, first_around, both))
    )
    apart, around = jax.lax.optimization_barrier((apart, around))  # else looked up again for each use
    blocked = swap | (apart >= FAR) | ~of(options, first)[:, :, None] | ~of(options, second)[:, None, :]
    step = 1 - park.astype(jnp.int32)

    def at_option(table):
        """The least over what is open to the others: [P, OPTIONS, OPTIONS] to [P, OPTIONS] by options of `agent`."""
        by_first, by_second = jnp.min(table, axis=2), jnp.min(table, axis=1)
        neither = jnp.min(by_first, axis=1, keepdims=True)
        return jnp.where((first == agent)[:, None], by_first, jnp.where((second == agent)[:, None], by_second, neither))

    makespan = 1 + jnp.max(at_option(jnp.where(blocked, BIG, apart)), axis=0)

    # Sum of costs: what each agent pays beyond its base, alone and in pairs.
    blocking = parked[None, :] & (every[:, None] != every)
    base = jnp.maximum(
        team.distance[every, cells],
        jnp.max(jnp.where(blocking, team.alone[every[:, None], every, cells[:, None]], 0), axis=1),
    ).astype(jnp.int32)
    base = jnp.where(parked, 0, base)
    ahead = jnp.maximum(
        _look_up(team.distance, every[:, None], places), jnp.max(jnp.where(blocking[..., None], around, 0), axis=1)
    )
    single = jnp.where(options & (ahead < FAR), step + jnp.where(park, 0, ahead) - base[:, None], BIG)
    least = jnp.min(single, axis=1)
    alone = jnp.where((every == agent)[:, None], single, least[:, None])  # [K, OPTIONS]
    pair_step = step[:, None] + step[None]
    pair_excess = pair_step + apart - of(base, first)[:, None, None] - of(base, second)[:, None, None]
    excess = at_option(jnp.where(blocked, BIG, pair_excess))
    more = jnp.maximum(0, excess - of(alone, first) - of(alone, second))
    costs = jnp.sum(base) + jnp.sum(alone, axis=0) + _matched(agents, more)
    # An option that is closed to the agent itself.
    shut = ~options[agent]
    return jnp.where(shut, BIG, jnp.minimum(jnp.where(mode == Mode.MAKESPAN, makespan, costs), BIG))


def _look_up(table: jax.Array, *index: jax.Array) -> jax.Array:
    """Entries of a table at places that are known to be inside: int32."""
    return table.at[index].get(mode="promise_in_bounds").astype(jnp.int32)


def _matched(agents: int, excess: jax.Array) -> jax.Array:
    """The largest sum of pairwise bounds int32 [P, ...] that do not overlap: [...].

    Fractional matchings are made of edges and odd cycles, which count half (Balinski 1965).
    """
    weights = _matchings(agents)
    doubled = jnp.max(jnp.tensordot(weights, excess, 1), axis=0)
    return jnp.minimum((doubled + 1) // 2, BIG)


@functools.cache
def _matchings(agents: int) -> np.ndarray:
    """Maximal matchings by edges and, for up to five agents, triangles: int32 [M, P], edges 2, edges of triangles 1."""
    number = pair_index(agents)
    found = []

    def grow(free: tuple[int, ...], row: tuple[int, ...], triangles: bool) -> None:
        if len(free) < 2:
            found.append(row)
            return
        for others in itertools.combinations(free, 2):
            if len(free) % 2 or others[0] == free[0]:
                weight = list(row)
                weight[number[others]] = 2
                grow(tuple(i for i in free if i not in others), tuple(weight), triangles)
        for trio in itertools.combinations(free, 3) if triangles else ():
            weight = list(row)
            for edge in itertools.combinations(trio, 2):
                weight[number[edge]] = 1
            grow(tuple(i for i in free if i not in trio), tuple(weight), triangles)

    grow(tuple(range(agents)), (0,) * len(number), agents <= 5)
    return np.array(sorted(set(found)), np.int32).reshape(-1, len(number))


def _key(mode: jax.Array, cells: jax.Array, parked: jax.Array) -> jax.Array:
    """A state in words: uint32 [words], 16 bits a cell."""
    agents = cells.shape[0]
    halves = jnp.zeros(agents + agents % 2, jnp.uint32).at[:agents].set(cells.astype(jnp.uint32)).reshape(-1, 2)
    flags = jnp.sum(parked.astype(jnp.uint32) << jnp.arange(agents, dtype=jnp.uint32)) << 2 | mode.astype(jnp.uint32)
    return jnp.append(halves[:, 0] << 16 | halves[:, 1], flags)


def _slot(key: jax.Array) -> jax.Array:
    mixed = jnp.uint32(0x9E3779B9)
    for word in key:
        mixed = (mixed ^ word) * jnp.uint32(0x85EBCA6B)
        mixed = mixed ^ mixed >> 15
    return mixed


def _failed(search: Search, cells: jax.Array, parked: jax.Array, left: jax.Array) -> jax.Array:
    """Whether this state is known to have no plan within the budget `left`."""
    key = _key(search.mode, cells, parked)
    slot = _slot(key) % len(search.budgets)
    return jnp.all(search.keys[slot] == key) & (search.budgets[slot] >= left)


def _remember(search: Search, failed: jax.Array, cells: jax.Array, parked: jax.Array, left: jax.Array) -> Search:
    """Keeps a state that failed, in place of what was in its slot."""
    key = _key(search.mode, cells, parked)
    memory = len(search.budgets)
    slot = jnp.where(failed, _slot(key) % memory, memory)
    return dataclasses.replace(
        search, keys=search.keys.at[slot].set(key, mode="drop"), budgets=search.budgets.at[slot].set(left, mode="drop")
    )
