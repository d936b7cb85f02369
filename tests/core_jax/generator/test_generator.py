"""Every generated board is certified, in the stratum that was asked for, and drawn fairly."""

import functools
from collections import Counter
from itertools import pairwise

import jax
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig, holes_of
from lakewright.core_jax.generator import Batch, attempts, check_reachable, generate
from lakewright.core_jax.rows import boards_of, plan_of, read_all
from lakewright.core_jax.solver import solve
from tests.support.boards import search_oracle as oracle
from tests.support.boards.generated_rows import (
    CONFIG,
    COUNT,
    RARE,
    SEED,
    SMALL,
    boards_by_index,
    drawn_elsewhere,
    drawn_on_two_devices,
    rows,
    shown,
    small_rows,
)
from tests.support.boards.sample_boards import as_lists, as_moves, assert_every, each, picture


@functools.cache
def batches() -> dict[int, Batch]:
    return generate(CONFIG, SEED, COUNT)


def totals(*parts: dict[int, Batch]) -> dict[tuple, list[int]]:
    """Drawn and met of each stratum, added up."""
    sums: dict[tuple, list[int]] = {}
    for one in (one for part in parts for made in part.values() for one in made.acceptance):
        before = sums.get((one.size, one.wait), [0, 0])
        sums[one.size, one.wait] = [before[0] + one.drawn, before[1] + one.met]
    return sums


@pytest.mark.parametrize("size", CONFIG.sizes)
def test_the_solver_finds_the_labels_that_a_board_was_generated_with(size):
    batch = batches()[size]
    again = solve(batch.boards)
    assert_every(batch.labels.solvable, batch.boards)
    for field in ("solvable", "makespan", "sum_of_costs", "wait_required"):
        labelled, found = getattr(batch.labels, field), getattr(again, field)
        assert_every(labelled == found, batch.boards, labelled=labelled, found=found)


@pytest.mark.parametrize("size", CONFIG.sizes)
def test_exhaustive_search_finds_the_labels_that_a_board_was_generated_with(size):
    batch = batches()[size]
    labels = zip(batch.labels.makespan, batch.labels.sum_of_costs, batch.labels.wait_required, strict=True)
    for board, labelled in list(zip(each(batch.boards), labels, strict=True))[::3]:
        assert oracle.optima(*as_lists(board)) == labelled, picture(board)


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


def test_sizes_and_forced_waits_have_their_exact_shares_in_every_set():
    made = rows()
    for count in range(1, COUNT + 1):
        sizes = Counter(row.size for row in made[:count])
        assert all(abs(sizes[size] - cell.data_ratio * count) < 1 for size, cell in CONFIG.sizes.items()), count
        waits = Counter(row.size for row in made[:count] if row.wait_required)
        assert all(abs(waits[size] - cell.wait_ratio * sizes[size]) < 1 for size, cell in CONFIG.sizes.items()), count


def test_a_share_of_zero_gets_no_board():
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


@pytest.mark.deep
def test_other_processes_draw_the_same_boards():
    here = small_rows()
    out, _ = drawn_elsewhere(".jsonl")
    assert read_all(out) == here, f"{out} differs from what this process draws"


@pytest.mark.parametrize("config", [CONFIG, RARE])
def test_a_board_is_the_same_whatever_is_drawn_with_it(config):
    whole = generate(config, 7, 640)
    cuts = [0, 1, 2, 19, 300, 640]
    parts = [generate(config, 7, end - begin, first=begin) for begin, end in pairwise(cuts)]
    alone, together = boards_by_index(*parts), boards_by_index(whole)
    assert sorted(together) == list(range(640))
    assert alone == together
    assert totals(*parts) == totals(whole), "the counts of a set are the sums of those of its pieces"


@pytest.mark.parametrize("block", [64, pytest.param(1024, marks=pytest.mark.deep)])
def test_a_board_is_the_same_whatever_the_size_of_the_blocks(monkeypatch, block):
    before = generate(RARE, 8, 90)
    monkeypatch.setattr(attempts, "BLOCK", block)
    after = generate(RARE, 8, 90)
    assert boards_by_index(after) == boards_by_index(before)
    assert totals(after) == totals(before)


@pytest.mark.deep
def test_a_board_is_the_same_on_several_devices():
    count = 1300
    there, devices = drawn_on_two_devices(count)
    assert devices == ["0", "1", "0", "1"], "blocks are dealt to the devices in turn"
    assert there == small_rows(count=count)


def test_a_board_far_into_a_set_is_drawn_at_once():
    made = generate(CONFIG, SEED, 3, first=10**8)
    assert sorted(boards_by_index(made)) == [10**8, 10**8 + 1, 10**8 + 2]
    assert boards_by_index(made) != boards_by_index(generate(CONFIG, SEED, 3))


def test_a_set_does_not_repeat_itself():
    made = generate(EnvConfig.single(5, 2, 0.3, 0.5), 3, 700)[5]
    assert_every(made.index == np.arange(700), made.boards)
    seen = Counter(str(as_lists(board)) for board in each(made.boards))
    assert max(seen.values()) == 1


def test_what_is_compiled_for_a_size_serves_every_set_of_it(caplog):
    generate(EnvConfig.single(3, 2, 0.2, 0.5), 0, 5)
    with jax.log_compiles():
        generate(EnvConfig({3: SizeConfig(1.0, 0.3, 0.2)}), 1, 1700, first=50)
        check_reachable(EnvConfig.single(3, 2, 0.1, 1.0), 2)
    again = [record.getMessage() for record in caplog.records if "ompiling" in record.getMessage()]
    assert not again, again[0]


def test_acceptance_counts_the_maps_drawn_for_the_boards():
    made = generate(RARE, 9, 500)[3]
    without, waiting = made.acceptance
    assert (without.wait, waiting.wait) == (False, True)
    assert (without.met, waiting.met) == (200, 300)
    assert without.drawn >= 200
    assert waiting.drawn > 600, "most maps without holes have no forced wait"
    assert without.solvable is None, "a map with goals is no board yet"


def test_progress_reports_every_board():
    labelled = []
    generate(SMALL, 0, 50, labelled.append)
    assert sum(labelled) == 50


def test_boards_of_a_row_are_the_boards_that_were_drawn():
    threes = [row for row in rows() if row.size == 3]
    drawn = batches()[3].boards
    again = boards_of(threes)
    same = (again.holes == drawn.holes).all(axis=(1, 2)) & (again.starts == drawn.starts).all(axis=(1, 2))
    assert_every(same & (again.goals == drawn.goals).all(axis=(1, 2)), drawn)
