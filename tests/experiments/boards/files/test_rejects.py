"""Rows that solve and verify leave out: unchanged in a file of their own, reported where they are, and counted."""

import json

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.core_jax.rows import SCHEMA, columns_of, read_all, write_rows
from tests.support.boards.generated_rows import small_rows
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.processes.commands import assert_refused, lakewright
from tests.support.processes.killable_work import few_rows_a_part

NOT_ROWS = (b'{"id": "a",\t"size": "eight"}  \r\n', b"\xff\xfe not UTF-8\n", b"[1, 2]\n", b'{"id": "last"}')


@pytest.fixture
def mixed(tmp_path):
    """Lines of boards, and NOT_ROWS among them."""
    good = [msgspec.json.encode(row) + b"\n" for row in small_rows()[:24]]
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join([*good[:3], NOT_ROWS[0], b"\n", NOT_ROWS[1], *good[3:20], NOT_ROWS[2], *good[20:]]))
    with path.open("ab") as file:
        file.write(NOT_ROWS[3])
    return path


@pytest.mark.parametrize("command", ["solve", "verify"])
def test_rows_that_are_left_out_are_in_the_file_of_rejects_byte_for_byte(mixed, capsys, command):
    rejects = mixed.with_name("rejects.jsonl")
    given = (command, mixed, "--out", mixed.with_name("out.jsonl"), "--rejects", rejects, "--json")
    code, said, lines = lakewright(capsys, *given)
    assert (code, json.loads(said)["bad_rows"], len(lines)) == (1, 4, 4)
    assert rejects.read_bytes() == b"".join(NOT_ROWS)


def test_rejects_of_parquet_are_rows_of_the_same_columns(tmp_path, capsys):
    good = columns_of(small_rows()[:4], SCHEMA).append_column("mark", pa.array([7, None, 8, 9], pa.int8()))
    wrong = good.to_pylist()
    wrong[1]["size"], wrong[3]["status"] = 5, "perhaps"
    table = pa.Table.from_pylist(wrong, good.schema).drop_columns("mark")
    pq.write_table(table, tmp_path / "in.parquet")
    given = ("solve", tmp_path / "in.parquet", "--out", tmp_path / "out.jsonl", "--rejects")
    assert_refused(capsys, (*given, tmp_path / "rejects.jsonl"), "rejects.jsonl", "must end in .parquet")
    assert lakewright(capsys, *given, tmp_path / "rejects.parquet")[0] == 1
    assert pq.read_table(tmp_path / "rejects.parquet").equals(table.take([1, 3]))
    assert [row.id for row in read_all(tmp_path / "out.jsonl")] == [wrong[0]["id"], wrong[2]["id"]]


@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
def test_rejects_are_empty_where_every_row_is_good(tmp_path, capsys, form):
    write_rows(tmp_path / f"in{form}", small_rows()[:3])
    rejects = tmp_path / f"rejects{form}"
    rejects.write_bytes(b"of an earlier command")
    given = ("solve", tmp_path / f"in{form}", "--out", tmp_path / f"out{form}", "--rejects", rejects)
    assert lakewright(capsys, *given) == (0, "", [])
    assert read_all(rejects) == []


def test_a_command_that_is_cut_off_at_every_renaming_loses_no_reject(mixed, capsys, monkeypatch):
    few_rows_a_part(monkeypatch)
    rejects, out, cuts = mixed.with_name("rejects.jsonl"), mixed.with_name("out.jsonl"), 0
    given = ("verify", mixed, "--out", out, "--rejects", rejects)
    while True:
        with pytest.MonkeyPatch.context() as patch:
            cut_power(patch, renamings=1 + cuts % 6, before=bool(cuts % 3))
            try:
                code = lakewright(capsys, *given)[0]
                break
            except PowerCutError:
                cuts += 1
        assert rejects.exists() or not out.exists(), "an output is there without what is missing in it"
        assert cuts < 40
    assert (code, cuts > 4) == (1, True)
    assert rejects.read_bytes() == b"".join(NOT_ROWS)
    assert sorted(file.name for file in mixed.parent.iterdir()) == ["in.jsonl", "out.jsonl", "rejects.jsonl"]


def test_without_a_terminal_the_rows_left_out_are_counted(mixed, capsys):
    out = mixed.with_name("out.jsonl")
    code, said, lines = lakewright(capsys, "solve", mixed, "--out", out)
    assert (code, said, len(lines)) == (1, "", 5)
    assert lines[-1] == f"lakewright: {out}: 4 rows left out; --rejects FILE receives them as they are"


def test_of_a_file_full_of_bad_rows_a_few_are_listed_and_the_rest_is_counted(tmp_path, capsys, monkeypatch):
    few_rows_a_part(monkeypatch)
    lines = [msgspec.to_builtins(row) | {"colour": n} for n, row in enumerate(small_rows() * 2)]
    (tmp_path / "in.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))
    out, rejects = tmp_path / "out.jsonl", tmp_path / "rejects.jsonl"
    given = ("solve", tmp_path / "in.jsonl", "--out", out, "--rejects", rejects, "--json")
    code, said, errors = lakewright(capsys, *given)
    assert (code, json.loads(said)["bad_rows"], len(errors)) == (1, len(lines), 21)
    assert "in.jsonl:20: unknown field 'colour' = 19" in errors[19]
    assert f"{out}: {len(lines)} rows left out, 20 of them listed above" in errors[20]
    assert rejects.read_bytes() == (tmp_path / "in.jsonl").read_bytes()


def test_a_wrong_plan_is_reported_where_it_is_written(tmp_path, capsys):
    rows = small_rows()[:4]
    write_rows(tmp_path / "in.jsonl", rows)
    plans = [
        {"id": rows[0].id, "plan": ["R"] * 3},
        {"id": "elsewhere", "plan": rows[1].plan},
        {"id": rows[2].id, "plan": ["X", "U"]},
        {"id": rows[1].id, "plan": rows[1].plan},
        {"id": "odd\0\\name", "plan": rows[1].plan},
    ]
    (tmp_path / "plans.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(plans))
    given = ("verify", tmp_path / "in.jsonl", "--plans", tmp_path / "plans.jsonl", "--out", tmp_path / "out.jsonl")
    code, said, lines = lakewright(capsys, *given, "--json")
    counts = {"plans": 1, "valid": 1, "without_plan": 0, "without_board": 2, "bad_rows": 3}
    assert (code, json.loads(said)) == (1, counts | {"out": f"{tmp_path}/out.jsonl"})
    for line, place, problem in zip(
        lines,
        ("plans.jsonl:2:", "plans.jsonl:5:", "plans.jsonl:1:", "plans.jsonl:3:", "in.jsonl:4:"),
        (
            f"no board 'elsewhere' in {tmp_path}/in.jsonl",
            "no board 'odd\\x00\\\\name' in",
            "plan has 3 strings for 2 agents",
            "plan[0] has the move 'X'",
            "no plan for",
        ),
        strict=True,
    ):
        assert line.startswith(f"lakewright: {tmp_path}/{place}"), line
        assert problem in line
    with_bad_row = (tmp_path / "in.jsonl").read_bytes() + b'{"id": "elsewhere", "size": "eight"}\n'
    (tmp_path / "in.jsonl").write_bytes(with_bad_row)
    assert not any("elsewhere" in line for line in lakewright(capsys, *given)[2]), "a bad row has its plan"


def test_plans_without_a_board_are_named_and_counted(tmp_path, capsys):
    row = small_rows()[0]
    write_rows(tmp_path / "in.jsonl", [row])
    plans = [{"id": name, "plan": row.plan} for name in [*map(str, range(30)), row.id]]
    (tmp_path / "plans.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(plans))
    given = ("verify", tmp_path / "in.jsonl", "--plans", tmp_path / "plans.jsonl", "--out", tmp_path / "out.jsonl")
    code, _, lines = lakewright(capsys, *given)
    assert (code, len(lines)) == (0, 21), "no row is left out"
    assert "plans.jsonl:1: no board '0' in" in lines[0]
    assert "plans.jsonl: 30 plans belong to no board in" in lines[20]
