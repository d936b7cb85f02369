"""Plans without a model, to compare models with: for each row one string of moves for each agent.

optimal: the row's own certified plan. prioritized: one agent after another, each as early as the earlier ones allow
(Erdmann and Lozano-Perez, 1987; space-time search with waits: Silver, 2005). greedy: a shortest path for each agent,
regardless of the others. offset: the rows, then the columns from start to goal, whatever is in the way: what a model
says that copies its compact prompt. random: moves at random, but never off the board or into a hole.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise

from lakewright.core_jax.rows import Row
from lakewright.core_jax.types import DELTAS, MOVES, WAIT

Cell = tuple[int, int]
Planner = Callable[[Row, int], list[str]]
STEPS_A_SIDE = 4  # of a random walk: the most, in sides of the board


def plan_optimally(row: Row, seed: int) -> list[str]:
    """The certified plan; no agent moves if there isn't any."""
    return row.plan or [""] * row.agents


def plan_by_priority(row: Row, seed: int) -> list[str]:
    """Agent 0 plans first; an agent without a path past the earlier ones stays at its start."""
    paths: list[list[Cell]] = []
    for start, goal in zip(row.starts, row.goals, strict=True):
        paths.append(_find_earliest_path(row, start, goal, paths) or [start])
    return [_write_moves(path) for path in paths]


def plan_greedily(row: Row, seed: int) -> list[str]:
    """A shortest path for each agent; an agent without one stays at its start."""
    pairs = zip(row.starts, row.goals, strict=True)
    return [_write_moves(_find_earliest_path(row, start, goal, []) or [start]) for start, goal in pairs]


def plan_by_offset(row: Row, seed: int) -> list[str]:
    """Down or up, then right or left, as far as the goal is away."""
    plans = []
    for start, goal in zip(row.starts, row.goals, strict=True):
        rows, columns = goal[0] - start[0], goal[1] - start[1]
        plans.append("UD"[rows > 0] * abs(rows) + "LR"[columns > 0] * abs(columns))
    return plans


def at_random(row: Row, seed: int) -> list[str]:
    """Uniform among the moves to free cells, until the agent is on its goal or the walk is long enough."""
    rng = random.Random(f"{seed} {row.id}")
    return [_walk_randomly(row, start, goal, rng) for start, goal in zip(row.starts, row.goals, strict=True)]


PLANNERS: dict[str, Planner] = {
    "optimal": plan_optimally,
    "prioritized": plan_by_priority,
    "greedy": plan_greedily,
    "offset": plan_by_offset,
    "random": at_random,
}


def _find_earliest_path(row: Row, start: Cell, goal: Cell, others: list[list[Cell]]) -> list[Cell] | None:
    """The earliest path that can stay on `goal`, without conflicts with the paths of others, who stay where these end.

    Breadth first in time.
    """
    over = max(map(len, others), default=0)  # from this time on no other agent moves
    last_visit = max((time for path in others for time, cell in enumerate(path) if cell == goal), default=-1)
    queue: deque[list[Cell]] = deque([[start]])
    seen = {(start, 0)}
    while queue:
        path = queue.popleft()
        time = len(path)
        if path[-1] == goal and time - 1 > last_visit:
            return path
        for cell, _ in _list_neighbours(row, path[-1]):
            state = (cell, min(time, over))
            if state not in seen and not any(_is_conflict(path[-1], cell, other, time) for other in others):
                seen.add(state)
                queue.append([*path, cell])
    return None


def _is_conflict(before: Cell, after: Cell, other: list[Cell], time: int) -> bool:
    """Whether a step that ends at `time` has a vertex or swap conflict with another agent."""
    was, is_now = other[min(time - 1, len(other) - 1)], other[min(time, len(other) - 1)]
    return after == is_now or (after == was and before == is_now)


def _list_neighbours(row: Row, cell: Cell) -> Iterator[tuple[Cell, str]]:
    """The free cells that a move leads to, with the move."""
    for (down, right), letter in zip(DELTAS, MOVES, strict=True):
        r, c = cell[0] + down, cell[1] + right
        if 0 <= r < row.size and 0 <= c < row.size and row.grid[r][c] != "H":
            yield (r, c), letter


def _write_moves(path: list[Cell]) -> str:
    steps = ((to[0] - at[0], to[1] - at[1]) for at, to in pairwise(path))
    return "".join(MOVES[DELTAS.index(step)] for step in steps)


def _walk_randomly(row: Row, cell: Cell, goal: Cell, rng: random.Random) -> str:
    moves = ""
    while cell != goal and len(moves) < STEPS_A_SIDE * row.size:
        cell, letter = rng.choice(list(_list_neighbours(row, cell)))
        moves += letter
    return moves or MOVES[WAIT]
