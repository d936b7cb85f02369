"""Every generated board is certified, in the stratum that was asked for, and drawn fairly."""

import functools
from collections import Counter
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from boards import as_lists, as_moves, assert_every, each, picture
from samples import CONFIG, COUNT, SEED, SMALL, drawn_elsewhere, rows, shown, small_rows

from core_jax import generator
from core_jax.config import EnvConfig, SizeConfig, holes_of
from core_jax.errors import InputError
from core_jax.formats import boards_of, plan_of, read_all
from core_jax.generator import Batch, Stratum, check_reachable, draw_map, draw_stratum, generate, pick_state
from core_jax.solver import solve
from core_jax.types import Board

DRAWS = 30_240
WAITING = Stratum(3, 1, wait=True)


@functools.cache
def batches() -> dict[int, Batch]:
    return generate(CONFIG, SEED, COUNT)


def stream(count: int, stratum: Stratum = WAITING, seed: int = 3) -> Board:
    """The first boards of a stratum's stream."""
    pieces = draw_stratum(stratum, jax.random.key(seed), count)
    return jax.tree.map(lambda *fields: np.concatenate(fields), *(boards for boards, _ in pieces))


def assert_even(counts: np.ndarray) -> None:
    """Chi-square against equal chances: within six standard deviations of its mean."""
    expected, freedom = counts.sum() / len(counts), len(counts) - 1
    assert expected >= 20, "too few draws a cell"
    found = ((counts - expected) ** 2).sum() / expected
    assert abs(found - freedom) < 6 * np.sqrt(2 * freedom), f"chi-square {found:.0f} at {freedom} degrees of freedom"


@pytest.mark.parametrize("size", CONFIG.sizes)
def test_the_solver_finds_the_labels_that_a_board_was_generated_with(size):
    batch = batches()[size]
    again = solve(batch.boards)
    assert_every(batch.labels.solvable, batch.boards)
    for field in ("solvable", "makespan", "sum_of_costs", "wait_required"):
        told, found = getattr(batch.labels, field), getattr(again, field)
        assert_every(told == found, batch.boards, told=told, found=found)


@pytest.mark.parametrize("size", CONFIG.sizes)
def test_exhaustive_search_finds_the_labels_that_a_board_was_generated_with(size):
    batch = batches()[size]
    labels = zip(batch.labels.makespan, batch.labels.sum_of_costs, batch.labels.wait_required, strict=True)
    for board, told in list(zip(each(batch.boards), labels, strict=True))[::3]:
        assert oracle.optima(*as_lists(board)) == told, picture(board)


def test_every_plan_replays_at_its_cost():
    for row in rows():
        played = oracle.play(row.grid, row.starts, row.goals, row.plan)
        assert (played.failure, played.sum_of_costs) == ("none", row.sum_of_costs), shown(row)
        longest = max(map(len, row.plan))
        assert plan_of(as_moves(row.plan, longest)) == row.plan, shown(row)


def test_a_board_has_exactly_its_holes_and_all_its_cells_are_distinct_and_frozen():
    for row in rows():
        cell = CONFIG.sizes[row.size]
        cells = [*row.starts, *row.goals]
        assert sum(line.count("H") for line in row.grid) == holes_of(row.size, 2, cell.hole_ratio), shown(row)
        assert len(set(cells)) == 4, shown(row)
        assert all(row.grid[line][column] == "." for line, column in cells), shown(row)


def test_sizes_and_forced_waits_have_their_exact_shares_by_largest_remainder():
    # Of 301 boards 105.35 and 195.65; of those 105 and 196 then 52.5 (a tie: waits first) and 58.8 wait.
    assert Counter(row.size for row in rows()) == {3: 105, 5: 196}
    assert Counter(row.size for row in rows() if row.wait_required) == {3: 53, 5: 59}


def test_a_share_of_nothing_gets_no_board():
    config = EnvConfig({3: SizeConfig(1.0, 0.2, 0.0), 4: SizeConfig(0.0, 0.2, 0.5)})
    made = generate(config, 0, 7)
    assert list(made) == [3]
    assert not made[3].labels.wait_required.any()
    assert generate(EnvConfig.single(3, 2, 0.2, 1.0), 0, 7)[3].labels.wait_required.all()


def test_every_place_of_the_set_is_taken_once_and_sizes_are_mixed():
    places = np.concatenate([batch.index for batch in batches().values()])
    assert sorted(places) == list(range(COUNT))
    sizes = [row.size for row in rows()]
    changes = sum(before != after for before, after in pairwise(sizes))
    assert changes > COUNT / 3, "boards of one size should not stand together"
    assert len({row.id for row in rows()}) == COUNT


def test_the_same_seed_draws_the_same_boards_and_another_seed_others():
    assert small_rows(seed=1) == small_rows(seed=1)
    one, other = ({str((row.grid, row.starts, row.goals)) for row in small_rows(seed)} for seed in (1, 2))
    assert len(one & other) < len(one) / 2, "not the same boards in another order"


def test_other_processes_draw_the_same_boards():
    here = small_rows()
    for ending in (".jsonl", ".parquet"):
        out, _ = drawn_elsewhere(ending)
        assert read_all(out) == here, f"{out} differs from what this process draws"


def test_fewer_boards_of_a_stratum_are_a_prefix_of_more():
    few, many = stream(10), stream(700)
    assert len(many.holes) == 700
    first = jax.tree.map(lambda field: field[:10], many)
    same = [as_lists(one) == as_lists(other) for one, other in zip(each(few), each(first), strict=True)]
    assert_every(np.array(same), few)


def test_a_stream_does_not_repeat_itself():
    seen = Counter(str(as_lists(board)) for board in each(stream(700, Stratum(5, 6, wait=True))))
    assert max(seen.values()) == 1


def test_progress_tells_every_board():
    told = []
    generate(SMALL, 0, 50, told.append)
    assert sum(told) == 50


@pytest.mark.parametrize("wait", [True, False])
def test_a_stratum_that_is_not_found_is_given_up_with_size_and_remedy(monkeypatch, wait):
    monkeypatch.setattr(generator, "MIN_MAPS", generator.BLOCK)
    boards = stream(1)
    nothing = boards, solve(boards), np.array([False])
    monkeypatch.setattr(generator, "_draw_block", lambda *_: nothing)
    config = EnvConfig.single(4, 2, 0.25, float(wait))
    said = f"0 of 9 4x4 boards with 3 holes {'with' if wait else 'without'} a forced wait found on 512 random maps"
    with pytest.raises(InputError, match=f"{said}.*change wait_ratio or hole_ratio of size 4"):
        generate(config, 0, 9)
    with pytest.raises(InputError, match="change wait_ratio or hole_ratio of size 4"):
        check_reachable(config, 0)


def test_a_stratum_that_is_too_rare_is_given_up_when_its_maps_are_spent(monkeypatch):
    monkeypatch.setattr(generator, "MIN_MAPS", 0)
    monkeypatch.setattr(generator, "MAPS_PER_BOARD", 1)
    with pytest.raises(InputError, match="of 1000 3x3 boards with 0 holes with a forced wait found on 512 random maps"):
        generate(EnvConfig.single(3, 2, 0.0, 1.0), 0, 1000)


def test_what_is_reachable_is_not_refused():
    check_reachable(CONFIG, 0)


@pytest.mark.parametrize(
    ("agents", "count", "problem"),
    [(3, 5, "agents is 3: .* set agents to 2"), (2, 0, "count is 0: ask for at least one")],
)
def test_what_the_generator_cannot_draw_is_refused(agents, count, problem):
    with pytest.raises(InputError, match=problem):
        generate(EnvConfig.single(5, agents, 0.2, 0.5), 0, count)


def test_a_state_is_picked_evenly_among_those_of_its_board():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2**32, (12, 12), dtype=np.uint32)
    states[5] = 0
    lane = 7
    members = (states >> lane & 1).astype(bool)
    keys = jax.random.split(jax.random.key(1), DRAWS)
    pick = jax.jit(jax.vmap(pick_state, in_axes=(None, None, 0)))
    cells, met = pick(jnp.asarray(states), jnp.int32(lane), keys)
    drawn = np.zeros((12, 12), int)
    np.add.at(drawn, tuple(np.asarray(cells).T), 1)
    assert np.all(met)
    assert drawn[~members].sum() == 0, "a state was picked that is not in the set"
    assert_even(drawn[members])


def test_of_no_states_none_is_picked():
    all_but_lane_7 = jnp.full((12, 12), 0xFFFFFFFF ^ 1 << 7, jnp.uint32)
    assert not pick_state(all_but_lane_7, jnp.int32(7), jax.random.key(0))[1]
    assert pick_state(all_but_lane_7, jnp.int32(6), jax.random.key(0))[1]


def test_maps_are_drawn_evenly():
    keys = jax.random.split(jax.random.key(2), DRAWS)
    free, goals = jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda key: draw_map(3, key, 2)))(keys))
    maps = Counter(zip(map(bytes, free), map(bytes, goals), strict=True))
    assert len(maps) == 9 * 8 * 21, "every pair of goals with every pair of holes"
    assert_even(np.array(list(maps.values())))
    ends_are_free = np.take_along_axis(free.reshape(-1, 9), goals[..., 0] * 3 + goals[..., 1], axis=1).all(axis=1)
    assert_every((free.sum(axis=(1, 2)) == 7) & ends_are_free, Board(~free, goals, goals))


def test_boards_of_a_row_are_the_boards_that_were_drawn():
    threes = [row for row in rows() if row.size == 3]
    order = np.argsort(batches()[3].index)
    drawn = jax.tree.map(lambda field: field[order], batches()[3].boards)
    again = boards_of(threes)
    same = (again.holes == drawn.holes).all(axis=(1, 2)) & (again.starts == drawn.starts).all(axis=(1, 2))
    assert_every(same & (again.goals == drawn.goals).all(axis=(1, 2)), drawn)
