"""Files that are none of a format are refused in one line, which names the place, the value and the remedy."""

import json
import os
import re

import msgspec
import pytest

from lakewright.core_jax.rows import read_all, write_rows
from lakewright.experiments.cli import main
from tests.support.boards.generated_rows import small_rows

MAP = "type octile\nheight 3\nwidth 3\nmap\n..@\n...\n...\n"
ENTRY = "0\ta.map\t3\t3\t{}\t{}\t{}\t{}\t1.0\n"
RESULT = "agents=2\nmap_file=a.map\nstarts=(0,0),(0,1),\ngoals=(1,0),(1,1),\nsolution=\n"


def scenario(*entries: tuple[int, int, int, int]) -> str:
    return "version 1\n" + "".join(ENTRY.format(*entry) for entry in entries)


REFUSED = {
    "an agent on a wall": (
        {"a.map": MAP, "a.scen": scenario((2, 0, 0, 0))},
        r"a\.scen: the start of agent 0 is x=2, y=0, a blocked cell; choose a free one",
    ),
    "a goal in a wall": (
        {"a.map": MAP, "a.scen": scenario((0, 0, 2, 0))},
        r"a\.scen: the goal of agent 0 is x=2, y=0, a blocked cell; choose a free one",
    ),
    "two agents in one cell": (
        {"a.map": MAP, "a.scen": scenario((0, 0, 1, 1), (0, 0, 2, 2))},
        r"a\.scen: the start of agent 1 is x=0, y=0, also the cell of agent 0; give each its own cell",
    ),
    "an agent off the map": (
        {"a.map": MAP, "a.scen": scenario((0, 0, 3, 1))},
        r"a\.scen: the goal of agent 0 is x=3, y=1, off the 3x3 map; x is the column",
    ),
    "a map of other sides": (
        {"a.map": "height 1\nwidth 2\nmap\n..\n", "a.scen": scenario((0, 0, 1, 0))},
        r"a\.scen: its map is 3 by 3, but a\.map is 2 by 1; correct one of them",
    ),
    "water, of another dialect": (
        {"a.map": MAP.replace("@", "~"), "a.scen": scenario((0, 0, 1, 0))},
        r"a\.map:5: the letter '~'; write '\.' for free and '@' for blocked",
    ),
    "a scenario of other sides": (
        {"a.map": MAP, "a.scen": scenario((0, 0, 1, 0)).replace("3\t3", "8\t8")},
        r"a\.scen: its map is 8 by 8, but a\.map is 3 by 3; correct one of them",
    ),
    "a map that is missing": ({"a.scen": scenario((0, 0, 1, 0))}, r"a\.map: no such file; put the map beside"),
    "a result that ends within a line": (
        {"a.map": MAP, "a.txt": RESULT + "0:(0,0),(0,1),\n1:(1,0),(1"},
        r"a\.txt:7: '\(1,0\),\(1' are not cells; write \(x,y\),\(x,y\), with x the column",
    ),
    "a result in rows and columns": (
        {"a.map": MAP, "a.txt": RESULT + "0:(0,0),(1,0),\n"},
        r"a\.txt:6: time 0 is not at the starts; a plan begins there",
    ),
    "a result of another dialect": (
        {"a.map": MAP, "a.txt": "schedule:\n  agent0: [x, y]\n"},
        r"a\.txt: no line `map_file=`; name the map, which lies beside the result",
    ),
    "map strings of unequal lines": (
        {"a.yaml": "one: |-\n  a.A\n  ..\n"},
        r"'one':2: 2 cells, but the first line has 3; correct it",
    ),
    "another letter for walls": ({"a.yaml": "one: |-\n  a@\n  .A\n"}, r"'one':1: the letter '@'; use \. # a-z"),
    "a map of no name": (
        {"a.map": MAP, "a.scen": scenario((0, 0, 1, 0)).replace("a.map", ".")},
        r"a\.scen: its map is '\.', which cannot be the name of a file; name the map beside it",
    ),
    "a map whose name holds NUL": (
        {"a.map": MAP, "a.txt": RESULT.replace("a.map", "a\0.map") + "0:(0,0),(0,1),\n"},
        r"a\.txt: its map is 'a\\x00\.map', which cannot be the name of a file",
    ),
    "a number of thousands of digits": (
        {"a.map": MAP, "a.scen": scenario((0, 0, 1, 0)).replace("3\t3", "9" * 5000 + "\t3")},
        r"a\.scen:2: width is '9{38,40}.*; give a whole number of at most 6 digits",
    ),
    "a map of a height of thousands of digits": (
        {"a.map": MAP.replace("height 3", "height " + "9" * 5000), "a.scen": scenario((0, 0, 1, 0))},
        r"a\.map:2: height is '9{38,40}.*; give a whole number of at most 6 digits",
    ),
    "a date for a map string": ({"a.yaml": "a: 2001-99-99\n"}, r"'a':1: the letter '2'|'a':1: 10 cells in one of 1"),
    "a number for a map string": ({"a.yaml": f"a: {'9' * 5000}\n"}, r"'a':1: the letter '9'; use"),
    "a tag for a map string": ({"a.yaml": 'a: !!int "x"\n'}, r"'a':1: no agent|'a':1: the letter|'a': no agent"),
    "YAML of ten thousand levels": ({"a.yaml": "[" * 10_000}, r"a\.yaml: not YAML \(.*\); give `name: \|-`"),
    "a name twice": ({"a.yaml": "b: a.A\nb: a.A\n"}, r"a\.yaml: not YAML \('b' appears twice\); give `name: \|-`"),
    "no YAML": ({"a.yaml": "one: [\n"}, r"a\.yaml: not YAML \(.*\); give `name: \|-` and a map string"),
    "no text": ({"a.yaml": b"\xff\xfe"}, r"a\.yaml: byte 0 is not UTF-8; this is not a text file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_used_is_refused_in_one_line_and_nothing_is_written(tmp_path, capsys, name):
    files, message = REFUSED[name]
    for file, content in files.items():
        (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["convert", str(tmp_path / list(files)[-1]), "--out", str(tmp_path / "out.jsonl")]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1, line
    assert re.search(message, line), line
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("name", ["", "x" * 252])
def test_a_board_whose_id_is_no_name_of_a_file_is_refused(tmp_path, capsys, name):
    row = msgspec.structs.replace(small_rows()[0], id=name)
    write_rows(tmp_path / "rows.jsonl", [row])
    assert main(["convert", str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / "maps")]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1, line
    assert re.search(r"the id '.* cannot be the name of a file; give ids of 1 to 250 bytes", line), line
    assert len(line) < 200
    assert not (tmp_path / "maps").exists()


def test_a_file_in_a_folder_whose_name_is_no_text_is_refused(tmp_path, capsys):
    (tmp_path / "a.map").write_text(MAP)
    (tmp_path / os.fsdecode(b"caf\xe9.scen")).write_text(scenario((0, 0, 1, 0)))
    assert main(["convert", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1, line
    assert r"'caf\udce9.scen' is not UTF-8; rename the file" in line
    assert not (tmp_path / "out.jsonl").exists()


def test_a_plan_that_stops_early_is_read_and_judged_with_agent_and_step(tmp_path):
    (tmp_path / "a.map").write_text(MAP)
    (tmp_path / "a.txt").write_text(RESULT + "0:(0,0),(0,1),\n1:(1,0),(0,1),\n")
    assert main(["convert", str(tmp_path / "a.txt"), "--out", str(tmp_path / "rows.jsonl")]) == 0
    assert read_all(tmp_path / "rows.jsonl")[0].plan == ["R", ""]
    assert main(["verify", str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / "verdicts.jsonl")]) == 0
    verdict = (tmp_path / "verdicts.jsonl").read_text()
    assert '"failure":"goal_not_reached","agent":1,"step":1' in verdict.replace(": ", ":").replace(", ", ",")


def test_a_huge_map_is_read_and_a_larger_file_than_any_map_is_refused(tmp_path, capsys):
    side = 512
    (tmp_path / "a.map").write_text(f"type octile\nheight {side}\nwidth {side}\nmap\n" + ("." * side + "\n") * side)
    (tmp_path / "a.scen").write_text(f"version 1\n0\ta.map\t{side}\t{side}\t0\t0\t511\t511\t1022.0\n")
    assert main(["convert", str(tmp_path / "a.scen"), "--out", str(tmp_path / "rows.jsonl")]) == 0
    assert read_all(tmp_path / "rows.jsonl")[0].goals == [(511, 511)]
    with open(tmp_path / "a.map", "ab") as file:
        file.truncate((64 << 20) + 1)
    assert main(["convert", str(tmp_path / "a.scen"), "--out", str(tmp_path / "again.jsonl")]) == 2
    assert "a.map: 67108865 bytes, more than the 67108864 of the largest map; split it" in capsys.readouterr().err


def count_converted(capsys, *words):
    """Exit code, boards and lines on standard error of a conversion."""
    code = main(["convert", *map(str, words), "--json"])
    said = capsys.readouterr()
    found = json.loads(said.out)
    return code, found["boards"], found["bad_rows"], said.err.splitlines()


def test_a_bad_row_of_a_file_costs_no_other(tmp_path, capsys):
    rows = small_rows()[:3]
    lines = [msgspec.json.encode(row) for row in rows]
    lines[1:1] = [b"no JSON", lines[0].replace(b'"agents":2', b'"agents":3').replace(rows[0].id.encode(), b"odd")]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join([*lines, lines[0]]) + b"\n")
    for name in ("out.jsonl", "maps"):
        code, boards, bad, said = count_converted(capsys, tmp_path / "rows.jsonl", "--out", tmp_path / name)
        assert (code, boards, bad, len(said)) == (1, 3, 3, 3), said
        assert "rows.jsonl:2: not JSON" in said[0]
        assert "rows.jsonl:3: " in said[1]
        assert f"the id {rows[0].id!r} appears twice" in said[2]
    assert read_all(tmp_path / "out.jsonl") == rows
    assert len(list((tmp_path / "maps").glob("*.scen"))) == 3


def test_a_bad_file_of_a_folder_and_a_bad_map_string_cost_no_other(tmp_path, capsys):
    (tmp_path / "a.map").write_text(MAP)
    (tmp_path / "good.scen").write_text(scenario((0, 0, 1, 0)))
    (tmp_path / "lost.scen").write_text(scenario((0, 0, 1, 0)).replace("a.map", "lost.map"))
    (tmp_path / "wall.scen").write_text(scenario((2, 0, 0, 0)))
    code, boards, bad, said = count_converted(capsys, tmp_path, "--out", tmp_path / "out.jsonl")
    assert (code, boards, bad) == (1, 1, 2)
    assert "lost.map: no such file" in said[0]
    assert "wall.scen: the start of agent 0" in said[1]
    (tmp_path / "maps.yaml").write_text("one: |-\n  a.A\ntwo: |-\n  a.\nthree: [1]\nfour: |-\n  A.a\n")
    code, boards, bad, said = count_converted(capsys, tmp_path / "maps.yaml", "--out", tmp_path / "four.jsonl")
    assert (code, boards, bad) == (1, 2, 2)
    assert [row.id for row in read_all(tmp_path / "four.jsonl")] == ["one", "four"]


def test_a_board_with_fewer_agents_than_asked_for_costs_no_other(tmp_path, capsys):
    (tmp_path / "maps.yaml").write_text("one: |-\n  a.A\ntwo: |-\n  abA\n  ..B\n")
    words = (tmp_path / "maps.yaml", "--agents", 2, "--out", tmp_path / "two.jsonl")
    code, boards, bad, said = count_converted(capsys, *words)
    assert (code, boards, bad) == (1, 1, 1)
    assert "'one' has 1 agents, and --agents is 2; give 1 to 1" in said[0]


def test_of_many_bad_rows_the_first_are_listed_and_the_others_counted(tmp_path, capsys):
    line = msgspec.json.encode(small_rows()[0])
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join([line, *[b"{"] * 30]))
    code, _, bad, said = count_converted(capsys, tmp_path / "rows.jsonl", "--out", tmp_path / "out.jsonl")
    assert (code, bad, len(said)) == (1, 30, 21)
    assert "10 more boards left out" in said[-1]
