"""Rows come back as they were written; what is not a row is reported with its line, field, value and remedy."""

import codecs
import os

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import (
    SCHEMA,
    PlanRow,
    Row,
    chunks,
    cut_sections,
    decode,
    decode_numbered,
    join_sections,
    read_all,
    read_chunks,
    read_columns,
    write_rows,
)
from lakewright.core_jax.rows.column_checks import good_rows
from lakewright.core_jax.rows.columns import records_of
from lakewright.core_jax.rows.json_lines import parse_lines
from tests.support.boards.any_rows import GOOD, WRONG_ROWS, any_rows, each_ending, read_with_errors
from tests.support.boards.generated_rows import rows, unsolved
from tests.support.deep import count_examples
from tests.support.refusals import refused


@each_ending
@settings(max_examples=count_examples(20))
@given(st.lists(any_rows(), max_size=5))
def test_rows_come_back_as_they_were_written(tmp_path_factory, form, written):
    path = tmp_path_factory.mktemp("rows") / f"rows{form}"
    write_rows(path, written)
    assert read_all(path) == written


@each_ending
def test_the_size_and_the_team_follow_from_the_board(tmp_path, form):
    bare = [{name: getattr(GOOD, name) for name in ("id", "grid", "starts", "goals")}] * 3
    if form == ".parquet":
        pq.write_table(pa.Table.from_pylist(bare), tmp_path / "rows.parquet")
    else:
        (tmp_path / "rows.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(bare))
    assert (
        read_all(tmp_path / f"rows{form}")
        == [Row(GOOD.id, GOOD.size, GOOD.agents, GOOD.grid, GOOD.starts, GOOD.goals)] * 3
    )


@each_ending
def test_generated_rows_come_back_as_they_were_written(tmp_path, form):
    for kind, written in (("solved", rows()), ("unsolved", tuple(map(unsolved, rows())))):
        write_rows(tmp_path / f"{kind}{form}", written)
        assert tuple(read_all(tmp_path / f"{kind}{form}")) == written


def numbered(count: int) -> list[Row]:
    return [msgspec.structs.replace(GOOD, id=str(number)) for number in range(count)]


@each_ending
def test_rows_beyond_one_chunk_keep_their_order(tmp_path, form):
    path = tmp_path / f"rows{form}"
    write_rows(path, numbered(10))
    some = list(read_chunks(path, size=4 * len(msgspec.json.encode(GOOD)), rows=4))
    assert [len(chunk) for chunk in some] == [4, 4, 2]
    assert [row for chunk in some for row in decode(chunk, Row, pytest.fail, lambda row: None)] == numbered(10)


@each_ending
@pytest.mark.parametrize("skip", [0, 1, 3, 4, 5, 8, 9, 10, 11])
def test_rows_are_skipped_and_the_others_keep_their_numbers(tmp_path, form, skip):
    path = tmp_path / f"rows{form}"
    write_rows(path, numbered(10))
    if form == ".parquet":
        pq.write_table(pq.read_table(path), path, row_group_size=4)
    skipped = list(read_chunks(path, skip, rows=3))
    problems: list[InputError] = []
    found = [row.id for chunk in skipped for row in decode(chunk, Row, problems.append, refuse)]
    mark = ":" if form == ".jsonl" else ": row "
    assert not found
    assert [str(error) for error in problems] == [f"{path}{mark}{n + 1}: id is {n}" for n in range(skip, 10)]
    assert sum(map(len, skipped)) == max(10 - skip, 0)


@each_ending
@pytest.mark.parametrize("skip", [0, 1, 3, 4, 5, 9, 10, 11])
def test_sections_are_cut_without_reading_and_have_the_same_rows_with_the_same_numbers(
    tmp_path, monkeypatch, form, skip
):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 3)
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 2 * len(msgspec.json.encode(GOOD)))
    path = tmp_path / f"rows{form}"
    write_rows(path, numbered(10))
    if form == ".parquet":
        pq.write_table(pq.read_table(path), path, row_group_size=4)
    else:  # with a mark, a blank line, a line longer than a chunk, and no end of the last one
        lines = path.read_bytes().replace(b"\n", b" " * 999 + b"\r\n\n", 1)
        path.write_bytes(codecs.BOM_UTF8 + lines.removesuffix(b"\n"))
    expected = [row for chunk in read_chunks(path, skip) for row in decode_numbered(chunk, Row)]
    sections = list(cut_sections(path, skip))
    for some in (sections, [join_sections(sections)] if sections else []):
        assert [row for one in some for chunk in one.read_chunks() for row in decode_numbered(chunk, Row)] == expected
    assert len(sections) > 1 or skip > 5


@each_ending
def test_a_file_that_lost_rows_since_it_was_cut_is_reported(tmp_path, form):
    path = tmp_path / f"rows{form}"
    write_rows(path, numbered(10))
    (section,) = cut_sections(path)
    write_rows(path, numbered(9))
    with pytest.raises(InputError, match=f"^{path}: was changed while it was read; run the command again$"):
        list(section.read_chunks())


def refuse(row: Row) -> None:
    raise ValueError(f"id is {row.id}")


@each_ending
def test_rows_of_an_older_version_have_null_where_it_had_no_column(tmp_path, form):
    path = tmp_path / f"rows{form}"
    raw = {name: value for name, value in msgspec.to_builtins(GOOD).items() if name in SCHEMA.names[:12]}
    if form == ".jsonl":
        path.write_bytes(msgspec.json.encode(raw))
    else:
        pq.write_table(pa.Table.from_pylist([raw], pa.schema(list(SCHEMA)[:12])), path)
    assert read_all(path) == [GOOD]


def test_parquet_of_other_writers_is_read(tmp_path):
    path = tmp_path / "rows.parquet"
    large = {"id": pa.large_string(), "grid": pa.large_list(pa.large_string()), "makespan": pa.int64()}
    large["starts"] = pa.large_list(pa.list_(pa.int64(), 2))
    schema = pa.schema([pa.field(field.name, large.get(field.name, field.type)) for field in SCHEMA])
    pq.write_table(pa.Table.from_pylist([msgspec.to_builtins(GOOD)] * 3, schema), path, use_dictionary=["id"])
    assert read_all(path) == [GOOD] * 3


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_a_wrong_row_is_reported_with_line_field_value_and_remedy_and_the_rest_is_read(tmp_path, name):
    raw, problem = WRONG_ROWS[name]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines([GOOD, raw, GOOD, raw]))
    found, problems = read_with_errors(path)
    assert found == [GOOD, GOOD]
    assert len(problems) == 2
    assert problems[0].startswith(f"{path}:2: {problem}"), problems[0]
    assert problems[1].startswith(f"{path}:4: {problem}"), problems[1]


@pytest.mark.parametrize("line", [b"{", b"not json", b'{"id": "\xff"}', b"\x00\x01", b'{"size": NaN}', b"1e999"])
def test_a_line_that_is_no_row_is_reported_and_the_rest_is_read(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    good = msgspec.json.encode(GOOD)
    path.write_bytes(good + b"\n\n" + line + b"\n" + good)
    found, problems = read_with_errors(path)
    assert found == [GOOD, GOOD]
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}:3: "), "blank lines count, but are no rows"


def test_json_nested_too_deeply_is_reported_like_any_bad_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"[" * 100_000 + b"\n" + msgspec.json.encode(GOOD))
    found, problems = read_with_errors(path)
    assert found == [GOOD]
    assert problems[0].startswith(f"{path}:1: ")


def test_a_wrong_row_of_parquet_is_reported_with_its_number_and_the_rest_is_read(tmp_path):
    path = tmp_path / "rows.parquet"
    raw = [msgspec.to_builtins(row) for row in (GOOD, GOOD, GOOD)]
    raw[1]["starts"] = [[0, 2], [1, 1]]
    pq.write_table(pa.Table.from_pylist(raw, SCHEMA), path)
    found, problems = read_with_errors(path)
    assert found == [GOOD, GOOD]
    assert problems == [f"{path}: row 2: starts[0] is [0, 2], a hole; choose a frozen cell"]


def test_a_parquet_file_of_other_columns_is_reported_row_by_row(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["a"], "plan": [["U"]], "mood": [1]}), path)
    assert read_with_errors(path) == (
        [],
        [f"{path}: row 1: unknown field 'mood' = 1; choose from {', '.join(SCHEMA.names)}"],
    )


def test_plans_are_rows_of_id_and_plan(tmp_path):
    path = tmp_path / "plans.jsonl"
    path.write_text('{"id": "a", "plan": ["U"]}\n{"id": "a"}\n')
    assert read_with_errors(path, PlanRow) == ([PlanRow("a", ["U"])], [f"{path}:2: field 'plan' is missing; add it"])


@settings(max_examples=count_examples(100))
@given(st.data())
def test_a_line_with_a_wrong_byte_is_read_as_columns_only_where_it_is_a_row(data):
    line = bytearray(msgspec.json.encode(data.draw(any_rows())))
    wrong = st.sampled_from(list(b'{}[]",:.HU019-+eN \\\n\xff\x00'))
    for _ in range(data.draw(st.integers(1, 3))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(wrong)
    batch = parse_lines([bytes(line)], SCHEMA)
    if batch is not None and good_rows(batch).all():
        row = msgspec.json.decode(bytes(line), type=Row)
        assert msgspec.convert(records_of(batch), list[Row]) == [row], f"{bytes(line)} is read as {records_of(batch)}"


@pytest.mark.parametrize("bad", [[], [1], [40], [2, 3, 4], [17, 33, 64], list(range(1, 65))])
def test_bad_rows_among_many_are_found_and_the_others_keep_their_order(tmp_path, bad):
    wrong = [raw for raw, _ in WRONG_ROWS.values()]
    lines = [wrong[n % len(wrong)] if n in bad else row for n, row in enumerate(numbered(64), 1)]
    (tmp_path / "in.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))
    found, problems = read_with_errors(tmp_path / "in.jsonl")
    assert [row.id for row in found] == [str(n - 1) for n in range(1, 65) if n not in bad]
    assert [int(line.split(":")[1]) for line in problems] == bad


def test_a_check_of_columns_leaves_rows_out_and_they_are_reported_in_the_order_of_the_file(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines([*numbered(3), {}, *numbered(2)]))
    problems: list[InputError] = []
    (chunk,) = read_chunks(path)
    batch = read_columns(
        chunk, lambda _, error: problems.append(error), lambda batch: dict.fromkeys((1, 3), "not wanted")
    )
    assert batch["id"].to_pylist() == ["0", "2", "1"]
    assert [str(error).removeprefix(f"{path}:")[:6] for error in problems] == ["2: not", "4: fie", "5: not"]


@pytest.mark.parametrize(
    "line", [b'{"id": "a"} {"id": "b"}', b'{"id": "a",\n"size": 3}', b'{"id": "a"}\n\n{"id": "b"}', b" "]
)
def test_a_line_of_more_or_less_than_one_object_is_left_to_careful_reading(line):
    assert parse_lines(line.splitlines(keepends=True), SCHEMA) is None


def test_a_parquet_file_with_two_columns_of_one_name_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    write_rows(path, numbered(3))
    table = pq.read_table(path)
    pq.write_table(table.append_column("id", table["id"]), path)
    with refused("rows.parquet:", "'id'"):
        read_all(path)


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + msgspec.json.Encoder().encode_lines(numbered(3)))
    assert read_all(path) == numbered(3)
    (chunk,) = read_chunks(path)
    assert len(read_columns(chunk, lambda *_: None)) == 3


@pytest.mark.parametrize("spelt", ['"size":3,"size":4', '"size": 4, "agents":1, "size" :3', '"size":4,"\\u0073ize":3'])
def test_a_row_with_a_key_twice_is_left_out(tmp_path, spelt):
    path = tmp_path / "rows.jsonl"
    good = msgspec.json.encode(GOOD)
    twice = good.replace(f'"size":{GOOD.size}'.encode(), spelt.encode(), 1)
    path.write_bytes(b"\n".join([good, twice, good]))
    found, problems = read_with_errors(path)
    assert found == [GOOD, GOOD]
    assert [str(error) for error in problems] == [f"{path}:2: has 'size' twice; keep one of them"]


def test_a_text_that_looks_like_a_key_is_no_key(tmp_path):
    row = msgspec.structs.replace(GOOD, id='a","id":"b')
    write_rows(tmp_path / "rows.jsonl", [row])
    assert read_all(tmp_path / "rows.jsonl") == [row]


@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
def test_a_named_pipe_is_refused_at_once(tmp_path, form):
    os.mkfifo(tmp_path / f"rows{form}")
    with refused(f"rows{form}", "pipe"):
        read_all(tmp_path / f"rows{form}")


@pytest.mark.parametrize("number", [float("inf"), -float("inf")])
def test_a_hole_ratio_that_is_no_number_leaves_out_its_row_alone(tmp_path, number):
    path = tmp_path / "rows.parquet"
    write_rows(path, numbered(3))
    table = pq.read_table(path)
    place = table.schema.get_field_index("hole_ratio")
    pq.write_table(table.set_column(place, "hole_ratio", pa.array([0.5, number, None], pa.float64())), path)
    problems: list[InputError] = []
    (chunk,) = read_chunks(path)
    found = records_of(read_columns(chunk, lambda _, error: problems.append(error)))
    assert [row["id"] for row in found] == ["0", "2"]
    assert str(problems[0]).endswith(f"row 2: hole_ratio: {number} is not a finite number; give one")
