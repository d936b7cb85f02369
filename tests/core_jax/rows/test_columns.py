"""Columns hold what the rows hold, as Arrow, as JSON and as arrays."""

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.rows import SCHEMA, Row, columns_of, moves_of, plan_of, write_rows
from lakewright.core_jax.rows.column_checks import good_rows
from lakewright.core_jax.rows.columns import records_of
from lakewright.core_jax.rows.json_lines import encode_lines, parse_lines
from tests.support.boards.any_rows import any_rows
from tests.support.boards.generated_rows import rows, shown
from tests.support.deep import count_examples


@given(st.lists(any_rows(), max_size=5))
def test_columns_are_what_arrow_makes_of_the_rows(written):
    plain = pa.Table.from_pylist([msgspec.to_builtins(row) for row in written], SCHEMA)
    assert pa.Table.from_batches([columns_of(written, SCHEMA)]).equals(plain)
    for begin in range(len(written)):
        part = plain.slice(begin, 2).combine_chunks()
        assert [records_of(batch) for batch in part.to_batches()] == [batch.to_pylist() for batch in part.to_batches()]


def test_unknown_moves_are_refused():
    with pytest.raises(ValueError, match="use only U D L R W"):
        moves_of([["UX"]], 4)


def test_a_line_of_jsonl_is_the_row_of_the_design(tmp_path):
    write_rows(tmp_path / "a.jsonl", rows()[:1])
    assert list(msgspec.json.decode((tmp_path / "a.jsonl").read_bytes())) == [
        *("id", "size", "agents", "grid", "starts", "goals", "hole_ratio", "status", "makespan", "sum_of_costs"),
        *("wait_required", "plan", "makespan_plan", "certificate"),
    ]
    assert SCHEMA.names == list(Row.__struct_fields__)


def test_moves_and_letters_say_the_same():
    for row in rows():
        assert plan_of(moves_of([row.plan], 32)[0]) == row.plan, shown(row)


@settings(max_examples=count_examples(20))
@given(st.lists(any_rows(), min_size=1, max_size=6), st.integers(0, 3))
def test_columns_are_written_byte_for_byte_as_rows_are_and_read_back(written, skip):
    encoder = msgspec.json.Encoder()
    batch = columns_of(written, SCHEMA).slice(skip)
    lines = encode_lines(batch).to_pybytes()
    assert lines == encoder.encode_lines(written[skip:])
    again = parse_lines(lines.splitlines(keepends=True), SCHEMA)
    assert again is None or again.equals(batch), "escapes may be left to careful reading"


@given(st.lists(any_rows(), min_size=1, max_size=5))
def test_what_a_row_accepts_its_columns_do(written):
    assert good_rows(columns_of(written, SCHEMA)).all(), written


@pytest.mark.parametrize("ratio", [0.1, 1.0, 1e16, 1e-7, 123456.789, 0.30000000000000004])
def test_numbers_are_written_as_msgspec_writes_them(ratio):
    row = Row("a", 1, 1, ["."], [(0, 0)], [(0, 0)], hole_ratio=ratio)
    assert encode_lines(columns_of([row], SCHEMA)).to_pybytes() == msgspec.json.encode(row) + b"\n"
