"""Statistics made on the device are those of the same boards, drawn, solved and measured one after another."""

import jax
import numpy as np
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import draw_free, uniform_boards
from lakewright.core_jax.solver import solve
from lakewright.core_jax.solver.accelerator.sizes import Sizes
from lakewright.core_jax.statistics import COLUMNS, board_features, device_draws, features, measure_draws, table
from tests.support.deep import keep_quick


@pytest.mark.parametrize("size", keep_quick([3, 5, 8], [3]))
def test_columns_are_those_of_boards_that_are_drawn_solved_and_measured(size):
    holes, seed, first, count = size + 1, 3, 17, 100
    boards = draw_free(size, 2, holes, seed, first, count)
    expected = features(boards, solve(boards))
    found = measure_draws(size, holes, seed, first, count)
    assert list(found) == list(COLUMNS)
    for name in COLUMNS:
        assert np.array_equal(found[name], expected[name]), name
    assert table(found).equals(table(expected))


def test_only_the_columns_that_are_asked_for_are_returned():
    assert list(measure_draws(3, 4, 3, 0, 70, ("makespan", "density"))) == ["makespan", "density"]


@pytest.mark.parametrize(
    "columns", [("makespan", "density"), ("wait_required", "certificate"), ("cost_gap", "plan_waits")]
)
def test_some_columns_are_as_in_all_of_them(columns):
    whole, some = measure_draws(3, 4, 3, 0, 70), measure_draws(3, 4, 3, 0, 70, columns)
    for name in columns:
        assert np.array_equal(some[name], whole[name]), name


def test_boards_that_do_not_suit_the_device_are_measured_by_the_host(monkeypatch):
    expected = measure_draws(3, 4, 3, 0, 70, ("makespan", "density"))
    monkeypatch.setattr(device_draws, "suits_device", lambda size, more: False)
    monkeypatch.setattr(device_draws, "label_cells", lambda *given: pytest.fail("the device has no room"))
    found = measure_draws(3, 4, 3, 0, 70, ("makespan", "density"))
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name


def test_only_what_is_asked_for_is_counted_on_the_device():
    assert device_draws.list_counted(("status", "plan_length")) == ("status", "plan_length")
    assert device_draws.list_counted(("cost_gap",)) == ("sum_of_costs", "cost_bound")
    assert device_draws.list_counted(tuple(COLUMNS)) == device_draws.COUNTED


def test_numbers_too_large_for_a_byte_are_copied_in_two(monkeypatch):
    expected = measure_draws(3, 4, 3, 0, 70)
    monkeypatch.setattr(device_draws, "_copy_numbers", lambda counted: np.asarray(counted[2]))
    found = measure_draws(3, 4, 3, 0, 70)
    for name in COLUMNS:
        assert np.array_equal(found[name], expected[name]), name
    wide = np.array([[254, -1], [255, 3]], np.int16)
    monkeypatch.undo()
    for fits, rows in ((True, wide[:1]), (False, wide)):
        given = rows.astype(np.uint8), np.array(fits), rows
        assert device_draws._copy_numbers(jax.tree.map(jax.numpy.asarray, given)).tolist() == rows.tolist()


def test_a_full_device_gets_smaller_blocks_and_loses_no_board(monkeypatch):
    expected, plain, tried = measure_draws(3, 4, 3, 0, 150), device_draws.label_cells, []

    def label_cells(size, given, *more):
        tried.append(given.block)
        if given.block > 64:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return plain(size, given, *more)

    monkeypatch.setattr(device_draws, "label_cells", label_cells)
    monkeypatch.setattr(device_draws, "choose_measured_sizes", lambda *_: Sizes(1 << 10, 256, 32))
    found = measure_draws(3, 4, 3, 0, 150)
    assert tried == [1 << 10, 64, 64, 64]
    for name in COLUMNS:
        assert np.array_equal(found[name], expected[name]), name


def test_drawing_and_measuring_end_in_one_line_too_if_the_device_disappears(monkeypatch):
    boards = draw_free(3, 2, 2, seed=0, first=0, count=8)
    labels = solve(boards)

    def fail(*_):
        raise jax.errors.JaxRuntimeError("INTERNAL: the device is lost\nwith details")

    for module, name in ((uniform_boards, "draw_there"), (board_features, "measure_block")):
        monkeypatch.setattr(module, "on_gpu", lambda: True)
        monkeypatch.setattr(module, name, fail)
    for use in (lambda: draw_free(3, 2, 2, seed=0, first=0, count=8), lambda: features(boards, labels)):
        with pytest.raises(InputError, match=r"^the device stopped at a block of 65536 boards \(INTERNAL: [^\n]*$"):
            use()


def test_a_device_that_disappears_is_one_line(monkeypatch):
    def fail(*_):
        raise jax.errors.JaxRuntimeError("INTERNAL: the device is lost\nwith details")

    monkeypatch.setattr(device_draws, "label_cells", fail)
    with pytest.raises(
        InputError, match=r"^the device stopped at a block of 64 boards \(INTERNAL: the device is lost\); "
    ):
        measure_draws(3, 4, 3, 0, 70)
