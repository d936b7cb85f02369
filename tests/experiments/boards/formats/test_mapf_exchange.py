"""What people of path finding exchange: EECBS, libMultiRobotPlanning, the League of Robot Runners, rectangles."""

import json

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, read_all, solve_rows, verify_rows, write_rows
from lakewright.experiments.boards.formats.conversion import convert_files
from tests.support.boards.generated_rows import small_rows
from tests.support.processes.commands import lakewright
from tests.support.refusals import refused

MAP = "type octile\nheight 2\nwidth 3\nmap\n..@\n...\n"
SCENARIO = "version 1\n" + "".join(
    f"0\ta.map\t3\t2\t{sx}\t{sy}\t{gx}\t{gy}\t1\n" for sx, sy, gx, gy in ((0, 0, 2, 1), (1, 1, 0, 0), (0, 1, 1, 0))
)
PATHS = "Agent 0: (0,0)->(0,1)->(1,1)->(1,2)->\nAgent 1: (1,1)->(1,0)->(0,0)->\n"
YAML = """\
agents:
-   name: agent0
    start: [0, 0]
    goal: [2, 1]
-   name: other
    start: [1, 1]
    goal: [0, 0]
map:
    dimensions: [3, 2]
    obstacles:
    - !!python/tuple [2, 0]
"""
FLOW = (
    "{agents: [{goal: [2, 1], name: agent0, start: [0, 0]}, {goal: [0, 0], name: other,\n"
    "      start: [1, 1]}], map: {dimensions: [3, 2], obstacles: [[2, 0]]}}\n"
)
SCHEDULE = """\
statistics:
  cost: 5
schedule:
  agent0:
    - {x: 0, y: 0, t: 0}
    - {x: 1, y: 0, t: 1}
    - {x: 1, y: 1, t: 2}
    - {x: 2, y: 1, t: 3}
  other:
    - {x: 1, y: 1, t: 0}
    - {x: 0, y: 1, t: 1}
    - {x: 0, y: 0, t: 2}
"""
PROBLEM = (
    '{"mapFile": "maps/a.map", "agentFile": "a.agents", "taskFile": "a.tasks", "teamSize": 2.0, "numTasksReveal": 1}'
)
GRID = ["..H", "...", "HHH"]
BOARD = Row("a", 3, 2, GRID, [(0, 0), (1, 1)], [(1, 2), (0, 0)])
PLAN = ["RDR", "LU"]


def bare(row: Row, *, plan: bool = False) -> Row:
    shown = [moves.rstrip("W") for moves in row.plan or []] if plan else None
    return Row(row.id, row.size, row.agents, row.grid, row.starts, row.goals, plan=shown)


def read(folder, files: dict[str, str], **options) -> list[Row]:
    """The rows of a folder with these files."""
    for name, text in files.items():
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "in" / name).write_text(text)
    convert_files(folder / "in", folder / "out.jsonl", **options)
    return read_all(folder / "out.jsonl")


@pytest.mark.parametrize("form", ["eecbs", "multirobot", "lorr"])
def test_boards_and_plans_come_back_from_each_format(tmp_path, form):
    rows = small_rows()
    write_rows(tmp_path / "rows.jsonl", rows)
    assert convert_files(tmp_path / "rows.jsonl", tmp_path / "there", wanted=form) == len(rows)
    assert convert_files(tmp_path / "there", tmp_path / "back.jsonl") == len(rows), "the format is recognised"
    back = {row.id: row for row in read_all(tmp_path / "back.jsonl")}
    assert back == {row.id: bare(row, plan=form != "lorr") for row in rows}


@pytest.mark.parametrize(("form", "name"), [("eecbs", "a.txt"), ("multirobot", "a.yaml"), ("lorr", "a.json")])
def test_one_board_is_a_file_with_what_lies_beside_it(tmp_path, form, name):
    row = small_rows()[0]
    write_rows(tmp_path / "rows.jsonl", [row])
    convert_files(tmp_path / "rows.jsonl", tmp_path / name, wanted=form)
    convert_files(tmp_path / name, tmp_path / "back.jsonl")
    (back,) = read_all(tmp_path / "back.jsonl")
    assert (back.grid, back.starts, back.goals) == (row.grid, row.starts, row.goals)
    if form != "multirobot":
        with refused("is also an input"):
            convert_files(tmp_path / name, tmp_path / "a.scen")


@pytest.mark.parametrize(
    "files",
    [
        {"a.map": MAP, "a.scen": SCENARIO, "a.txt": PATHS},
        {"a.map": MAP, "even-1.scen": SCENARIO, "a.txt": PATHS},
        {"a.yaml": YAML + SCHEDULE},
        {"a.yaml": YAML, "a.schedule.yaml": SCHEDULE},
        {"a.yaml": YAML.replace("agent0", "robot"), "a.schedule.yaml": SCHEDULE.replace("other", "agent1")},
        {"a.yaml": FLOW, "a.schedule.yaml": SCHEDULE},
    ],
    ids=["EECBS", "its only scenario", "libMultiRobotPlanning", "two files", "numbered agents", "braces"],
)
def test_plans_of_other_solvers_are_read_and_judged_valid(tmp_path, files):
    (row,) = read(tmp_path, files)
    assert row == Row("a", 3, 2, GRID, BOARD.starts, BOARD.goals, plan=PLAN)
    (verdict,) = verify_rows([row], [row.plan])
    assert (verdict.valid, verdict.sum_of_costs) == (True, 5)


def test_a_problem_of_the_league_is_read_with_maps_in_folders_and_tasks_beyond_the_team(tmp_path):
    files = {
        "a.json": PROBLEM,
        "maps/a.map": MAP.replace("...", ".ES"),
        "a.agents": "# version for LoRR 2024\n2\n0\n4\n",
        "a.tasks": "# version for LoRR 2024\n3\n5,1\n0\n1,2\n",
    }
    assert read(tmp_path, files) == [BOARD], "of each task the first errand"


def test_what_is_wrong_with_further_agents_is_not_asked_of_the_first(tmp_path):
    """Benchmarks use the first agents of a scenario of hundreds, and tasks of a league share places."""
    league = LEAGUE | {"a.json": PROBLEM.replace("2.0", "3"), "a.agents": "3\n0\n4\n3\n", "a.tasks": "3\n5\n0\n5\n"}
    blocked = {"a.map": MAP, "a.scen": SCENARIO.replace("\t0\t1\t1\t0\t1\n", "\t2\t0\t1\t0\t1\n")}
    agents = YAML.replace("map:", "-   name: c\n    start: [0, 0]\n    goal: [9, 9]\nmap:")
    for place, files in (("league", league), ("scenario", blocked), ("yaml", {"a.yaml": agents})):
        (tmp_path / place).mkdir()
        with pytest.raises(InputError):
            read(tmp_path / place, files)
        (row,) = read(tmp_path / place, files, agents=2)
        assert (row.starts, row.goals) == (BOARD.starts, BOARD.goals), place
    with refused("agent 0", "--agents 2"):
        read(tmp_path / "league", league)


def test_written_problems_of_the_league_have_what_its_programs_of_2026_ask_for(tmp_path):
    write_rows(tmp_path / "rows.jsonl", [BOARD])
    convert_files(tmp_path / "rows.jsonl", tmp_path / "a.json")
    delays = json.loads((tmp_path / "a.json").read_text())["delayConfig"]
    assert (delays["pDelay"], delays["minDelay"]) == (0.0, 1)
    assert delays.keys() >= {"seed", "maxDelay", "eventModel", "durationModel", "gaussMeanRatio", "gaussStdRatio"}


@pytest.mark.parametrize(
    "files",
    [{"a.map": MAP, "a.scen": SCENARIO}, {"a.map": MAP, "a.scen": SCENARIO, "b.map": MAP, "b.scen": SCENARIO}],
)
def test_the_first_agents_of_a_scenario_are_taken(tmp_path, files):
    for count in (1, 2, 3):
        for row in read(tmp_path, files, agents=count):
            assert (row.agents, row.starts) == (count, [(0, 0), (1, 1), (1, 0)][:count])
    for count in (0, 4):
        with refused("'a'", 3, "--agents", f"{count}"):
            read(tmp_path, files, agents=count)


def test_labels_of_all_agents_are_left_out_of_the_first(tmp_path):
    rows = small_rows()
    write_rows(tmp_path / "rows.jsonl", rows)
    convert_files(tmp_path / "rows.jsonl", tmp_path / "one.jsonl", agents=1)
    convert_files(tmp_path / "rows.jsonl", tmp_path / "two.jsonl", agents=2)
    assert read_all(tmp_path / "two.jsonl") == rows
    for row, before in zip(read_all(tmp_path / "one.jsonl"), rows, strict=True):
        assert row == Row(row.id, 3, 1, before.grid, before.starts[:1], before.goals[:1], plan=before.plan[:1])


def test_a_rectangle_is_padded_with_holes_and_its_labels_are_exact(tmp_path):
    corridor = "type octile\nheight 1\nwidth 4\nmap\n....\n"
    swap = "version 1\n0\ta.map\t4\t1\t0\t0\t3\t0\t3\n0\ta.map\t4\t1\t3\t0\t0\t0\t3\n"
    (row,) = read(tmp_path, {"a.map": corridor, "a.scen": swap})
    assert row.grid == ["....", "HHHH", "HHHH", "HHHH"]
    assert solve_rows([row])[0].status == "unsolvable"
    room = corridor.replace("height 1", "height 2") + "@@.@\n"
    (row,) = read(tmp_path, {"a.map": room, "a.scen": swap.replace("4\t1", "4\t2")})
    solved = solve_rows([row])[0]
    assert (solved.status, solved.makespan, solved.sum_of_costs) == ("solvable", 5, 8)
    (tmp_path / "maps.yaml").write_text("wide: |-\n  a..A\n  #..#\n")
    convert_files(tmp_path / "maps.yaml", tmp_path / "wide.jsonl")
    assert read_all(tmp_path / "wide.jsonl")[0].grid == ["....", "H..H", "HHHH", "HHHH"]


EECBS = {"a.map": MAP, "a.scen": SCENARIO}
LEAGUE = {"a.json": PROBLEM, "maps/a.map": MAP, "a.agents": "2\n0\n4\n", "a.tasks": "2\n5\n0\n"}
WRONG = {
    "a path of no agent": (
        EECBS | {"a.txt": "Agent 1: (0,0)->\n"},
        ["a.txt:1", "Agent 1", "`Agent 0: (row,column)->`"],
    ),
    "a path with words": (EECBS | {"a.txt": "Agent 0: (0,0)->here\n"}, ["a.txt:1", "'(0,0)->here'"]),
    "a path from elsewhere": (EECBS | {"a.txt": "Agent 0: (0,1)->\n"}, ["agent 0", "[0, 1]", "[0, 0]"]),
    "a path that jumps": (EECBS | {"a.txt": "Agent 0: (0,0)->(1,1)->\n"}, ["agent 0", "(0,0) to (1,1)"]),
    "more paths than agents": (
        EECBS | {"a.txt": PATHS + "Agent 2: (1,0)->\nAgent 3: (0,1)->\n"},
        ["4 paths", "scenario"],
    ),
    "paths without a scenario": ({"a.txt": PATHS}, ["a.scen", "no such file"]),
    "a schedule alone": ({"a.yaml": SCHEDULE}, ["a.yaml", "`map`"]),
    "no goal": ({"a.yaml": YAML.replace("goal: [2", "potentialGoals: [2")}, ["agents[0]", "'goal'"]),
    "an obstacle off the map": ({"a.yaml": YAML.replace("[2, 0]", "[2, 2]")}, ["map.obstacles[0]", "off the map"]),
    "a cell of three numbers": ({"a.yaml": YAML.replace("[1, 1]", "[1, 1, 0]")}, ["agents[1].start", "two numbers"]),
    "a start in an obstacle": (
        {"a.yaml": YAML.replace("[0, 0]\n    goal: [2", "[2, 0]\n    goal: [2")},
        ["agent 0", "x=2, y=0", "blocked"],
    ),
    "huge dimensions": ({"a.yaml": YAML.replace("[3, 2]", "[99999, 99999]")}, ["map.dimensions", "99999 by 99999"]),
    "an agent without a schedule": ({"a.yaml": YAML + SCHEDULE.replace("other", "third")}, ["schedule", "'other'"]),
    "a time left out": ({"a.yaml": YAML + SCHEDULE.replace("t: 2", "t: 3")}, ["schedule.agent0[2].t", 3]),
    "no map file": (LEAGUE | {"a.json": PROBLEM.replace("mapFile", "map")}, ["a.json: mapFile", "None"]),
    "no team": (LEAGUE | {"a.json": PROBLEM.replace("2.0", "0")}, ["a.json: teamSize", 0, "whole number from 1"]),
    "not JSON": (LEAGUE | {"a.json": "{"}, ["a.json", "not JSON"]),
    "too few robots": (LEAGUE | {"a.agents": "2\n0\n"}, ["a.agents", "1 cells for 2 robots"]),
    "a task of words": (LEAGUE | {"a.tasks": "2\nhere,1\n0\n"}, ["a.tasks:2", "'here,1'"]),
    "a letter of other maps": (LEAGUE | {"maps/a.map": MAP.replace("..@", "..O")}, ["a.map:5", "letter 'O'"]),
    "a roadmap": ({"a.yaml": "roadmap: {}\n" + YAML}, ["a.yaml", "roadmap", "`map`"]),
    "a robot off the map": (LEAGUE | {"a.agents": "2\n0\n77\n"}, ["agent 1", "x=2, y=25", "3x3 map"]),
    "a map outside": (LEAGUE | {"a.json": PROBLEM.replace("maps/a", "../../b")}, ["b.map", "no such file"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_files_that_cannot_be_read_are_refused_in_one_line_with_their_place(tmp_path, what):
    files, told = WRONG[what]
    with refused(*told):
        read(tmp_path, files)
    assert not (tmp_path / "out.jsonl").exists()


def test_the_command_takes_the_first_agents(tmp_path, capsys):
    (tmp_path / "a.map").write_text(MAP)
    (tmp_path / "a.scen").write_text(SCENARIO)
    code, *_ = lakewright(
        capsys, "convert", tmp_path / "a.scen", "--out", tmp_path / "a.yaml", "--to", "multirobot", "--agents", 2
    )
    assert code == 0
    assert (tmp_path / "a.yaml").read_text().count("goal") == 2
