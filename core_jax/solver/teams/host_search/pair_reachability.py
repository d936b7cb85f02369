"""Whether two agents can be where they should be at all, from all their joint states."""

import numpy as np

from core_jax.solver.teams.host_search.compilation import compiled
from core_jax.solver.teams.host_search.workspace import Work


@compiled
def pair_reachable(work: Work, pair: int) -> bool:
    """Whether the pair has a plan; single moves into free cells suffice, see `core_jax.solver.teams.joint_states`."""
    cells = np.int64(work.cells)
    first, second = work.first[pair], work.second[pair]
    end = work.goal[first] * cells + work.goal[second]
    seen = np.zeros(cells * cells, np.bool_)
    queue = np.empty(cells * cells, np.int32)
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
