"""The memory of one search: a record of arrays of fixed shapes, and a table of pairs sized for the board.

A record is handed to compiled code as one pointer; a tuple of as many arrays would take most of the time to compile and
to call. What is stored for one board is marked with that board's number, and ignored for any other.
"""

import itertools
from typing import Annotated, Any

import numba
import numpy as np

AGENTS = 8
CELLS = 256  # free cells
SUBSETS = 1 << AGENTS
PAIRS = AGENTS * (AGENTS - 1) // 2
STEPS = 256  # of a plan
PAIR_STEPS = 512  # of two agents: no longer than distances and slack together allow
MATCHINGS = 128  # of up to eight agents there are fewer
FAILURES = 1 << 16  # failed states that are remembered; a power of two

NO_WAY = 255  # a distance
LONGEST = 200  # distance on a board that is searched
HIGHEST = 250  # bound on slack, or on a makespan

MOVING, COSTS, MAKESPAN = range(3)  # what a bound is on: the slack of plans without waits, or of all; the makespan
WAIT, PARK = 4, 5  # after the four moves; a parked agent stays on its goal for good, and costs no more

_INT = np.int64
LAYOUT: Any = np.dtype(
    [
        # The board: free cells are numbered.
        ("board", _INT),  # its number in this workspace
        ("agents", _INT),
        ("pairs", _INT),
        ("cells", _INT),
        ("neighbour", np.int16, (CELLS, 4)),  # by move; -1 where there is none
        ("start", _INT, AGENTS),
        ("goal", _INT, AGENTS),
        # distance[i, S]: of agent i to its goal where the agents of S are parked; valid where of_board is `board`.
        ("distance", np.uint8, (AGENTS, SUBSETS, CELLS)),
        ("of_board", _INT, (AGENTS, SUBSETS)),
        ("too_long", _INT),  # 1 where a distance exceeds LONGEST, so that all distances are uncertain
        ("blocked", np.uint8, CELLS),
        ("queue", np.int16, CELLS),
        # Pairs: their agents, and the stack of the search for two.
        ("pair", _INT, (AGENTS, AGENTS)),
        ("first", _INT, PAIRS),
        ("second", _INT, PAIRS),
        ("duo_cell", _INT, (PAIR_STEPS, 2)),
        ("duo_left", _INT, PAIR_STEPS),
        ("duo_tried", _INT, PAIR_STEPS),
        ("duo_options", _INT, (PAIR_STEPS, 2)),
        ("duo_target", _INT, (PAIR_STEPS, 2, 5)),
        ("duo_price", _INT, (PAIR_STEPS, 2, 5)),
        # Bounds on slack of sets of agents, for MOVING and COSTS: it is at least lower, and at most upper.
        ("lower", _INT, (2, SUBSETS)),
        ("upper", _INT, (2, SUBSETS)),
        ("allowed", _INT, SUBSETS),  # how late a set may be, for sets of one and two
        ("matchings", _INT),
        ("matching", np.int8, (MATCHINGS, PAIRS)),
        # The stack of the search for a team, by step.
        ("rank", _INT, AGENTS),  # all agents, the most conflicted first
        ("order", _INT, AGENTS),  # the agents that are searched for, in the order in which they choose a move
        ("members", _INT),  # how many agents `order` holds
        ("cell", _INT, (STEPS, AGENTS)),
        ("parked", _INT, STEPS),  # a set
        ("left", _INT, STEPS),
        ("turn", _INT, STEPS),  # who is to choose, as a place in `order`
        ("options", _INT, (STEPS, AGENTS)),
        ("target", _INT, (STEPS, AGENTS, 6)),
        ("price", _INT, (STEPS, AGENTS, 6)),
        ("move", _INT, (STEPS, AGENTS, 6)),
        ("tried", _INT, (STEPS, AGENTS)),
        ("next_cell", _INT, (STEPS, AGENTS)),
        ("next_move", _INT, (STEPS, AGENTS)),
        ("spent", _INT, (STEPS, AGENTS + 1)),
        ("excess", _INT, (STEPS, PAIRS)),  # of the pairs after the step
        ("steps", _INT),  # of the plan that was found
        ("nodes", _INT),  # joint states visited, of this board
        # States that failed.
        ("failed_cells", np.uint64, FAILURES),
        ("failed_rest", np.uint64, FAILURES),
        ("failed_left", np.uint8, FAILURES),
    ],
    align=True,
)


ANSWER: Any = np.dtype(
    [
        ("solvable", np.bool_),  # False where it is known to have no plan
        ("cost_known", np.bool_),
        ("wait_known", np.bool_),
        ("makespan_known", np.bool_),
        ("wait", np.bool_),
        ("by_bounds", np.bool_),  # whether all is what the bounds of pairs said
        ("alone", _INT),  # the sum of the single distances
        ("slack", _INT),  # of the sum of costs beyond that: the optimum where known, else a lower bound
        ("makespan", _INT),  # the optimum where known, else a lower bound
        ("excess", _INT, PAIRS),  # of each pair, or a lower bound
        ("others", _INT, AGENTS),  # the slack that the team without each agent needs at least
        ("steps", _INT),  # of the plan of least cost
        ("fastest_steps", _INT),  # of the plan of least makespan; 0 where it is the plan of least cost
        ("nodes", _INT),
    ],
    align=True,
)

# How compiled code calls them.
Work = Annotated[np.record, numba.from_dtype(LAYOUT)]
Answer = Annotated[np.record, numba.from_dtype(ANSWER)]
Works = Annotated[np.ndarray, numba.from_dtype(LAYOUT)[::1]]
Answers = Annotated[np.ndarray, numba.from_dtype(ANSWER)[::1]]
Table = Annotated[np.ndarray, numba.uint16[:, :, :, ::1]]
Numbers = Annotated[np.ndarray, numba.int64[::1]]
Holes = Annotated[np.ndarray, numba.boolean[:, ::1]]
Cells = Annotated[np.ndarray, numba.int32[:, ::1]]
Moves = Annotated[np.ndarray, numba.int8[:, ::1]]
TwoMoves = Annotated[np.ndarray, numba.int8[:, :, ::1]]
ManyHoles = Annotated[np.ndarray, numba.boolean[:, :, ::1]]
ManyCells = Annotated[np.ndarray, numba.int32[:, :, ::1]]
ManyMoves = Annotated[np.ndarray, numba.int8[:, :, :, ::1]]
Wanted = Annotated[np.ndarray, numba.int8[::1]]
Word = Annotated[np.uint64, numba.uint64]


def make_workspace(agents: int, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Makes the memory for boards of `agents` agents and `cells` free cells at most: a record in an array, and a table.

    The table is uint16 [3, P, F, F], by bounded quantity, pair and cells: see `pair_search`.
    """
    work = np.zeros(1, LAYOUT)
    pairs = list(itertools.combinations(range(agents), 2))
    for place, (one, other) in enumerate(pairs):
        work["pair"][0, one, other] = work["pair"][0, other, one] = place
        work["first"][0, place], work["second"][0, place] = one, other
    work["agents"], work["pairs"] = agents, len(pairs)
    rows = list_matchings(agents)
    work["matchings"] = len(rows)
    work["matching"][0, : len(rows), : len(pairs)] = rows
    return work, np.zeros((3, len(pairs), cells, cells), np.uint16)


def list_matchings(agents: int) -> np.ndarray:
    """Maximal matchings by edges and, for up to five agents, triangles: int [M, P], edges 2, edges of triangles 1.

    The excess of the pairs of a matching adds up; a triangle's pairs count half because each agent is in two.
    """
    number = {pair: place for place, pair in enumerate(itertools.combinations(range(agents), 2))}
    found = []

    def grow(free: tuple[int, ...], row: tuple[int, ...]) -> None:
        if len(free) < 2:
            found.append(row)
            return
        for others in itertools.combinations(free, 2):
            if len(free) % 2 or others[0] == free[0]:
                weight = list(row)
                weight[number[others]] = 2
                grow(tuple(i for i in free if i not in others), tuple(weight))
        for trio in itertools.combinations(free, 3) if agents <= 5 else ():
            weight = list(row)
            for edge in itertools.combinations(trio, 2):
                weight[number[edge]] = 1
            grow(tuple(i for i in free if i not in trio), tuple(weight))

    grow(tuple(range(agents)), (0,) * len(number))
    return np.array(sorted(set(found)), int).reshape(-1, len(number))
