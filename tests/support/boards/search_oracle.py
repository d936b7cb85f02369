"""A slow exhaustive oracle in plain Python, for any number of agents. It shares no code with the package.

A grid is a list of strings, `.` free and anything else a hole; starts and goals are lists of (row, column).
"""

from heapq import heappop, heappush
from itertools import combinations
from math import inf
from typing import NamedTuple

STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1), "W": (0, 0)}
NO_PLAN = -1


class Optima(NamedTuple):
    """Optimal makespan and sum of costs, NO_PLAN where there is none, and whether every plan of that sum waits."""

    makespan: int
    sum_of_costs: int
    wait_required: bool


class Played(NamedTuple):
    """What became of a plan: a failure's name, agent and step, or "none", -1, -1 and the plan's costs."""

    failure: str
    agent: int
    step: int
    makespan: int
    sum_of_costs: int


def optima(grid, starts, goals) -> Optima:
    """The exhaustive labels of one board."""
    shortest = makespan(grid, starts, goals)
    if shortest == NO_PLAN:
        return Optima(NO_PLAN, NO_PLAN, False)
    cheapest = sum_of_costs(grid, starts, goals, waits=True)
    return Optima(shortest, cheapest, sum_of_costs(grid, starts, goals, waits=False, most=cheapest) != cheapest)


def makespan(grid, starts, goals) -> int:
    """A* over joint positions: a step costs one, and all are not there before the last of them is when alone."""
    roads = _roads(grid)
    distances = [_distances(roads, tuple(goal)) for goal in goals]
    start, end = tuple(map(tuple, starts)), tuple(map(tuple, goals))

    def left(cells):
        return max(far.get(cell, inf) for far, cell in zip(distances, cells, strict=True))

    def steps(cells):
        return [(1, after) for after in _joint_moves(cells, [[cell, *roads[cell]] for cell in cells])]

    return _cheapest(start, steps, left, lambda cells: cells == end)


def sum_of_costs(grid, starts, goals, *, waits: bool, most: float = inf) -> int:
    """A* over joint positions and who is parked for good: those stay on their goals and cost no more.

    An agent that is not parked pays one a step; without `waits` it must also move. What is left to pay is at least the
    sum of the distances of agents that are alone. Beyond a sum of `most` nothing is searched.
    """
    roads = _roads(grid)
    distances = [_distances(roads, tuple(goal)) for goal in goals]
    start = (tuple(map(tuple, starts)), (False,) * len(starts))

    def left(state):
        return sum(far.get(cell, inf) for far, cell in zip(distances, state[0], strict=True))

    def steps(state):
        cells, parked = state
        for i, cell in enumerate(cells):
            if not parked[i] and cell == tuple(goals[i]):
                yield 0, (cells, (*parked[:i], True, *parked[i + 1 :]))
        choices = [[cell] * (waits or parked[i]) + roads[cell] * (not parked[i]) for i, cell in enumerate(cells)]
        for after in _joint_moves(cells, choices):
            yield parked.count(False), (after, parked)

    return _cheapest(start, steps, left, lambda state: all(state[1]), most)


def distance(grid, start, goal) -> int:
    """Steps of one agent that is alone."""
    return makespan(grid, [start], [goal])


def solvable_in_closed_form(grid, starts, goals) -> bool:
    """Two agents, without a search over joint positions: connected, and no change of order on a path."""
    roads = _roads(grid)
    homes = [_distances(roads, tuple(start)) for start in starts]
    if any(tuple(goal) not in home for home, goal in zip(homes, goals, strict=True)):
        return False
    degrees = [len(roads[cell]) for cell in homes[0]]
    is_path = max(degrees) <= 2 and sum(degrees) == 2 * len(degrees) - 2
    if tuple(starts[1]) not in homes[0] or not is_path:
        return True
    end = next(cell for cell in homes[0] if len(roads[cell]) <= 1)
    order = list(_distances(roads, end))
    a, b, to_a, to_b = (order.index(tuple(cell)) for cell in (*starts, *goals))
    return (a < b) == (to_a < to_b)


def play(grid, starts, goals, plan) -> Played:
    """Replays move strings, one an agent; other letters than UDLRW are illegal moves."""
    cells = [tuple(cell) for cell in starts]
    agents = range(len(cells))
    arrivals = [0] * len(cells)
    length = max(map(len, plan))
    for time in range(length + 1):
        arrivals = [arrivals[i] if cells[i] == tuple(goals[i]) else time + 1 for i in agents]
        if time < length:
            letters = [moves[time] if time < len(moves) else "W" for moves in plan]
            failure, agent, cells = _move_all(grid, cells, letters)
            if failure != "none":
                return Played(failure, agent, time, NO_PLAN, NO_PLAN)
    for i in agents:
        if cells[i] != tuple(goals[i]):
            return Played("goal_not_reached", i, length, NO_PLAN, NO_PLAN)
    return Played("none", -1, -1, max(arrivals), sum(arrivals))


def _move_all(grid, cells, letters):
    targets = []
    for i, ((row, column), letter) in enumerate(zip(cells, letters, strict=True)):
        if letter not in STEPS:
            return "illegal_move", i, cells
        row, column = row + STEPS[letter][0], column + STEPS[letter][1]
        if row not in range(len(grid)) or column not in range(len(grid[0])):
            return "illegal_move", i, cells
        targets.append((row, column))
    for i, (row, column) in enumerate(targets):
        if grid[row][column] != ".":
            return "hole", i, cells
    for i, target in enumerate(targets):
        if targets.count(target) > 1:
            return "vertex_conflict", i, cells
    for i, j in combinations(range(len(cells)), 2):
        if targets[i] == cells[j] and targets[j] == cells[i]:
            return "swap_conflict", i, cells
    return "none", -1, targets


def _cheapest(start, steps, left, is_end, most: float = inf) -> int:
    """A*: `steps` are the prices and states of what may come next, `left` never more than what is still to be paid."""
    costs = {start: 0}
    queue = [(left(start), 0, start)]
    while queue:
        _, paid, state = heappop(queue)
        cost = -paid  # of those that are as promising, the furthest on comes first
        if cost > costs[state]:
            continue
        if is_end(state):
            return cost
        for price, after in steps(state):
            if cost + price < costs.get(after, inf):
                costs[after] = cost + price
                least = cost + price + left(after)
                if least <= most and least < inf:
                    heappush(queue, (least, -cost - price, after))
    return NO_PLAN


def _joint_moves(before, choices):
    """Where all can go at once: nobody meets another in a cell, nor do two exchange their cells."""
    found = [()]
    for i, cells in enumerate(choices):
        found = [
            (*after, cell)
            for after in found
            for cell in cells
            if cell not in after and (cell not in before[:i] or after[before.index(cell)] != before[i])
        ]
    return found


def _distances(roads, goal) -> dict[tuple, int]:
    """Steps to the goal from every cell that is connected to it, the nearest first; so in order along a path."""
    found = {goal: 0}
    for here in (queue := [goal]):
        for there in roads[here]:
            if there not in found:
                found[there] = found[here] + 1
                queue.append(there)
    return found


def _roads(grid) -> dict[tuple, list[tuple]]:
    """The free neighbours of every free cell."""
    free = {(r, c): None for r, row in enumerate(grid) for c, letter in enumerate(row) if letter == "."}
    deltas = [STEPS[letter] for letter in "UDLR"]
    return {(r, c): [(r + dr, c + dc) for dr, dc in deltas if (r + dr, c + dc) in free] for r, c in free}
