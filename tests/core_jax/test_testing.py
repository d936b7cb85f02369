"""The public strategies of boards and configs give what is legal, and the small first."""

from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.rows import Row
from lakewright.core_jax.testing import boards, configs
from tests.support.refusals import refused


@given(boards(max_size=5, max_agents=3))
def test_boards_are_rows_of_the_size_and_agents_that_are_wanted(board):
    assert isinstance(board, Row)
    assert board.size <= 5
    assert len(board.starts) == len(board.goals) == board.agents <= 3
    assert all(board.grid[line][column] == "." for line, column in [*board.starts, *board.goals])


@given(configs(max_size=6))
def test_configs_are_legal(config):
    assert isinstance(config, EnvConfig)
    assert max(config.sizes) <= 6


@given(st.data())
def test_configs_that_no_size_holds_are_refused(data):
    with refused(8, 3, 3):
        data.draw(configs(max_size=3, agents=8))
