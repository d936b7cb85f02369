"""All joint states of a team: whether its goals can be reached at all, and optima by exhaustive floods.

Far fewer moves than all joint ones settle whether agents can reach their goals. In a joint move each agent enters a
cell that was free, or one that another leaves: so the moves form paths and cycles. Moves along a path can be made one
after the other, by single agents that enter free cells, the foremost first. A cycle moves at once; on a grid it has
four agents or more.

Optima come from all joint states where agents have little room, and make long detours. Costs flood backward from the
goals, layer by layer; joint moves are legal backward if legal forward. For the sum of costs there is a table for each
set of agents not yet parked for good, with the goals of the others blocked. NumPy, on the host: few boards come here,
and each has its own shapes.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from lakewright.core_jax.lake.label_batches import trim_plans
from lakewright.core_jax.types import DELTAS, PAD, WAIT

AT_ONCE = 1 << 11  # joint states whose moves are made at once
Members = tuple[int, ...]


def list_steps(holes: np.ndarray) -> np.ndarray:
    """The cell that each move leads to, cells numbered row by row: int [N, 5], -1 if it leads nowhere."""
    size = len(holes)
    number = np.where(holes, -1, np.arange(size * size).reshape(size, size))
    padded = np.pad(number, 1, constant_values=-1)
    around = [padded[1 + row : 1 + row + size, 1 + column : 1 + column + size] for row, column in DELTAS]
    return np.where(holes[..., None], -1, np.stack(around, axis=-1)).reshape(size * size, len(DELTAS))


def find_component(steps: np.ndarray, cell: int) -> np.ndarray:
    """The cells that can be reached from `cell`, int [*], in order."""
    inside = np.zeros(len(steps), bool)
    fresh = np.array([cell])
    while len(fresh):
        inside[fresh] = True
        around = steps[fresh]
        fresh = np.unique(around[(around >= 0) & ~inside[around]])
    return np.flatnonzero(inside)


def find_whether_solvable(steps: np.ndarray, starts: np.ndarray, goals: np.ndarray, states: int) -> bool | None:
    """Return True if a plan exists, False if not; None if that would take more joint states than allowed.

    Args:
        steps: from `list_steps`.
        starts, goals: int [K], cells.
        states: the most joint states.
    """
    groups = defaultdict(list)
    for agent, start in enumerate(starts):
        groups[int(find_component(steps, start)[0])].append(agent)
    answers = [_can_reach_goals(steps, starts[group], goals[group], states) for group in groups.values()]
    # Agents of different components never meet, so one component without a plan settles the board.
    return False if False in answers else None if None in answers else True


def _can_reach_goals(steps: np.ndarray, starts: np.ndarray, goals: np.ndarray, states: int) -> bool | None:
    """`find_whether_solvable`, for agents of one component."""
    home = find_component(steps, starts[0])
    shape = (len(home),) * len(starts)
    if not np.isin(goals, home).all():
        return False
    if math.prod(shape) > states:
        return None
    rank = np.zeros(len(steps), int)
    rank[home] = np.arange(len(home))
    seen = np.zeros(math.prod(shape), bool)
    fresh, end = (np.ravel_multi_index(tuple(rank[cells]), shape).reshape(1) for cells in (starts, goals))
    # Breadth first: `seen` holds the states that single moves and cycles have led to so far.
    while len(fresh):
        seen[fresh] = True
        if seen[end]:
            return True
        cells = home[np.stack(np.unravel_index(fresh, shape))]
        after = [np.ravel_multi_index(tuple(rank[moved]), shape) for moved in _make_moves(steps, cells)]
        fresh = np.unique(np.concatenate([some[~seen[some]] for some in after]))
    return False


def _make_moves(steps: np.ndarray, cells: np.ndarray) -> Iterator[np.ndarray]:
    """The states int [K, *] that single agents, then cycles of agents, lead to from `cells`, int [K, B]."""
    # A single agent enters a cell that none is in.
    for agent, by in itertools.product(range(len(cells)), range(4)):
        target = steps[cells[agent], by]
        moved = cells[:, (target >= 0) & (target != cells).all(axis=0)]
        moved[agent] = steps[moved[agent], by]
        yield moved
    # In a cycle each agent enters the cell of the next one, all at once.
    for cycle in _list_cycles(len(cells)):
        ahead = np.roll(cycle, -1)
        rotating = (steps[cells[cycle], :4] == cells[ahead][..., None]).any(axis=-1).all(axis=0)
        moved = cells[:, rotating]
        moved[cycle] = moved[ahead]
        yield moved


def _list_cycles(agents: int) -> Iterator[np.ndarray]:
    """Every order in which some of the agents can follow each other around: int [4], [6] and so on."""
    # A grid has no odd cycles, and two agents that exchange cells break a rule.
    for length in range(4, agents + 1, 2):
        for first, *others in itertools.combinations(range(agents), length):
            for order in itertools.permutations(others):
                yield np.array((first, *order))


class Flood:
    """The joint states of the agents of one board.

    steps: int [N, 5] as from `list_steps`. starts, goals: int [K], cells.

    A joint state of some agents has a number: the ranks of their cells, each among those that the agent can reach, as
    digits.
    """

    def __init__(self, steps: np.ndarray, starts: np.ndarray, goals: np.ndarray) -> None:
        self._steps, self._starts, self._goals = steps, starts, goals
        self._everyone: Members = tuple(range(len(starts)))
        self._homes = [find_component(steps, start) for start in starts]
        self._ranks = [np.zeros(len(steps), int) for _ in starts]
        for rank, home in zip(self._ranks, self._homes, strict=True):
            rank[home] = np.arange(len(home))

    @property
    def joint_moves(self) -> int:
        """The number of joint moves from all joint states, including those in which agents meet."""
        return math.prod(int((self._steps[home] >= 0).sum()) for home in self._homes)

    def makespan(self) -> tuple[np.ndarray, int, bool]:
        """A plan int8 [K, T] that reaches the optimum, the optimum, and False; there must be a plan."""
        home = self._number_states(self._everyone, self._goals[None])
        table = self._flood_costs(self._everyone, {0: [home]}, price=1, waits=True)
        return *self._extract_plan({self._everyone: table}, price=1, waits=True), False

    def sum_of_costs(self) -> tuple[np.ndarray, int, bool]:
        """A plan int8 [K, T] that reaches the optimum, the optimum, and whether each such plan waits; as `makespan`."""
        plan, cost = self._extract_plan(self._flood_tables(waits=True), waits=True)
        without, moving = self._extract_plan(self._flood_tables(waits=False, most=cost), waits=False)
        return (without, cost, False) if moving == cost else (plan, cost, True)

    def _flood_tables(self, waits: bool, most: int | None = None) -> dict[Members, np.ndarray]:
        """The costs of each set of agents that are not parked yet, from each of its joint states: int32 [*], else -1.

        Costs above `most` are not searched.
        """
        tables: dict[Members, np.ndarray] = {(): np.zeros(1, np.int32)}
        # Small sets first: a flood begins where a member is parked, with the costs of the set without it.
        for count in range(1, len(self._everyone) + 1):
            for members in itertools.combinations(self._everyone, count):
                tables[members] = self._flood_costs(members, self._seed_states(tables, members), count, waits, most)
        return tables

    def _seed_states(self, tables: dict[Members, np.ndarray], members: Members) -> dict[int, list[np.ndarray]]:
        """The joint states in which a member is parked for good on its goal, by their cost."""
        seeds = defaultdict(list)
        for place, agent in enumerate(members):
            rest = tables[members[:place] + members[place + 1 :]]
            lower = math.prod(len(self._homes[other]) for other in members[place + 1 :])
            high, low = np.divmod(np.flatnonzero(rest >= 0), lower)
            states = (high * len(self._homes[agent]) + self._ranks[agent][self._goals[agent]]) * lower + low
            costs = rest[rest >= 0]
            for cost in np.unique(costs).tolist():
                seeds[cost].append(states[costs == cost])
        return seeds

    def _flood_costs(
        self, members: Members, seeds: dict[int, list[np.ndarray]], price: int, waits: bool, most: int | None = None
    ) -> np.ndarray:
        """The cost of each joint state of the members: int32 [*], -1 without a plan.

        Of all agents together, the flood ends with the cost of the starts.

        Args:
            members: agents that are not parked yet.
            seeds: joint states of known cost, by cost.
            price: the price of a joint move.
            waits: whether agents may wait.
            most: the highest cost to flood, or None.
        """
        costs = np.full(math.prod(self._table_shape(members)), -1, np.int32)
        until = self._starts[None] if members == self._everyone else np.zeros((0, len(members)), int)
        # By rising cost (Dijkstra): states of the least cost in `seeds` are final, and lead to those of one move more.
        while seeds and not (costs[self._number_states(members, until)] >= 0).any():
            cost = min(seeds)
            if most is not None and cost > most:
                break
            fresh = np.unique(np.concatenate(seeds.pop(cost)))
            fresh = fresh[costs[fresh] < 0]
            costs[fresh] = cost
            for some in np.split(fresh, range(AT_ONCE, len(fresh), AT_ONCE)):
                before = self._number_states(
                    members, self._move_members(members, self._decode_states(members, some), waits)
                )
                if len(new := np.unique(before[costs[before] < 0])):
                    seeds.setdefault(cost + price, []).append(new)
        return costs

    def _move_members(self, members: Members, cells: np.ndarray, waits: bool) -> np.ndarray:
        """The states that all legal joint moves lead to from joint states int [B, M]: int [*, M]."""
        parked = [goal for agent, goal in enumerate(self._goals) if agent not in members]
        steps = np.where(np.isin(self._steps, parked), -1, self._steps)[:, : len(self._steps[0]) if waits else WAIT]
        after = np.zeros((len(cells), 0), cells.dtype)
        # Agent after agent: `after` has the new cells of those before it; joint moves that break a rule leave at once.
        for agent in range(len(members)):
            targets = steps[cells[:, agent]]
            rows, options = np.nonzero(targets >= 0)
            cells, after, target = cells[rows], after[rows], targets[rows, options]
            meets = target[:, None] == after
            swaps = (target[:, None] == cells[:, :agent]) & (after == cells[:, agent, None])
            legal = ~(meets | swaps).any(axis=1)
            cells, after = cells[legal], np.column_stack([after[legal], target[legal]])
        return after

    def _extract_plan(
        self, tables: dict[Members, np.ndarray], waits: bool, price: int | None = None
    ) -> tuple[np.ndarray, int]:
        """A plan from the starts, and its cost: -1 without a plan.

        A joint move has a price, or one a member.
        """
        members, cells, moves = self._everyone, self._starts, []
        cost = left = self._look_up(tables, members, cells)
        while left > 0:
            for agent in members:
                rest = tuple(other for other in members if other != agent)
                at_home = cells[agent] == self._goals[agent]
                # Parked for good as soon as the others alone cost all that is left.
                if at_home and rest in tables and self._look_up(tables, rest, cells) == left:
                    members = rest
                    break
            else:
                left -= price or len(members)
                after = self._move_members(members, cells[None, list(members)], waits)
                best = after[tables[members][self._number_states(members, after)] == left][0]
                moves.append(np.full(len(cells), PAD, np.int8))
                for agent, target in zip(members, best, strict=True):
                    moves[-1][agent] = np.flatnonzero(self._steps[cells[agent]] == target)[0]
                cells = cells.copy()
                cells[list(members)] = best
        plan = np.stack(moves, axis=1) if moves else np.zeros((len(cells), 0), np.int8)
        return trim_plans(plan), cost

    def _look_up(self, tables: dict[Members, np.ndarray], members: Members, cells: np.ndarray) -> int:
        return int(tables[members][self._number_states(members, cells[None, list(members)])][0])

    def _table_shape(self, members: Members) -> tuple[int, ...]:
        return tuple(len(self._homes[agent]) for agent in members)

    def _number_states(self, members: Members, cells: np.ndarray) -> np.ndarray:
        """The numbers of joint states int [B, M]: int [B]."""
        number = np.zeros(len(cells), int)
        for place, agent in enumerate(members):
            number = number * len(self._homes[agent]) + self._ranks[agent][cells[:, place]]
        return number

    def _decode_states(self, members: Members, numbers: np.ndarray) -> np.ndarray:
        """The cells of numbered joint states, int [B]: int [B, M]."""
        ranks = np.unravel_index(numbers, self._table_shape(members))
        return np.stack([self._homes[agent][rank] for agent, rank in zip(members, ranks, strict=True)], axis=1)
