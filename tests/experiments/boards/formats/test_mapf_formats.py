"""Boards and plans in other people's formats: round trips are exact, and what is no such file is refused by line."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, read_all, verify_rows, write_rows
from lakewright.experiments.boards.formats.conversion import convert_files
from lakewright.experiments.boards.formats.lacam import read_result, result_text
from lakewright.experiments.boards.formats.movingai import map_text, read_map, read_scenario, scenario_text
from lakewright.experiments.boards.formats.pogema import map_string, read_map_string
from tests.support.boards.generated_rows import small_rows
from tests.support.refusals import refused

PLACE = "here"
GRID = [".H.", "...", "..H"]
ROW = Row("a board", 3, 2, GRID, [(0, 0), (2, 0)], [(2, 1), (0, 2)], plan=["DRD", "URURW"])


@st.composite
def boards(draw) -> Row:
    """Boards with distinct cells for all starts and goals."""
    size = draw(st.integers(2, 7))
    agents = draw(st.integers(1, min(5, size * size // 2)))
    cells = draw(st.permutations([(row, column) for row in range(size) for column in range(size)]))
    taken = cells[: 2 * agents]
    holes = {cell for cell in cells[2 * agents :] if draw(st.booleans())}
    grid = ["".join("H" if (row, column) in holes else "." for column in range(size)) for row in range(size)]
    name = draw(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), min_size=1, max_size=20))
    return Row(name, size, agents, grid, taken[:agents], taken[agents:])


def bare(row: Row) -> Row:
    """The board alone."""
    return Row(row.id, row.size, row.agents, row.grid, row.starts, row.goals)


@given(boards())
def test_a_board_comes_back_from_map_and_scenario(row):
    name, starts, goals, sides = read_scenario(scenario_text(row, "x.map"), PLACE)
    assert (read_map(map_text(row), PLACE), starts, goals) == (row.grid, row.starts, row.goals), row
    assert (name, sides) == ("x.map", (row.size, row.size))


@given(boards())
def test_a_board_comes_back_from_a_map_string(row):
    assert read_map_string(map_string(row), row.id, PLACE) == row


def test_a_board_and_its_plan_come_back_from_a_result_file():
    for row in small_rows():
        back = read_result(result_text(row, "x.map"), row.grid, row.id, PLACE)
        assert bare(back) == bare(row)
        assert back.plan == [moves.rstrip("W") for moves in row.plan], row
        assert f"soc={row.sum_of_costs}\nmakespan={max(map(len, back.plan))}\n" in result_text(row, "x.map")


@pytest.mark.parametrize("form", ["movingai", "lacam", "pogema", "published"])
def test_files_of_boards_come_back_through_every_format(tmp_path, form):
    rows = small_rows()
    write_rows(tmp_path / "rows.jsonl", rows)
    there = tmp_path / {"movingai": "m", "lacam": "l", "pogema": "p.yaml", "published": "b.jsonl"}[form]
    assert convert_files(tmp_path / "rows.jsonl", there, wanted=form) == len(rows)
    assert convert_files(there, tmp_path / "back.jsonl", given=form) == len(rows)
    back = {row.id: bare(row) for row in read_all(tmp_path / "back.jsonl")}
    assert back == {row.id: bare(row) for row in rows}


@settings(max_examples=20)
@given(st.lists(boards(), min_size=1, max_size=3, unique_by=lambda row: row.id))
def test_whatever_a_board_is_called_its_files_come_back(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("names")
    write_rows(folder / "rows.jsonl", rows)
    convert_files(folder / "rows.jsonl", folder / "maps")
    convert_files(folder / "maps", folder / "back.jsonl")
    assert {row.id: row for row in read_all(folder / "back.jsonl")} == {row.id: row for row in rows}


def test_a_plan_of_another_solver_is_judged_as_any_plan():
    ends = "starts=(0,0),(1,0),\ngoals=(1,0),(0,0),\n"
    swap = f"agents=2\nmap_file=x.map\n{ends}solution=\n0:(0,0),(1,0),\n1:(1,0),(0,0),\n"
    short = swap[: swap.index("1:(1,0)")]
    rows = [read_result(text, ["..", ".."], name, PLACE) for name, text in (("swap", swap), ("short", short))]
    verdicts = verify_rows(rows, [row.plan for row in rows])
    assert [verdict.failure for verdict in verdicts] == ["swap_conflict", "goal_not_reached"]


def test_tabs_windows_line_ends_blank_lines_and_other_letters_are_read():
    text = "type octile\r\nheight 2\r\nwidth 2\r\nmap\r\nG@\r\nT.\r\n\r\n"
    assert read_map(text, PLACE) == [".H", "H."]
    scenario = "version 1\r\n0\tx.map\t2\t2\t0\t0\t1\t1\t2.0\r\n\r\n"
    assert read_scenario(scenario, PLACE)[:3] == ("x.map", [(0, 0)], [(1, 1)])


def test_a_map_is_only_looked_for_beside_its_scenario(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "secret.map").write_text(map_text(ROW))
    (folder / "a.scen").write_text(scenario_text(ROW, "../secret.map"))
    with refused("secret.map", "no such file"):
        convert_files(folder, tmp_path / "out.jsonl")


WRONG_MAPS = {
    "no map line": ("type octile\nheight 1\n", ["line `map`"]),
    "no rows": ("height 0\nwidth 2\nmap\n", ["0 rows", "2 columns"]),
    "an unknown letter": ("height 2\nwidth 2\nmap\n..\n.x\n", ["here:5:", "letter 'x'"]),
    "a short line": ("height 2\nwidth 2\nmap\n..\n.\n", ["here:5: 1 cells", "2 wide"]),
    "missing rows": ("height 2\nwidth 2\nmap\n..\n", ["1 rows follow `map`", "2"]),
    "a side in words": ("height two\nwidth 2\nmap\n..\n", ["here:1: height", "'two'"]),
}
WRONG_SCENARIOS = {
    "no version": ("0\tx\t2\t2\t0\t0\t1\t1\t2\n", ["this is not a scenario"]),
    "spaces for tabs": ("version 1\n0 x 2 2 0 0 1 1 2\n", ["here:2: 1 columns", "9"]),
    "a negative cell": ("version 1\n0\tx\t2\t2\t-1\t0\t1\t1\t2\n", ["here:2: start x", "'-1'"]),
    "no agent": ("version 1\n", ["no agent"]),
    "two maps": ("version 1\n0\tx\t2\t2\t0\t0\t1\t1\t2\n0\ty\t2\t2\t0\t1\t1\t0\t2\n", ["2 maps"]),
}
WRONG_STRINGS = {
    "unequal lines": ("a.A\n..", ["here:2: 2 cells", "3"]),
    "no goal": ("a.\n..", ["'A'", "agent 'a'"]),
    "a gap in the letters": ("b.\n.B", ["agent 'a'", "'b'"]),
    "a letter twice": ("aa\nA.", ["second 'a'"]),
    "another dialect": ("@.\n..", ["letter '@'"]),
}
WRONG_RESULTS = {
    "no result": ("hello\n", ["here:1: 'hello'", "`name=value`"]),
    "no solution": ("agents=1\nsolution=\n", ["the solver found no plan"]),
    "a jump": ("solution=\n0:(0,0),\n1:(1,1),\n", ["here: agent 0:", "(0,0)", "(1,1)", "time 0"]),
    "a missing time": ("solution=\n0:(0,0),\n2:(0,0),\n", ["here:3: '2:(0,0),'", "`1:"]),
    "an agent that vanishes": ("solution=\n0:(0,0),(1,1),\n1:(0,0),\n", ["here:3:", "number of agents"]),
    "a start on a wall": ("solution=\n0:(1,0),\n1:(1,1),\n", ["start of agent 0", "x=1, y=0", "blocked"]),
    "two in one cell": ("solution=\n0:(0,0),(0,0),\n", ["cell", "agent 0"]),
    "no cells": ("solution=\n0:here\n", ["are not cells"]),
}


@pytest.mark.parametrize("name", WRONG_MAPS)
def test_a_wrong_map_is_refused_by_line(name):
    text, message = WRONG_MAPS[name]
    with refused(*message):
        read_map(text, PLACE)


@pytest.mark.parametrize("name", WRONG_SCENARIOS)
def test_a_wrong_scenario_is_refused_by_line(name):
    text, message = WRONG_SCENARIOS[name]
    with refused(*message):
        read_scenario(text, PLACE)


@pytest.mark.parametrize("name", WRONG_STRINGS)
def test_a_wrong_map_string_is_refused(name):
    text, message = WRONG_STRINGS[name]
    with refused(*message):
        read_map_string(text, "a", PLACE)


@pytest.mark.parametrize("name", WRONG_RESULTS)
def test_a_wrong_result_is_refused_by_line(name):
    text, message = WRONG_RESULTS[name]
    with refused(*message):
        read_result(text, GRID, "a", PLACE)


@given(st.text(max_size=200))
def test_whatever_the_text_it_is_a_board_or_one_line_of_refusal(text):
    for read in (read_map, read_scenario, lambda text, place: read_result(text, GRID, "a", place)):
        refused = ""
        try:
            assert read(text, PLACE), repr(text)
        except InputError as error:
            refused = str(error)
        assert len(refused.splitlines()) <= 1, repr(text)


def test_many_boards_in_one_file_of_one_board_are_refused(tmp_path):
    write_rows(tmp_path / "rows.jsonl", small_rows()[:2])
    with refused("2 boards", "folder"):
        convert_files(tmp_path / "rows.jsonl", tmp_path / "one.scen")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
