"""A hash table of fixed size for the states of a team from which no plan was found, by an exact key.

A key holds everything that the failure depends on: cells, who is parked, who takes part, the step (how late agents may
be depends on it), what is bounded and the bound, and the number of the board.
"""

import numpy as np
from numba import uint64

from lakewright.core_jax.solver.teams.host_search.workspace import FAILURES, MAKESPAN, Word, Work
from lakewright.core_jax.support.compiled_code import compiled_within

PROBES = 4


@compiled_within
def search_key(work: Work, mode: int, bound: int, members: int) -> int:
    """The part of the key that all states of one search share; only the lowest 16 bits are free.

    Searches that may use each other's failures have the same bits above the lowest 24.

    Args: work, mode, bound, members: see `search_team`.
    """
    if mode == MAKESPAN:  # what fails with some steps left fails whatever the bound was
        bound = 0
    # From the top: board (24 bits), mode (2), bound (8), members (8); below, by `rest_key`, parked (8) and step (8).
    return ((((work.board & 0xFFFFFF) << 2 | mode) << 8 | bound) << 8 | members) << 16


@compiled_within
def cells_key(work: Work, step: int) -> Word:
    """The cells of the agents that take part; the others have cell 0."""
    key = uint64(0)
    for agent in range(work.agents):
        key = (key << uint64(8)) | uint64(work.cell[step, agent])
    return key


@compiled_within
def rest_key(key: int, mode: int, parked: int, step: int) -> Word:
    """The rest of the key of a state: who is parked and the step.

    Args:
        key: from `search_key`.
        mode: what is bounded.
        parked: the set of parked agents.
        step: the level of the stack.
    """
    return uint64(key | parked << 8 | (0 if mode == MAKESPAN else step))


@compiled_within
def has_failed(work: Work, cells: Word, rest: Word, left: int) -> bool:
    """Return True if no plan was found from that state with as much left, or more.

    Args:
        work: the workspace.
        cells: from `cells_key`.
        rest: from `rest_key`.
        left: how much of the bound is left.
    """
    slot = _hash_state(cells, rest)
    search = rest >> uint64(24)
    for probe in range(PROBES):
        place = (slot + probe) & (FAILURES - 1)
        # A slot of another search counts as free, and nothing is stored behind a free one.
        if work.failed_rest[place] >> uint64(24) != search:
            return False
        if work.failed_cells[place] == cells and work.failed_rest[place] == rest:
            # No plan with so much left means none with less.
            return work.failed_left[place] >= left
    return False


@compiled_within
def remember_failure(work: Work, cells: Word, rest: Word, left: int) -> None:
    """Stores a failed state in a free slot, or one of another board or bound, else over the failure with least left.

    Args:
        work: the workspace.
        cells: from `cells_key`.
        rest: from `rest_key`.
        left: how much of the bound is left.
    """
    slot = _hash_state(cells, rest)
    search = rest >> uint64(24)
    best, least = slot, 256
    for probe in range(PROBES):
        place = (slot + probe) & (FAILURES - 1)
        same = work.failed_cells[place] == cells and work.failed_rest[place] == rest
        if same or work.failed_rest[place] >> uint64(24) != search:
            best = place
            break
        if work.failed_left[place] < least:
            least = np.int64(work.failed_left[place])
            best = place
    work.failed_cells[best] = cells
    work.failed_rest[best] = rest
    work.failed_left[best] = left


@compiled_within
def _hash_state(cells: Word, rest: Word) -> int:
    """The first slot of a key, by mixing its bits."""
    mixed = cells ^ (rest * uint64(0x9E3779B97F4A7C15))
    mixed = (mixed ^ (mixed >> uint64(31))) * uint64(0x7FB5D329728EA185)
    mixed = (mixed ^ (mixed >> uint64(27))) * uint64(0x81DADEF4BC2DD44D)
    return np.int64((mixed ^ (mixed >> uint64(33))) & uint64(FAILURES - 1))
