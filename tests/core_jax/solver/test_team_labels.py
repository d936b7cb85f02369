"""Labels of three agents by floods for accelerators, on a CPU: those of the host's search, and of a walk."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import holes_of
from lakewright.core_jax.generator import draw_free
from lakewright.core_jax.solver import label_boards, label_teams_on_device, solve
from lakewright.core_jax.solver.accelerator import row_groups, sizes, team_floods, team_labels
from lakewright.core_jax.solver.accelerator.cell_sets import word_count
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.types import Board, Certificate, Labels
from tests.support.boards.sample_boards import (
    assert_every,
    assert_same_optima,
    batch,
    drawing,
    mixed_boards,
    optima,
    searched,
)
from tests.support.deep import count_examples
from tests.support.refusals import refused

SIZES = (3, *(pytest.param(size, marks=pytest.mark.deep) for size in (2, 4, 5)))


def random_teams(size: int, count: int, seed: int) -> Board:
    """Boards with three free cells or more, and any starts and goals: some agents begin at home, or swap."""
    rng = np.random.default_rng(seed)
    order, again = (rng.random((count, size**2)).argsort(axis=1) for _ in range(2))
    free = rng.integers(3, size**2 + 1, count)
    holes = np.ones((count, size**2), bool)
    np.put_along_axis(holes, order, np.arange(size**2) >= free[:, None], axis=1)
    is_hole = np.take_along_axis(holes, again, axis=1)
    goals = np.take_along_axis(again, is_hole.argsort(axis=1, kind="stable"), axis=1)
    cells = [np.stack(np.divmod(some[:, :3], size), axis=-1).astype(np.int32) for some in (order, goals)]
    return Board(holes.reshape(count, size, size), *cells)


def assert_labels_of_the_host(boards: Board, found) -> None:
    expected = solve(boards)
    for name in ("status", "makespan", "sum_of_costs", "wait_required"):
        one, other = np.asarray(getattr(found, name)), np.asarray(getattr(expected, name))
        assert one.dtype == other.dtype, name
        assert_every(one == other, boards, **{name: one, "expected": other})
    # A flood proves what a search would have.
    proven = np.where(expected.certificate == Certificate.SEARCH, Certificate.FLOOD, expected.certificate)
    assert_every(found.certificate == proven, boards, certificate=found.certificate, expected=proven)
    assert found.moves.shape == (len(proven), 3, 0)


@pytest.mark.parametrize("size", SIZES)
@settings(max_examples=count_examples(2))
@given(seed=st.integers(0, 1 << 32))
def test_labels_are_those_of_a_walk_over_all_joint_states(size, seed):
    boards = random_teams(size, 30, seed)
    assert_same_optima(boards, optima(label_teams_on_device(boards)), searched(boards))


@pytest.mark.parametrize("size", [3, *(pytest.param(size, marks=pytest.mark.deep) for size in (4, 5, 6, 7, 9, 10))])
def test_labels_are_those_of_the_other_solver(size):
    boards = mixed_boards(size, 100, size, agents=3)
    assert_labels_of_the_host(boards, label_teams_on_device(boards))


@pytest.mark.deep
@pytest.mark.parametrize("size", [5, 8])
def test_labels_of_a_sweeps_boards_are_those_of_the_other_solver(size):
    boards = draw_free(size, 3, holes_of(size, 3, 0.3), seed=1, first=0, count=800)
    assert_labels_of_the_host(boards, label_teams_on_device(boards))


SQUARE = [(0, 0), (0, 1), (1, 1)]
KNOWN = {
    "three go around a square": (["..", ".."], SQUARE, [(0, 1), (1, 1), (1, 0)], (1, 3, False)),
    "each pair can, all three cannot": (["..", ".."], SQUARE, [(0, 1), (0, 0), (1, 1)], (-1, -1, False)),
    "two go round a third's corner": (
        ["...", "..H", "HHH"],
        [(0, 0), (0, 1), (0, 2)],
        [(0, 1), (0, 2), (0, 0)],
        (3, 8, False),
    ),
    "one without a way": (
        ["...", "HHH", "..."],
        [(0, 0), (0, 1), (2, 0)],
        [(0, 1), (0, 2), (0, 0)],
        (-1, -1, False),
    ),
}


def test_known_boards_have_their_known_optima():
    boards = batch([drawing(rows, starts, goals, size=3) for rows, starts, goals, _ in KNOWN.values()])
    found, expected = optima(label_teams_on_device(boards)), np.array([answer for *_, answer in KNOWN.values()])
    assert_every((found == expected).all(axis=1), boards, name=np.array(list(KNOWN)), found=found, expected=expected)


@pytest.mark.deep
def test_labels_do_not_depend_on_groups(monkeypatch):
    boards = mixed_boards(1, 60, 3, agents=3)
    whole = optima(label_teams_on_device(boards))
    monkeypatch.setattr(row_groups, "SPARE", 1)  # every group leaves all of its boards to the tail
    assert_same_optima(boards, optima(label_teams_on_device(boards)), whole)


def test_it_asks_for_three_agents_on_boards_of_moderate_size():
    with refused("5x5", "2 agents"):
        label_teams_on_device(mixed_boards(0, 4, 5))
    with refused("11x11", "10x10"):
        label_teams_on_device(mixed_boards(0, 4, 11, agents=3))


@pytest.mark.parametrize(
    ("agents", "size", "largest", "by_floods"), [(3, 3, 3, True), (3, 3, 2, False), (2, 3, 3, False)]
)
def test_a_gpu_floods_boards_of_three_agents_whose_plans_nobody_asks_for(monkeypatch, agents, size, largest, by_floods):
    from lakewright.core_jax.solver import solver

    boards, called = mixed_boards(1, 8, size, agents), []
    monkeypatch.setattr(solver, "on_gpu", lambda: True)
    monkeypatch.setattr(sizes, "LARGEST_OF_TEAMS", largest)
    monkeypatch.setattr(team_labels, "label_teams_on_device", called.append)
    monkeypatch.setattr(solver, "solve", lambda given: Labels(*[None] * 5, np.zeros((8, agents, 4))))
    found = label_boards(boards)
    assert called == ([boards] if by_floods else [])
    assert by_floods or found.moves.shape == (8, agents, 0)


@pytest.mark.parametrize("is_gpu", [True, False])
@pytest.mark.parametrize("size", [3, 5, 8])
def test_a_flood_of_teams_takes_the_place_of_the_pairs_layers(monkeypatch, size, is_gpu):
    monkeypatch.setattr(team_labels, "on_gpu", lambda: is_gpu)
    held = team_labels.HELD if is_gpu else team_labels.HELD_BY_WORD * word_count(size)
    chosen = team_labels.choose_team_sizes(size, sizes.Sizes(1 << 18, 1 << 14, 1 << 11))
    taken = chosen.flood * 4 * word_count(size) * size**4 * held
    assert 0.5 < taken / sizes.flood_bytes(size, 1 << 14, sizes.first_depth(size)) <= 1


@pytest.mark.deep
def test_a_processor_holds_no_more_sets_than_planned():
    size, group = 5, 4
    words = tuple(np.zeros(64, np.uint32) for _ in range(word_count(size)))
    limits, rows = np.zeros(64, np.int32), np.zeros(group, np.int32)
    given = size, True, words, np.zeros((6, 64), np.int32), limits, rows, np.int32(0)
    with stated_settings():
        taken = team_floods.flood_for_team_costs.jitted.lower(*given).compile().memory_analysis().temp_size_in_bytes
    assert taken < 4 * size**4 * group * team_labels.HELD_BY_WORD
