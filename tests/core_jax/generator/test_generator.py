"""Every generated board is certified, in the stratum that was asked for, and drawn fairly."""

import ast
import functools
import math
from collections import Counter
from itertools import combinations, pairwise, permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core_jax.config import EnvConfig, SizeConfig, holes_of
from core_jax.errors import InputError
from core_jax.generator import Batch, attempts, check_reachable, generate, generator
from core_jax.generator.attempts import draw_map, pick_states
from core_jax.rows import boards_of, plan_of, read_all
from core_jax.solver import solve
from core_jax.types import Board, Certificate, Labels, Status
from tests.support.boards import search_oracle as oracle
from tests.support.boards.chi_square import assert_as_likely, assert_even
from tests.support.boards.generated_rows import (
    CONFIG,
    COUNT,
    SEED,
    SMALL,
    drawn_elsewhere,
    drawn_on_two_devices,
    none_met,
    rows,
    shown,
    small_rows,
)
from tests.support.boards.sample_boards import as_lists, as_moves, assert_every, each, picture

DRAWS = 30_240
RARE = EnvConfig.single(3, 2, 0.0, 0.6)  # about one map in four has a forced wait


@functools.cache
def batches() -> dict[int, Batch]:
    return generate(CONFIG, SEED, COUNT)


def boards_by_index(*parts: dict[int, Batch]) -> dict[int, tuple]:
    """Each board and its labels, written out."""
    found = {}
    for made in (one for part in parts for one in part.values()):
        plans = [plan_of(moves) for moves in made.labels.moves]
        costs = zip(made.labels.makespan, made.labels.sum_of_costs, made.labels.wait_required, strict=True)
        for index, *board in zip(made.index, each(made.boards), costs, plans, strict=True):
            found[int(index)] = (as_lists(board[0]), *board[1:])
    return found


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


def test_sizes_and_forced_waits_have_their_exact_shares_in_every_set():
    made = rows()
    for count in range(1, COUNT + 1):
        sizes = Counter(row.size for row in made[:count])
        assert all(abs(sizes[size] - cell.data_ratio * count) < 1 for size, cell in CONFIG.sizes.items()), count
        waits = Counter(row.size for row in made[:count] if row.wait_required)
        assert all(abs(waits[size] - cell.wait_ratio * sizes[size]) < 1 for size, cell in CONFIG.sizes.items()), count


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


def test_acceptance_tells_how_many_maps_were_drawn_for_the_boards():
    made = generate(RARE, 9, 500)[3]
    without, waiting = made.acceptance
    assert (without.wait, waiting.wait) == (False, True)
    assert (without.met, waiting.met) == (200, 300)
    assert without.drawn >= 200
    assert waiting.drawn > 600, "most maps without holes have no forced wait"
    assert without.solvable is None, "a map with goals is no board yet"


def test_progress_tells_every_board():
    told = []
    generate(SMALL, 0, 50, told.append)
    assert sum(told) == 50


@pytest.mark.parametrize("wait", [True, False])
def test_a_stratum_that_is_not_found_is_given_up_with_size_and_remedy(monkeypatch, wait):
    monkeypatch.setattr(generator, "attempt", none_met)
    config = EnvConfig.single(4, 2, 0.25, float(wait))
    waits = "with a forced wait" if wait else "without a forced wait"
    said = (
        rf"board 30: none of 8192 random maps has one of the 4x4 boards for 2 agents with 3 holes {waits} \(drawn \d+"
    )
    with pytest.raises(InputError, match=f"{said}, met 0\\); change wait_ratio or hole_ratio of size 4"):
        generate(config, 0, 2000, first=30)
    with pytest.raises(InputError, match=r"only 0 of 4096 random maps .* change wait_ratio or hole_ratio of size 4"):
        check_reachable(config, 0)


def test_what_cannot_be_found_is_given_up_soon(monkeypatch):
    drawn = []
    monkeypatch.setattr(generator, "workers", lambda: 2)
    monkeypatch.setattr(generator, "attempt", lambda *given: drawn.append(given[-1].wait) or none_met(*given))
    with pytest.raises(InputError, match="board 0: none of 8192"):
        generate(EnvConfig.single(4, 2, 0.25, 1.0), 0, 100_000)
    assert sum(map(len, drawn)) < 8 * generator.MAX_ATTEMPTS, "not so many for each of the boards"


def test_a_board_that_needs_more_attempts_than_allowed_is_refused_in_every_batch(monkeypatch):
    needed = [generate(RARE, 5, 1, first=index)[3].acceptance[0].drawn for index in range(20)]
    allowed = 3
    refused = [index for index, drawn in enumerate(needed) if drawn > allowed]
    assert 0 < len(refused) < 20
    monkeypatch.setattr(generator, "MAX_ATTEMPTS", allowed)
    for index in refused:
        with pytest.raises(InputError, match=f"board {index}: none of {allowed} random maps"):
            generate(RARE, 5, 1, first=index)
    with pytest.raises(InputError, match=f"board ({'|'.join(map(str, refused))}): none of {allowed} random maps"):
        generate(RARE, 5, 20)
    others = [index for index in range(20) if index not in refused]
    assert [generate(RARE, 5, 1, first=index)[3].index.tolist() for index in others] == [[index] for index in others]


def test_one_agent_never_has_to_wait():
    with pytest.raises(
        InputError, match=r"sizes\.5\.wait_ratio is 0\.5 for 1 agent, which never has to wait; set it to 0"
    ):
        generate(EnvConfig.single(5, 1, 0.2, 0.5), 0, 1)


def test_what_is_reachable_is_not_refused():
    assert check_reachable(CONFIG, 0) is None, "it raises an error otherwise"


@pytest.mark.parametrize(
    ("count", "seed", "first", "problem"),
    [
        (0, 0, 0, "count is 0: ask for at least one"),
        (1, -1, 0, "seed is -1: choose 0 to"),
        (1, 1 << 32, 0, "seed is 4294967296: choose 0 to"),
        (1, 0, -1, "first is -1: boards are numbered 0 to"),
        (2, 0, (1 << 32) - 1, "first is 4294967295: boards are numbered"),
    ],
)
def test_what_the_generator_cannot_draw_is_refused(count, seed, first, problem):
    with pytest.raises(InputError, match=problem):
        generate(SMALL, seed, count, first=first)


def solved_slowly(boards: Board, wanted: np.ndarray | None = None) -> Labels:
    """The oracle's labels, without plans; a board is undecided here where the first agent starts in the corner."""
    found = [slow_optima(str(as_lists(board))) for board in each(boards)]
    undecided = (np.asarray(boards.starts)[:, 0] == 0).all(axis=1)
    makespan, cost, wait = (np.where(undecided, -1, column) for column in np.array(found).T)
    status = np.select([undecided, cost < 0], [Status.UNDECIDED, Status.UNSOLVABLE], Status.SOLVABLE)
    moves = np.full((len(found), boards.starts.shape[1], 1), -1, np.int8)
    return Labels(status, np.full_like(status, Certificate.SEARCH), makespan, cost, wait > 0, moves)


@functools.cache
def slow_optima(board: str) -> tuple[int, int, bool]:
    rows, starts, goals = ast.literal_eval(board)
    return oracle.optima(rows, starts, goals)


@pytest.mark.parametrize(("agents", "wait_ratio"), [(1, 0.0), (3, 0.25)])
def test_boards_for_other_numbers_of_agents_have_their_stratum_and_undecided_ones_are_left_out(
    monkeypatch, agents, wait_ratio
):
    monkeypatch.setattr(attempts, "BLOCK", 32)
    monkeypatch.setattr(attempts, "prepare", lambda size, agents: None)
    monkeypatch.setattr(attempts, "solve", solved_slowly)
    config = EnvConfig.single(3, agents, 0.5, wait_ratio)
    made = generate(config, 2, 24)[3]
    assert made.boards.starts.shape == (24, agents, 2)
    assert made.labels.wait_required.sum() == 24 * wait_ratio
    again = solved_slowly(made.boards)
    assert_every(made.labels.solvable & again.solvable, made.boards)
    assert_every(again.wait_required == made.labels.wait_required, made.boards)
    assert_every(made.boards.holes.sum(axis=(1, 2)) == holes_of(3, agents, 0.5), made.boards)
    parts = [generate(config, 2, 5, first=begin) for begin in range(0, 20, 5)]
    assert boards_by_index(*parts).items() <= boards_by_index({3: made}).items()
    for one in made.acceptance:
        assert one.drawn == one.solvable + one.unsolvable + one.undecided
        assert (
            one.met
            == (one.waiting if one.wait else one.solvable - one.waiting)
            == Counter(made.labels.wait_required.tolist())[one.wait]
        )
    assert sum(one.undecided for one in made.acceptance) > 0


@functools.cache
def every_board(holes: int) -> tuple[Board, np.ndarray]:
    """All 3x3 boards for two agents whose four cells are distinct, and of each a number that its mirror images, its
    rotations and the same with the agents exchanged share."""
    maps = list(combinations(range(9), holes))
    cells = [(hole, ends) for hole in maps for ends in permutations(sorted({*range(9)} - {*hole}), 4)]
    is_hole = np.array([np.isin(np.arange(9), hole) for hole, _ in cells])
    starts, goals = np.moveaxis(np.array([ends for _, ends in cells]).reshape(-1, 2, 2), 1, 0)
    boards = Board(
        is_hole.reshape(-1, 3, 3), *(np.stack([c // 3, c % 3], -1).astype(np.int32) for c in (starts, goals))
    )
    return boards, classes(boards)


def classes(boards: Board) -> np.ndarray:
    """A number a 3x3 board, the same for those that differ by symmetry only: int64 [B]."""
    grid = np.arange(9).reshape(3, 3)
    images = [np.rot90(side, turns).reshape(-1) for side in (grid, grid.T) for turns in range(4)]
    ends = np.concatenate([boards.starts, boards.goals], axis=1) @ [3, 1]
    codes = []
    for image in images:
        holes = np.asarray(boards.holes).reshape(-1, 9) @ (1 << image)
        for order in ([0, 1, 2, 3], [1, 0, 3, 2]):
            codes.append(holes * 9**4 + image[ends[:, order]] @ 9 ** np.arange(4))
    return np.min(codes, axis=0)


@pytest.mark.parametrize(("holes", "wait"), [(1, True), (2, False), (3, True), (3, False)])
def test_boards_are_drawn_as_by_plain_rejection_but_that_each_map_counts_once(holes, wait):
    # All boards, those outside the stratum rejected: each as likely as any other. Here, in inverse proportion to the
    # number of boards that its map, with its goals, has in the stratum.
    boards, of_class = every_board(holes)
    labels = solve(boards)
    kept = np.asarray(labels.solvable) & (labels.wait_required == wait)
    on_map = np.asarray(boards.holes).reshape(-1, 9) @ (1 << np.arange(9)) * 9**4 + (boards.goals @ [3, 1]) @ [1, 9]
    maps, which, together = np.unique(on_map[kept], return_inverse=True, return_counts=True)
    names, place = np.unique(of_class[kept], return_inverse=True)
    weights = np.bincount(place, 1 / together[which])
    config = EnvConfig.single(3, 2, min(holes / 5, 0.5), float(wait))
    drawn = generate(config, 4, DRAWS)[3].boards
    found = classes(drawn)
    assert np.isin(found, names).all(), "a board that is not in the stratum"
    assert_as_likely(np.bincount(np.searchsorted(names, found), minlength=len(names)), weights)
    # And on each map every board of the stratum is as likely as any other.
    drawn_map = np.asarray(drawn.holes).reshape(-1, 9) @ (1 << np.arange(9)) * 9**4 + (drawn.goals @ [3, 1]) @ [1, 9]
    assert_even_on_each(drawn_map, drawn.starts @ [3, 1] @ [1, 9], dict(zip(maps, together, strict=True)))


def assert_even_on_each(groups: np.ndarray, values: np.ndarray, choices: dict[int, int]) -> None:
    """Chi-square, all groups together, of values that are even among so many choices in each group."""
    found = freedom = 0.0
    size = Counter(groups.tolist())
    for (group, _), times in Counter(zip(groups.tolist(), values.tolist(), strict=True)).items():
        found += times**2 * choices[group] / size[group]
    found -= len(groups)
    freedom = sum(choices[group] - 1 for group in size)
    assert abs(found - freedom) < 6 * math.sqrt(2 * freedom), f"chi-square {found:.0f} at {freedom} degrees"


def test_a_state_is_picked_evenly_among_those_of_its_board():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2**32, (12, 12), dtype=np.uint32)
    states[5] = 0
    lane = 7
    members = (states >> lane & 1).astype(bool)
    tickets = jax.random.bits(jax.random.key(1), (DRAWS, 32))
    pick = jax.jit(lambda tickets: jax.lax.map(lambda word: pick_states(jnp.asarray(states), word), tickets))
    cells, met = jax.tree.map(np.asarray, pick(tickets))
    drawn = np.zeros((12, 12), int)
    np.add.at(drawn, tuple(cells[:, lane].T), 1)
    assert np.all(met[:, lane]), "of the states of some boards none was picked"
    assert drawn[~members].sum() == 0, "a state was picked that is not in the set"
    assert_even(drawn[members])


def test_of_no_states_none_is_picked():
    all_but_lane_7 = jnp.full((12, 12), 0xFFFFFFFF ^ 1 << 7, jnp.uint32)
    _, met = pick_states(all_but_lane_7, jnp.full(32, 5, jnp.uint32))
    assert met.tolist() == [lane != 7 for lane in range(32)]


def test_maps_are_drawn_evenly():
    bits = jax.random.bits(jax.random.key(2), (DRAWS, 9))
    free, goals = jax.tree.map(np.asarray, jax.jit(jax.vmap(lambda bits: draw_map(3, bits, 2)))(bits))
    maps = Counter(zip(map(bytes, free), map(bytes, goals), strict=True))
    assert len(maps) == 9 * 8 * 21, "every pair of goals with every pair of holes"
    assert_even(np.array(list(maps.values())))
    ends_are_free = np.take_along_axis(free.reshape(-1, 9), goals[..., 0] * 3 + goals[..., 1], axis=1).all(axis=1)
    assert_every((free.sum(axis=(1, 2)) == 7) & ends_are_free, Board(~free, goals, goals))


def test_boards_of_a_row_are_the_boards_that_were_drawn():
    threes = [row for row in rows() if row.size == 3]
    drawn = batches()[3].boards
    again = boards_of(threes)
    same = (again.holes == drawn.holes).all(axis=(1, 2)) & (again.starts == drawn.starts).all(axis=(1, 2))
    assert_every(same & (again.goals == drawn.goals).all(axis=(1, 2)), drawn)
