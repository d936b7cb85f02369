"""Floods of three agents against exhaustive search, and one step back against all joint moves."""

import itertools

import jax
import numpy as np
import pytest
from boards import assert_same_optima, mixed_boards, searched

from core_jax.bitboards import BOARDS_PER_WORD, by_word, cell_count, cell_index, offsets, pack_cells
from core_jax.triples import triple_cost_flood, triple_makespan_flood, triple_predecessors
from core_jax.types import Board

SIZE = 3
HOLE = (1, 1)

one_step_back = jax.jit(triple_predecessors, static_argnums=0, static_argnames="waits")


@jax.jit
def flooded(boards: Board) -> tuple[jax.Array, ...]:
    """Makespan, sum of costs and wait_required of B boards, by flood."""

    def of_word(word: Board) -> tuple[jax.Array, ...]:
        free = pack_cells(~word.holes)
        goals, starts = (cell_index(SIZE, cells).T for cells in (word.goals, word.starts))
        makespan = triple_makespan_flood(SIZE, free, goals, starts)
        return makespan, *triple_cost_flood(SIZE, free, goals, starts)

    return jax.tree.map(lambda field: field.reshape(-1), jax.lax.map(of_word, jax.tree.map(by_word, boards)))


def test_floods_agree_with_exhaustive_search():
    boards = mixed_boards(5, 8 * BOARDS_PER_WORD, SIZE, agents=3)
    found, expected = np.stack(flooded(boards), axis=1), searched(boards)
    assert_same_optima(boards, found, expected)
    assert (expected[:, 0] < 0).any(), "the sample should hold unsolvable boards"
    assert expected[:, 2].any(), "the sample should hold boards on which a wait is required"


def cells_around_a_hole() -> list[int]:
    return [int(cell_index(SIZE, np.array(cell))) for cell in np.ndindex(SIZE, SIZE) if cell != HOLE]


def sources(reached: np.ndarray, state: tuple[int, ...], waits: bool) -> np.uint32:
    """The boards on which a legal joint move from `state` leads into `reached`, one joint move after the other."""
    steps = offsets(SIZE) if waits else offsets(SIZE)[:4]
    free = set(cells_around_a_hole())
    found = np.uint32(0)
    for after in itertools.product(*([cell + by for by in steps if cell + by in free] for cell in state)):
        swap = any(after[i] == state[j] and after[j] == state[i] for i, j in itertools.combinations(range(3), 2))
        if len(set(after)) == 3 and not swap:
            found |= reached[after]
    return found


@pytest.mark.parametrize("waits", [True, False])
def test_states_one_step_back_are_those_of_all_joint_moves(waits):
    count, wide = cell_count(SIZE), cell_count(SIZE) + SIZE + 1
    states = list(itertools.permutations(cells_around_a_hole(), 3))
    lottery = np.random.default_rng(0).integers(0, 2**32, (4, len(states)), np.uint32)
    reached = np.zeros((count, wide, wide), np.uint32)
    reached[tuple(np.transpose(states))] = np.bitwise_and.reduce(lottery)  # one state in sixteen of each board
    before = np.asarray(one_step_back(SIZE, reached, waits=waits))
    expected = {state: sources(reached, state, waits) for state in states}
    wrong = [state for state in states if before[state] != expected[state]]
    assert not wrong, f"{len(wrong)} of {len(states)} states, first {wrong[0]} with waits={waits}"
    assert any(expected.values())
