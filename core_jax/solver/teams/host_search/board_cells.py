"""One board in the form of the search: numbered free cells, their neighbours, and distances computed on demand."""

import numpy as np

from lakewright.core_jax.solver.teams.host_search.workspace import LONGEST, NO_WAY, Cells, Holes, Work
from lakewright.core_jax.support.compiled_code import compiled_within


@compiled_within
def take_board(work: Work, holes: Holes, starts: Cells, goals: Cells) -> None:
    """Makes a board the one that is searched. It has at most CELLS free cells; all starts and goals are free.

    Args:
        work: the workspace, written here.
        holes: bool [n, n].
        starts: int32 [K, 2].
        goals: int32 [K, 2].
    """
    work.board += 1
    work.nodes = 0
    work.too_long = 0
    size = holes.shape[0]
    # A border of -1, so that no move needs a check of the edge.
    number = np.full((size + 2, size + 2), -1, np.int16)
    count = 0
    for row in range(size):
        for column in range(size):
            if not holes[row, column]:
                number[row + 1, column + 1] = count
                count += 1
    work.cells = count
    for row in range(1, size + 1):
        for column in range(1, size + 1):
            cell = number[row, column]
            if cell >= 0:
                work.neighbour[cell, 0] = number[row - 1, column]
                work.neighbour[cell, 1] = number[row + 1, column]
                work.neighbour[cell, 2] = number[row, column - 1]
                work.neighbour[cell, 3] = number[row, column + 1]
    for agent in range(work.agents):
        work.start[agent] = number[starts[agent, 0] + 1, starts[agent, 1] + 1]
        work.goal[agent] = number[goals[agent, 0] + 1, goals[agent, 1] + 1]
        need_distance(work, agent, 0)


@compiled_within
def need_distance(work: Work, agent: int, parked: int) -> None:
    """Computes `work.distance[agent, parked]` unless it is of this board already: NO_WAY from cells without a path."""
    if work.of_board[agent, parked] == work.board:
        return
    work.of_board[agent, parked] = work.board
    distance, queue, blocked = work.distance[agent, parked], work.queue, work.blocked
    for cell in range(work.cells):
        distance[cell] = NO_WAY
        blocked[cell] = 0
    for other in range(work.agents):
        blocked[work.goal[other]] = parked >> other & 1
    # Breadth first from the goal. Parked agents block their goals.
    distance[work.goal[agent]] = 0
    queue[0] = work.goal[agent]
    done, known = 0, 1
    while done < known:
        cell = queue[done]
        done += 1
        further = distance[cell] + 1
        if further > LONGEST:
            work.too_long = 1
            return
        for move in range(4):
            there = work.neighbour[cell, move]
            if there >= 0 and distance[there] == NO_WAY and not blocked[there]:
                distance[there] = further
                queue[known] = there
                known += 1


@compiled_within
def pair_reachable(work: Work, pair: int) -> bool:
    """Return True if the pair has a plan: an exhaustive search over single moves into free cells.

    These suffice: see `lakewright.core_jax.solver.teams.joint_states`.
    """
    cells = np.int64(work.cells)
    first, second = work.first[pair], work.second[pair]
    end = work.goal[first] * cells + work.goal[second]
    seen = np.zeros(cells * cells, np.bool_)
    queue = np.empty(cells * cells, np.int32)
    # A state is a number: the first agent's cell times the number of cells, plus the second's.
    queue[0] = work.start[first] * cells + work.start[second]
    seen[queue[0]] = True
    done, known = 0, 1
    while done < known and not seen[end]:
        one, other = queue[done] // cells, queue[done] % cells
        done += 1
        for move in range(8):
            x, y = one, other
            if move < 4:
                x = np.int64(work.neighbour[one, move])
            else:
                y = np.int64(work.neighbour[other, move - 4])
            state = x * cells + y
            if x >= 0 and y >= 0 and x != y and not seen[state]:
                seen[state] = True
                queue[known] = state
                known += 1
    return seen[end]
