"""The shortest path of a single agent of a row, by breadth-first search on the host."""

from collections import deque

from lakewright.core_jax.rows.row import Row
from lakewright.core_jax.terms import DELTAS


def find_distance(row: Row, agent: int) -> int | None:
    """The number of steps of an agent's shortest path as if it were alone; None if its goal cannot be reached."""
    start, goal = row.starts[agent], row.goals[agent]
    steps, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        if here == goal:
            return steps[here]
        for down, right in DELTAS:
            there = (here[0] + down, here[1] + right)
            on_board = 0 <= there[0] < row.size and 0 <= there[1] < row.size
            if on_board and row.grid[there[0]][there[1]] == "." and there not in steps:
                steps[there] = steps[here] + 1
                queue.append(there)
    return None
