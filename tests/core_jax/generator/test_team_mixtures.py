"""Teams of several sizes from one config: each has its own config, and they get boards in turn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig, holds, with_teams
from lakewright.core_jax.generator import can_draw, can_draw_all, can_draw_for, generate, generate_in_turn
from lakewright.core_jax.rows import Row, rows_in_turn, rows_of
from lakewright.policy.training import BoardTaskStream, tasks_of
from tests.support.boards.generated_rows import CONFIG, ROOMY, SEED
from tests.support.boards.sample_boards import as_lists, picture
from tests.support.refusals import refused

TEAMS = (3, 2)
COUNT = 14


@st.composite
def configs(draw) -> EnvConfig:
    """Configs of two agents on some sizes, with shares that sum to one, some of them none."""
    sizes = draw(st.lists(st.integers(3, 6), min_size=1, unique=True))
    parts = draw(st.lists(st.integers(0, 9), min_size=len(sizes), max_size=len(sizes)).filter(any))
    return EnvConfig({size: SizeConfig(part / sum(parts), 0.2, 0.5) for size, part in zip(sizes, parts, strict=True)})


teams = st.lists(st.integers(2, 8), max_size=4, unique=True)


@given(configs(), teams)
def test_each_team_has_the_sizes_that_hold_it_in_their_proportions_or_is_refused(config, teams):
    held = {team: {size: cell for size, cell in config.sizes.items() if holds(size, team)} for team in teams}
    if any(not sum(cell.data_ratio for cell in sizes.values()) for sizes in held.values()):
        with refused("teams:", "data_ratio"):
            with_teams(config, teams)
        return
    parts = with_teams(config, teams)
    assert [part.agents for part in parts] == (teams or [config.agents])
    for part in parts:
        assert math.fsum(cell.data_ratio for cell in part.sizes.values()) == pytest.approx(1)
        for size, cell in held.get(part.agents, config.sizes).items():
            old, new = (sizes[size].data_ratio for sizes in (config.sizes, part.sizes))
            total = math.fsum(kept.data_ratio for kept in held.get(part.agents, config.sizes).values())
            assert new == pytest.approx(old / total), f"{size}x{size}, {part.agents} agents"
            assert (part.sizes[size].hole_ratio, part.sizes[size].wait_ratio) == (cell.hole_ratio, cell.wait_ratio)
        assert part.sizes.keys() == held.get(part.agents, config.sizes).keys()


@given(configs())
def test_without_teams_or_with_its_own_alone_a_config_is_as_it_was(config):
    assert with_teams(config, ()) == with_teams(config, [config.agents]) == (config,)


def in_turn(first: int = 0, count: int = COUNT) -> list[Row]:
    """Some boards of the set that TEAMS have in turn."""
    parts = with_teams(ROOMY, TEAMS)
    return rows_in_turn(generate_in_turn(parts, SEED, count, first=first), parts)


def test_boards_are_drawn_in_turn_and_each_is_one_of_its_teams_own_set():
    rows = in_turn()
    assert [row.agents for row in rows] == [3, 2] * (COUNT // 2)
    for turn, part in enumerate(with_teams(ROOMY, TEAMS)):
        own = rows_of(generate(part, SEED, COUNT // 2), part)
        for row, expected in zip(rows[turn::2], own, strict=True):
            assert (row.grid, row.starts, row.goals) == (expected.grid, expected.starts, expected.goals), row.id
    assert len({row.id for row in rows}) == COUNT


@pytest.mark.parametrize("cut", [1, 7])
def test_a_set_in_turn_can_be_drawn_in_pieces(cut):
    assert in_turn(0, cut) + in_turn(cut, COUNT - cut) == in_turn(), f"cut at {cut}"


def test_one_config_has_every_turn():
    (alone,) = generate_in_turn([CONFIG], SEED, COUNT, first=3)
    for size, batch in generate(CONFIG, SEED, COUNT, first=3).items():
        assert np.array_equal(alone[size].index, batch.index), f"{size}x{size}"
        assert np.array_equal(alone[size].boards.holes, batch.boards.holes), f"{size}x{size}"


@pytest.mark.deep
def test_a_stream_of_boards_has_teams_in_turn_within_its_chunks():
    with BoardTaskStream([ROOMY], SEED, first=3, chunk=8, teams=TEAMS) as stream:
        taken = stream.take(9)
    expected = tasks_of(*generate_in_turn(with_teams(ROOMY, TEAMS), SEED, 12))[3:]
    assert stream.agents == 3
    for task, other in zip(taken, expected, strict=True):
        assert as_lists(task.board) == as_lists(other.board), picture(task.board)


def test_a_stream_refuses_a_team_that_its_sizes_do_not_hold():
    with refused("teams: 5", "data_ratio, 3"):
        BoardTaskStream([ROOMY], SEED, teams=(2, 5))


def test_a_cell_can_be_drawn_where_it_can_for_every_team_that_the_size_holds():
    rare = (3, 2, 0.1, True)  # with one hole fewer for three agents, and none for five
    assert can_draw_for(())(*rare) == can_draw(*rare)
    assert can_draw_for((2, 3, 5))(*rare) == (can_draw(*rare) and can_draw(3, 3, 0.1, True))
    assert can_draw_for((5,))(*rare), "no board of 3x3 is asked for"


def test_a_config_can_be_drawn_where_all_that_it_asks_for_can():
    assert can_draw_all(ROOMY)
    assert not can_draw_all(EnvConfig({5: SizeConfig(1.0, 0.3, 0.5)}, agents=1)), "one agent never has to wait"
    assert can_draw_all(EnvConfig({5: SizeConfig(1.0, 0.3, 0.0)}, agents=1))
