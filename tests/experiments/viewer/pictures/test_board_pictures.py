"""A drawing shows every hole, agent and goal where the simulator has them, and a strip stops where the plan does."""

import re
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from lakewright.core_jax.lake.dynamics import step
from lakewright.core_jax.rows import check_plan
from lakewright.core_jax.rows.row import Row
from lakewright.core_jax.types import LETTERS
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.viewer.pictures.board_art import CELL
from lakewright.experiments.viewer.pictures.board_pictures import (
    BAR,
    GUTTER,
    MOST_FRAMES,
    board_svg,
    draw_frames,
    steps_shown,
    strip_svg,
    write_caption,
)
from lakewright.experiments.viewer.pictures.played_plans import describe_ending, find_positions, make_example
from tests.support.boards.sample_boards import as_lists, each, mixed_boards

ROW = Row("two", 3, 2, ["...", ".H.", "..H"], starts=[(0, 0), (2, 1)], goals=[(0, 2), (2, 0)], wait_required=True)


def example(plan: list[str], failure: str = "none", agent: int = -1, step: int = -1, row: Row = ROW) -> Example:
    return make_example(row, plan, failure, agent, step)


def drawn(svg: str) -> list[tuple[str, tuple[int, int]]]:
    """The words and classes inside each cell of a board, with the cell."""
    board = ElementTree.fromstring(svg).find(f"./*[@transform='translate({GUTTER} {BAR + GUTTER})']")
    found = []
    for group in board:
        if place := re.match(r"translate\((\S+) (\S+)\)", group.get("transform", "")):
            cell = int(float(place[2]) // CELL), int(float(place[1]) // CELL)
            found += [(part.text or part.get("class", ""), cell) for part in group.iter()]
    return [entry for entry in found if entry[0]]


def cells_of(svg: str, name: str) -> list[tuple[int, int]]:
    return [cell for words, cell in drawn(svg) if words == name]


def test_every_hole_agent_and_goal_is_drawn_in_its_cell():
    svg = board_svg(ROW, ["", ""], 0)
    assert sorted(cells_of(svg, "hole")) == [(1, 1), (2, 2)]
    assert [cells_of(svg, name) for name in ("A0", "A1")] == [[cell] for cell in ROW.starts]
    assert [cells_of(svg, name) for name in ("G0", "G1")] == [[cell] for cell in ROW.goals]
    assert len(cells_of(svg, "ice")) == 9 - 2 - 4


def test_goals_stay_in_sight_under_agents():
    svg = board_svg(ROW, ["RR", "LW"], 2)
    assert cells_of(svg, "A0") == cells_of(svg, "G0") == [(0, 2)]
    assert cells_of(svg, "A1") == cells_of(svg, "G1") == [(2, 0)]


def test_agents_move_step_by_step():
    shown = [cells_of(frame, "A0") for frame in draw_frames(example(["DDUURR", "LWWWWW"]))]
    assert shown == [[(0, 0)], [(1, 0)], [(2, 0)], [(1, 0)], [(0, 0)], [(0, 1)], [(0, 2)]]


def test_positions_are_those_of_the_simulator():
    simulated = jax.jit(step)
    boards = each(mixed_boards(seed=1, count=30, size=4))
    for number, board in enumerate(boards):
        grid, starts, goals = as_lists(board)
        row = Row("row", 4, 2, grid, starts, goals)
        moves = np.random.default_rng(number).integers(0, 6, (2, 6)).astype(np.int8)
        plan = ["".join(LETTERS[move] for move in agent) for agent in moves]
        now = board.starts
        for time in range(6):
            now, *_ = simulated(board.holes, now, moves[:, time])
            assert find_positions(row, plan, time + 1) == [tuple(cell) for cell in np.asarray(now).tolist()]


def test_waits_are_marked_until_an_agent_is_home():
    strip = draw_frames(example(["WRRWW", "LWWWW"]))
    assert [cells_of(frame, "W") for frame in strip] == [[], [(0, 0)], [], []]
    assert "after 1 wait on the way" in write_caption(example(["WRRWW", "LWWWW"]))


def test_a_valid_plan_ends_when_the_last_agent_arrives():
    strip = draw_frames(example(["RRWWWW", "LWWWWW"]))
    assert len(strip) == 3
    assert "t = 2 · at goals" in strip[-1]
    assert not any("at goals" in frame for frame in strip[:-1])


@pytest.mark.parametrize(
    ("plan", "failure", "agent", "step", "alarmed", "words"),
    [
        (["RD", "LW"], "hole", 0, 1, [(1, 1)], "Fails at t = 2: A0 steps into the hole at (1, 1)."),
        (["U", "L"], "illegal_move", 0, 0, [(0, 0)], "Fails at t = 1: A0 leaves the board."),
        (["R?", "LW"], "illegal_move", 0, 1, [(0, 1)], "A0 jumps from (0, 1) to a cell that is not a neighbour"),
        (["DD", "LW"], "vertex_conflict", 0, 1, [(2, 0)], "Fails at t = 2: A0 and A1 meet at (2, 0)."),
        (["DD", "LU"], "swap_conflict", 0, 1, [(2, 0), (1, 0)], "A0 and A1 swap (1, 0) and (2, 0)."),
        (["RR", "WW"], "goal_not_reached", 1, 2, [(2, 1)], "A1 is at (2, 1), its goal at (2, 0)."),
        ([], "parse_error", -1, -1, [], "no plan could be read"),
    ],
)
def test_a_failed_plan_stops_at_the_offending_step(plan, failure, agent, step, alarmed, words):
    failed = example(plan, failure, agent, step)
    strip = draw_frames(failed)
    assert words in describe_ending(failed).words
    assert "· failed" in strip[-1]
    assert sorted(cells_of(strip[-1], "alarm")) == sorted(alarmed)
    assert not any("alarm" in frame or "failed" in frame for frame in strip[:-1])


@pytest.mark.parametrize("last", range(40))
def test_long_plans_leave_out_the_middle(last):
    shown = steps_shown(last)
    assert shown[0] == 0
    assert shown[-1] == last
    assert len(shown) == min(last + 1, MOST_FRAMES)


def test_left_out_frames_are_reported():
    assert "Not drawn: t = 6 to 14." in write_caption(example(["W" * 20, "W" * 20], "goal_not_reached", 0, 20))
    assert "Not drawn" not in write_caption(example(["RR", "LW"]))


def test_hostile_text_stays_text():
    row = Row("<script>\"'&\x00\ud800" + "x" * 500, 3, 2, ROW.grid, ROW.starts, ROW.goals)
    failed = example(["<>", "💥"], "<b>", 1, 10**9, row)
    for svg in (strip_svg(failed), board_svg(row, failed.plan, 1, title=row.id), *draw_frames(failed)):
        ElementTree.fromstring(svg.encode())
        assert "<script" not in svg
        assert "<b>" not in svg
        assert "x" * 60 not in svg


def test_five_agents_can_be_distinguished():
    row = Row("five", 4, 5, ["...."] * 4, [(0, n) for n in range(4)] + [(1, 0)], [(3, n) for n in range(4)] + [(2, 0)])
    check_plan(plan := ["D", "D", "D", "D", "D"], 5)
    svg = board_svg(row, plan, 1)
    assert [cells_of(svg, f"A{agent}") for agent in range(5)] == [[(1, 0)], [(1, 1)], [(1, 2)], [(1, 3)], [(2, 0)]]
    assert cells_of(svg, "G4") == [(2, 0)]
