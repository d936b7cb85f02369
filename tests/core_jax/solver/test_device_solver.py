"""The solver for accelerators, on a CPU: its labels are those of the other solver, plan by plan."""

import inspect
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import draw_free
from lakewright.core_jax.lake import verify
from lakewright.core_jax.solver import solve, solve_on_device
from lakewright.core_jax.solver.accelerator import device_solver, row_groups, sizes
from lakewright.core_jax.solver.accelerator.cell_sets import WORD, lead_into, word_count
from lakewright.core_jax.types import DELTAS, Board, Certificate, Failure
from tests.support.boards.sample_boards import assert_every, batch, drawing, mixed_boards
from tests.support.refusals import refused

SERPENTINE = [".....", "HHHH.", ".....", ".HHHH", "....."]


def with_shared_cells(boards: Board) -> Board:
    """Boards of which some have an agent at home already, goals that are the other's start, or an exchange."""
    starts, goals = (np.array(cells) for cells in (boards.starts, boards.goals))
    goals[0::10, 0], goals[1::10, 1], goals[3::10, 0] = starts[0::10, 0], starts[1::10, 1], starts[3::10, 1]
    goals[2::10] = starts[2::10, ::-1]
    return Board(boards.holes, starts, goals)


def assert_same_labels(boards: Board, found, expected) -> None:
    for name in ("status", "certificate", "makespan", "sum_of_costs", "wait_required", "moves"):
        one, other = np.asarray(getattr(found, name)), np.asarray(getattr(expected, name))
        assert (one.shape, one.dtype) == (other.shape, other.dtype), name
        assert_every((one == other).reshape(len(one), -1).all(axis=1), boards, **{name: one})


@given(size=st.integers(1, 40), move=st.integers(0, 3), seed=st.integers(0, 1 << 32))
def test_a_move_leads_into_a_set_from_the_cells_beside_it_at_every_size(size, move, seed):
    padded = np.zeros(word_count(size) * WORD, bool)
    padded[: size**2] = held = np.random.default_rng(seed).random(size**2) < 0.5
    words = np.packbits(padded, bitorder="little").view("<u4")
    found = np.array([np.asarray(word) for word in lead_into(size, tuple(words), move)], "<u4")
    # The oracle walks: cell by cell, by row and column.
    (down, right), cells = DELTAS[move], held.reshape(size, size)
    expected = [
        0 <= row + down < size and 0 <= column + right < size and cells[row + down, column + right]
        for row, column in np.ndindex(size, size)
    ]
    assert np.unpackbits(found.view(np.uint8), bitorder="little", count=size**2).tolist() == expected


@pytest.mark.parametrize("size", [5, *(pytest.param(size, marks=pytest.mark.deep) for size in (3, 4, 6, 8, 10, 12))])
def test_labels_and_plans_are_those_of_the_other_solver(size):
    boards = with_shared_cells(mixed_boards(size, 600, size))
    found, expected = solve_on_device(boards), solve(boards)
    assert_same_labels(boards, found, expected)
    flooded = np.asarray(found.certificate) == Certificate.FLOOD
    assert found.solvable[flooded].any(), "the sample should hold boards that floods solve"
    verdict = verify(boards, found.moves)
    assert_every((verdict.failure == Failure.NONE) == found.solvable, boards, failure=verdict.failure)


@pytest.mark.deep
@pytest.mark.parametrize("size", [16, 20])
def test_large_boards_get_the_labels_of_the_other_solver(size):
    boards = with_shared_cells(draw_free(size, 2, int(0.36 * size**2), seed=size, first=0, count=40))
    found = solve_on_device(boards, memory=1 << 28)  # whatever the number of cores that share it
    assert_same_labels(boards, found, solve(boards))
    flooded = np.asarray(found.certificate) == Certificate.FLOOD
    assert found.solvable[flooded].any(), "the sample should hold boards that floods solve"


def test_a_plan_far_longer_than_the_first_flood_looks_is_found():
    one = drawing(SERPENTINE, [(0, 0), (4, 4)], [(4, 4), (0, 0)])
    far = drawing(SERPENTINE, [(0, 0), (0, 1)], [(4, 4), (4, 3)])
    siding = drawing([".....", "HHHH.", ".....", ".HHH.", "....H"], [(0, 0), (4, 0)], [(4, 0), (0, 0)])
    boards = batch([one, far, siding])
    found = solve_on_device(boards)
    assert found.solvable.tolist() == [False, False, True], "the first two are unsolvable, which only floods prove"
    assert_same_labels(boards, found, solve(boards))


def test_lanes_do_not_depend_on_their_block(monkeypatch):
    boards = mixed_boards(1, 200, 5)
    whole = solve_on_device(boards)
    for module in (device_solver, row_groups):
        monkeypatch.setattr(module, "SPARE", 1)  # every group leaves all of its boards to the tail
    assert_same_labels(boards, solve_on_device(boards), whole)


def test_on_a_gpu_solve_is_the_solver_for_accelerators(monkeypatch):
    from lakewright.core_jax.solver import solver

    called = []
    monkeypatch.setattr(solver, "on_gpu", lambda: True)
    monkeypatch.setattr(device_solver, "solve_on_device", lambda boards: called.append(boards) or expected)
    boards = mixed_boards(1, 32, 5)
    expected = solve_on_device(boards)
    assert solve(boards) is expected
    assert called == [boards]


@pytest.mark.parametrize(("memory", "size"), [(1 << 30, 17), (1 << 18, 5)])
def test_boards_that_do_not_suit_the_device_are_labelled_by_the_host(monkeypatch, memory, size):
    from lakewright.core_jax.solver import solver

    monkeypatch.setattr(solver, "on_gpu", lambda: True)
    monkeypatch.setattr(sizes, "memory_per_thread", lambda: memory)
    monkeypatch.setattr(device_solver, "solve_on_device", lambda boards: pytest.fail("the device has no room"))
    monkeypatch.setattr(solver, "_solve_by_stages", lambda *_: solver.SolvedBoards("of the host", 0, 0))
    assert solve(mixed_boards(1, 32, size)) == "of the host"


def test_costs_that_do_not_fit_into_a_packed_label_are_refused(monkeypatch):
    monkeypatch.setattr(device_solver, "COST_BITS", 2)
    with refused("costs of up to", "2 bits"):
        solve_on_device(mixed_boards(1, 64, 5))


def test_deeper_floods_take_no_more_memory_than_the_first(monkeypatch):
    flooded = []

    def flood(size, depth, free, cells, rows, spare):
        flooded.append((depth, len(rows)))
        cost = np.full(len(rows), device_solver.UNKNOWN if depth < 512 else depth)
        return cost.astype(np.int32), np.zeros(len(rows), bool), np.zeros((depth, len(rows)), np.uint8)

    monkeypatch.setattr(device_solver, "flood_for_costs", flood)
    live, zeros = np.ones(4, bool), np.zeros(4, np.int32)
    known = (zeros, zeros, live, np.zeros((2, 4), np.int32))
    given = sizes.Sizes(4096, 1024, 128)
    device_solver._find_costs(8, given, (), np.zeros((4, 4), np.int32), known, np.zeros((0, 4), np.uint8))
    assert flooded == [(32, 1024), (128, 128), (512, 32)]


@pytest.mark.parametrize("label", [solve, solve_on_device])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"holes": np.zeros((2, 3, 4), bool)}, ("(2, 3, 4)", "[B, n, n]")),
        ({"holes": np.zeros((0, 3, 3), bool)}, ("(0, 3, 3)", "at least one board")),
        ({"starts": np.zeros((2, 2), int)}, ("(2, 2)", "[B, K, 2]")),
        ({"goals": np.zeros((2, 3, 2), int)}, ("(2, 3, 2)",)),
        ({"goals": np.array([[[0, 0], [1, 1]], [[0, 0], [-1, 1]]])}, ("board 1, agent 1", "goals [-1, 1]", "0 to 2")),
        ({"starts": np.array([[[0, 3], [1, 1]], [[0, 0], [1, 1]]])}, ("board 0, agent 0", "starts [0, 3]")),
        ({"starts": np.zeros((2, 2, 2))}, ("starts", "float64")),
    ],
)
def test_wrong_arrays_are_refused(label, changes, said):
    cells = np.tile([[0, 0], [1, 1]], (2, 1, 1))
    with refused(*said):
        label(Board(**({"holes": np.zeros((2, 3, 3), bool), "starts": cells, "goals": cells} | changes)))


def test_a_team_of_which_two_share_a_cell_is_refused():
    cells = np.array([[[0, 0], [1, 1], [0, 0]]])
    with refused("board 0", "starts"):
        solve(Board(np.zeros((1, 3, 3), bool), cells, cells))


def test_it_asks_for_boards_of_two_agents():
    with refused("agents", "3:"):
        solve_on_device(mixed_boards(0, 4, 5, agents=3))


def test_memory_bounds_the_sizes():
    for memory in (1 << 22, 1 << 26, 1 << 30):
        found = sizes.choose_sizes(8, 1 << 20, memory)
        assert sizes.block_bytes(8, found.block, found.flood) <= memory
    with refused("8x8", "0 MiB"):
        sizes.choose_sizes(8, 1 << 20, 1 << 18)
    found = sizes.choose_sizes(20, 1 << 23, 1 << 40)
    assert found.flood * (6 * 20 + 2) * 20**2 < 1 << 31, "an int32 numbers the words of all saved layers"


def test_a_full_device_gets_smaller_blocks(monkeypatch):
    boards = mixed_boards(1, 200, 5)
    whole, plain = solve_on_device(boards), device_solver.solve_block

    def solve_block(given, some):
        if given.block > 64:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return plain(given, some)

    monkeypatch.setattr(device_solver, "solve_block", solve_block)
    monkeypatch.setattr(device_solver, "choose_sizes", lambda *_: sizes.Sizes(1 << 10, 256, 32))
    assert_same_labels(boards, solve_on_device(boards), whole)


def test_threads_of_several_batches_share_the_memory_of_a_device(monkeypatch):
    monkeypatch.setattr(sizes, "workers", lambda: 3)
    at_work, most, lock = [], [], threading.Lock()

    def make(given, begin):
        with lock:
            at_work.append(begin)
            most.append(len(at_work))
        time.sleep(0.01)
        with lock:
            at_work.remove(begin)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda begin: sizes.make_with_room(make, sizes.Sizes(64, 32, 32), begin, 24), range(24)))
    assert max(most) == 3


def test_blocks_without_room_are_made_of_smaller_ones_in_their_order():
    def double(numbers):
        if len(numbers) > 64:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return 2 * numbers

    found = sizes.in_blocks_with_room(double, np.arange(150), 1 << 10)
    assert [len(part) for part in found] == [64, 64, 22]
    assert np.concatenate(found).tolist() == list(range(0, 300, 2))


def test_a_device_that_fails_is_named_in_one_line(monkeypatch):
    def fail(*_):
        raise jax.errors.JaxRuntimeError("INTERNAL: the device is lost\nwith details")

    monkeypatch.setattr(device_solver, "solve_block", fail)
    with pytest.raises(
        InputError, match=r"^the device stopped at a block of 64 boards \(INTERNAL: the device is lost\); "
    ):
        solve_on_device(mixed_boards(1, 32, 5))


@pytest.mark.deep
def test_boards_are_split_over_the_devices():
    """Two devices, each with a block of boards."""
    script = """
        from tests.core_jax.solver.test_device_solver import assert_same_labels
        from tests.support.boards.sample_boards import mixed_boards
        import jax
        from lakewright.core_jax.solver import solve, solve_on_device
        boards = mixed_boards(3, 128, 5)
        assert len(jax.local_devices()) == 2
        assert_same_labels(boards, solve_on_device(boards), solve(boards))
        """
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    given = [sys.executable, "-c", inspect.cleandoc(script)]
    ended = subprocess.run(given, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
