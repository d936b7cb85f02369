"""A slow exhaustive oracle in plain Python, for any number of agents. It shares no code with the package.

A grid is a list of strings, `.` free and anything else a hole; starts and goals are lists of (row, column).
"""

from collections import deque
from heapq import heappop, heappush
from itertools import combinations, product
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
    shortest, cheapest = makespan(grid, starts, goals), sum_of_costs(grid, starts, goals, waits=True)
    wait_required = cheapest != NO_PLAN and sum_of_costs(grid, starts, goals, waits=False) != cheapest
    return Optima(shortest, cheapest, wait_required)


def makespan(grid, starts, goals) -> int:
    """Breadth first over joint positions."""
    roads = _roads(grid)
    start, end = tuple(map(tuple, starts)), tuple(map(tuple, goals))
    times = {start: 0}
    queue = deque([start])
    while queue:
        cells = queue.popleft()
        if cells == end:
            return times[cells]
        for after in product(*([cell, *roads[cell]] for cell in cells)):
            if after not in times and _legal(cells, after):
                times[after] = times[cells] + 1
                queue.append(after)
    return NO_PLAN


def sum_of_costs(grid, starts, goals, *, waits: bool) -> int:
    """Dijkstra over joint positions and who is parked for good: those stay on their goals and cost no more.

    An agent that is not parked pays one a step; without `waits` it must also move.
    """
    roads = _roads(grid)
    agents = range(len(starts))
    start = (tuple(map(tuple, starts)), (False,) * len(starts))
    costs = {start: 0}
    queue = [(0, start)]

    def offer(cost, before, after, parked):
        if cost < costs.get((after, parked), cost + 1) and _legal(before, after):
            costs[after, parked] = cost
            heappush(queue, (cost, (after, parked)))

    while queue:
        cost, (cells, parked) = heappop(queue)
        if all(parked):
            return cost
        if cost > costs[cells, parked]:
            continue
        for i in agents:
            if not parked[i] and cells[i] == tuple(goals[i]):
                offer(cost, cells, cells, (*parked[:i], True, *parked[i + 1 :]))
        choices = [[cell] * (waits or parked[i]) + roads[cell] * (not parked[i]) for i, cell in enumerate(cells)]
        price = cost + parked.count(False)
        for after in product(*choices):
            offer(price, cells, after, parked)
    return NO_PLAN


def distance(grid, start, goal) -> int:
    """Steps of one agent that is alone."""
    return makespan(grid, [start], [goal])


def solvable_in_closed_form(grid, starts, goals) -> bool:
    """Two agents, without a search over joint positions: connected, and no change of order on a path."""
    roads = _roads(grid)
    homes = [_component(roads, tuple(start)) for start in starts]
    if any(tuple(goal) not in home for home, goal in zip(homes, goals, strict=True)):
        return False
    degrees = [len(roads[cell]) for cell in homes[0]]
    is_path = max(degrees) <= 2 and sum(degrees) == 2 * len(degrees) - 2
    if tuple(starts[1]) not in homes[0] or not is_path:
        return True
    end = next(cell for cell in homes[0] if len(roads[cell]) <= 1)
    order = list(_component(roads, end))
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


def _legal(before, after) -> bool:
    """Neither a meeting in a cell nor an exchange of cells."""
    for i, j in combinations(range(len(before)), 2):
        if after[i] == after[j] or (after[i] == before[j] and after[j] == before[i]):
            return False
    return True


def _roads(grid) -> dict[tuple, list[tuple]]:
    """The free neighbours of every free cell."""
    free = {(r, c): None for r, row in enumerate(grid) for c, letter in enumerate(row) if letter == "."}
    deltas = [STEPS[letter] for letter in "UDLR"]
    return {(r, c): [(r + dr, c + dc) for dr, dc in deltas if (r + dr, c + dc) in free] for r, c in free}


def _component(roads, cell) -> dict[tuple, None]:
    """The cells connected to `cell`, itself first; in order along a path if `cell` is its end."""
    found = {cell: None}
    queue = [cell]
    for here in queue:
        queue += [there for there in roads[here] if there not in found]
        found |= dict.fromkeys(roads[here])
    return found
