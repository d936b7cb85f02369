"""Rows come back as they were written; what is no row is told with its line, field, value and remedy."""

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_jax.errors import InputError
from core_jax.rows import (
    PlanRow,
    decode,
    formats,
    moves_of,
    plan_of,
    read_all,
    read_chunks,
    read_rows,
    row_writer,
    write_rows,
)
from core_jax.rows.columns import records_of, table_of
from core_jax.rows.row import SCHEMA, Row
from tests.support.generated_rows import rows, shown, unsolved

ENDINGS = (".jsonl", ".parquet")
GOOD = Row("a", 3, 2, ["..H", "...", "H.."], [(0, 0), (1, 1)], [(2, 2), (0, 1)], 0.4, plan=["RD", "U"])

each_ending = pytest.mark.parametrize("form", ENDINGS)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def any_rows(draw) -> Row:
    """Any row that is not refused: solved or not, of any size and one to four agents."""
    size = draw(st.integers(1, 20))
    agents = draw(st.integers(1, min(4, size * size)))
    cells = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    starts, goals = (draw(st.lists(cells, min_size=agents, max_size=agents, unique=True)) for _ in range(2))
    holes = set(draw(st.lists(cells, max_size=size * size // 2))) - {*starts, *goals}
    grid = ["".join("H" if (line, column) in holes else "." for column in range(size)) for line in range(size)]
    numbers = st.none() | st.integers(0, 2**31 - 1)
    plans = st.none() | st.lists(st.text("UDLRW", max_size=9), min_size=agents, max_size=agents)
    return Row(
        id=draw(texts),
        size=size,
        agents=agents,
        grid=grid,
        starts=starts,
        goals=goals,
        hole_ratio=draw(st.none() | st.floats(0, 1)),
        status=draw(st.none() | st.sampled_from(["solvable", "unsolvable", "undecided"])),
        makespan=draw(numbers),
        sum_of_costs=draw(numbers),
        wait_required=draw(st.none() | st.booleans()),
        plan=draw(plans),
        makespan_plan=draw(plans),
        certificate=draw(st.none() | st.sampled_from(["bound", "flood", "search"])),
    )


def fields(**changes: object) -> dict:
    """GOOD as plain data with some fields changed; None takes a field away."""
    raw = {**msgspec.to_builtins(GOOD), **changes}
    return {name: value for name, value in raw.items() if value is not None}


def read_with_errors(path, kind=Row) -> tuple[list, list[str]]:
    """What is read of a file, and what is told about the rest."""
    told: list[InputError] = []
    found = [row for chunk in read_rows(path, kind, told.append) for row in chunk]
    assert all("\n" not in str(error) for error in told)
    return found, [str(error) for error in told]


@each_ending
@settings(max_examples=60)
@given(st.lists(any_rows(), max_size=5))
def test_rows_come_back_as_they_were_written(tmp_path_factory, form, written):
    path = tmp_path_factory.mktemp("rows") / f"rows{form}"
    write_rows(path, written)
    assert read_all(path) == written


@each_ending
def test_generated_rows_come_back_as_they_were_written(tmp_path, form):
    for kind, written in (("solved", rows()), ("unsolved", tuple(map(unsolved, rows())))):
        write_rows(tmp_path / f"{kind}{form}", written)
        assert tuple(read_all(tmp_path / f"{kind}{form}")) == written


def numbered(count: int) -> list[Row]:
    return [msgspec.structs.replace(GOOD, id=str(number)) for number in range(count)]


@each_ending
def test_rows_beyond_one_chunk_keep_their_order(tmp_path, monkeypatch, form):
    monkeypatch.setattr(formats, "CHUNK_ROWS", 4)
    monkeypatch.setattr(formats, "CHUNK_BYTES", 4 * len(msgspec.json.encode(GOOD)))
    path = tmp_path / f"rows{form}"
    write_rows(path, numbered(10))
    assert [len(chunk) for chunk in read_rows(path, Row, print)] == [4, 4, 2]
    assert read_all(path) == numbered(10)


@each_ending
@pytest.mark.parametrize("skip", [0, 1, 3, 4, 5, 8, 9, 10, 11])
def test_rows_are_skipped_and_the_others_keep_their_numbers(tmp_path, monkeypatch, form, skip):
    monkeypatch.setattr(formats, "CHUNK_ROWS", 3)
    path = tmp_path / f"rows{form}"
    with row_writer(path) as write:  # a row group of Parquet at each call
        write(numbered(10)[:4])
        write(numbered(10)[4:])
    chunks = list(read_chunks(path, skip))
    told: list[InputError] = []
    found = [row.id for chunk in chunks for row in decode(chunk, Row, told.append, refuse)]
    mark = ":" if form == ".jsonl" else ": row "
    assert not found
    assert [str(error) for error in told] == [f"{path}{mark}{n + 1}: id is {n}" for n in range(skip, 10)]
    assert sum(map(len, chunks)) == max(10 - skip, 0)


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


@given(st.lists(any_rows(), max_size=5))
def test_columns_are_what_arrow_makes_of_the_rows(written):
    plain = pa.Table.from_pylist([msgspec.to_builtins(row) for row in written], SCHEMA)
    assert table_of(written, SCHEMA).equals(plain)
    for begin in range(len(written)):
        part = plain.slice(begin, 2).combine_chunks()
        assert [records_of(batch) for batch in part.to_batches()] == [batch.to_pylist() for batch in part.to_batches()]


def test_moves_that_nobody_knows_are_refused():
    with pytest.raises(ValueError, match="none of U D L R W"):
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


WRONG_ROWS = {
    "a start in a hole": (fields(starts=[[0, 2], [1, 1]]), "starts[0] is [0, 2], a hole; choose a frozen cell"),
    "a goal in a hole": (fields(goals=[[2, 2], [2, 0]]), "goals[1] is [2, 0], a hole; choose a frozen cell"),
    "a start off the board": (fields(starts=[[0, 0], [3, 1]]), "starts[1] is [3, 1], off the 3x3 board; use 0-based"),
    "a negative cell": (fields(goals=[[-1, 0], [0, 1]]), "goals[0] is [-1, 0], off the 3x3 board; use 0-based"),
    "a start taken twice": (fields(starts=[[0, 0], [0, 0]]), "starts are [[0, 0], [0, 0]]: two agents share a cell"),
    "a goal taken twice": (fields(goals=[[0, 0], [0, 0]]), "goals are [[0, 0], [0, 0]]: two agents share a cell"),
    "a start too many": (fields(starts=[[0, 0], [0, 1], [1, 0]]), "starts has 3 cells for 2 agents; give one an agent"),
    "a cell of three numbers": (fields(starts=[[0, 0, 0], [0, 1]]), "starts: [[0, 0, 0], [0, 1]] does not fit"),
    "a grid too short": (fields(grid=["...", "..."]), "grid has 2 lines for size 3; give one line a row"),
    "a line too long": (fields(grid=["...", "....", "..."]), "grid[1] is '....', not 3 cells long"),
    "an unknown letter": (fields(grid=["...", ".X.", "..."]), "grid[1] holds 'X'; use '.' for frozen and 'H'"),
    "an unknown move": (fields(plan=["RD", "UQ"]), "plan[1] has the move 'Q'; use U D L R W only"),
    "a plan too few": (fields(plan=["RD"]), "plan has 1 strings for 2 agents; give one string an agent"),
    "an unknown field": (fields(holes=3), "unknown field 'holes' = 3; choose from id, size,"),
    "a missing field": (fields(goals=None), "field 'goals' is missing; add it"),
    "a size of nothing": (fields(size=0), "size is 0; a board has at least 1 cell a side"),
    "a size beyond all": (fields(size=10**30), f"grid has 3 lines for size {10**30}; give one line a row"),
    "an unknown status": (fields(status="done"), "status is 'done'; choose from solvable, unsolvable, undecided, or"),
    "an unknown certificate": (fields(certificate="oath"), "certificate is 'oath'; choose from bound, flood, search"),
    "no certificate in words": (fields(certificate="none"), "certificate is 'none'; choose from bound, flood, search"),
    "a move unknown to both plans": (fields(makespan_plan=["", "?"]), "makespan_plan[1] has the move '?'; use U D L"),
    "a cost below nothing": (fields(sum_of_costs=-1), "sum_of_costs: -1 does not fit: expected `int` >= 0"),
    "a cost beyond the column": (fields(makespan=2**31), f"makespan: {2**31} does not fit: expected `int` <="),
    "no agent": (fields(agents=0), "agents is 0; there must be at least 1"),
    "a size in words": (fields(size="three"), "size: 'three' does not fit: expected"),
    "a makespan in parts": (fields(makespan=1.5), "makespan: 1.5 does not fit: expected"),
    "no object": ([1, 2], "expected an object, got [1, 2]"),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_a_wrong_row_is_told_with_line_field_value_and_remedy_and_the_rest_is_read(tmp_path, name):
    raw, problem = WRONG_ROWS[name]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines([GOOD, raw, GOOD, raw]))
    found, told = read_with_errors(path)
    assert found == [GOOD, GOOD]
    assert len(told) == 2
    assert told[0].startswith(f"{path}:2: {problem}"), told[0]
    assert told[1].startswith(f"{path}:4: {problem}"), told[1]


@pytest.mark.parametrize("line", [b"{", b"not json", b'{"id": "\xff"}', b"\x00\x01", b'{"size": NaN}', b"1e999"])
def test_a_line_that_is_no_row_is_told_and_the_rest_is_read(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    good = msgspec.json.encode(GOOD)
    path.write_bytes(good + b"\n\n" + line + b"\n" + good)
    found, told = read_with_errors(path)
    assert found == [GOOD, GOOD]
    assert len(told) == 1
    assert told[0].startswith(f"{path}:3: "), "blank lines count, but are no rows"


def test_json_nested_too_deeply_is_told_like_any_bad_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"[" * 100_000 + b"\n" + msgspec.json.encode(GOOD))
    found, told = read_with_errors(path)
    assert found == [GOOD]
    assert told[0].startswith(f"{path}:1: ")


def test_a_wrong_row_of_parquet_is_told_with_its_number_and_the_rest_is_read(tmp_path):
    path = tmp_path / "rows.parquet"
    raw = [msgspec.to_builtins(row) for row in (GOOD, GOOD, GOOD)]
    raw[1]["starts"] = [[0, 2], [1, 1]]
    pq.write_table(pa.Table.from_pylist(raw, SCHEMA), path)
    found, told = read_with_errors(path)
    assert found == [GOOD, GOOD]
    assert told == [f"{path}: row 2: starts[0] is [0, 2], a hole; choose a frozen cell"]


def test_a_parquet_file_of_other_columns_is_told_row_by_row(tmp_path):
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
