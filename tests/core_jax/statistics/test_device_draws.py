"""Statistics made on the device are those of the same boards, drawn, solved and measured one after another."""

import numpy as np
import pytest

from lakewright.core_jax.generator import draw_free
from lakewright.core_jax.solver import solve
from lakewright.core_jax.statistics import COLUMNS, features, measure_draws


@pytest.mark.parametrize("size", [5, pytest.param(8, marks=pytest.mark.deep)])
def test_columns_are_those_of_boards_that_are_drawn_solved_and_measured(size):
    holes, seed, first, count = size + 1, 3, 17, 100
    boards = draw_free(size, 2, holes, seed, first, count)
    expected = features(boards, solve(boards))
    found = measure_draws(size, holes, seed, first, count)
    assert list(found) == list(COLUMNS)
    for name in COLUMNS:
        assert np.array_equal(found[name], expected[name]), name


def test_only_the_columns_that_are_asked_for_are_returned():
    assert list(measure_draws(5, 6, 3, 0, 70, ("makespan", "density"))) == ["makespan", "density"]
