"""Files of rows that other tools have written: whole numbers as floats, an index as a column, NaN for null."""

import json
import math

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import (
    SCHEMA,
    PlanRow,
    Row,
    columns_of,
    read_all,
    read_all_as,
    read_chunks,
    read_columns,
    read_ids,
    read_rows,
    write_rows,
)
from lakewright.core_jax.support import read_config
from tests.support.boards.generated_rows import small_rows
from tests.support.refusals import refused

WHOLE = ("size", "agents", "makespan", "sum_of_costs")
BARE = Row("bare", 2, 1, ["..", ".."], [(0, 0)], [(1, 1)])


@pytest.fixture(scope="module")
def rows():
    """Labelled rows, and one without labels, which makes columns of pandas floats."""
    return [*small_rows(), BARE]


def read(path) -> list[Row]:
    """The rows of a file, and none refused, read by columns and one by one."""
    refused: list[InputError] = []
    columns = [read_columns(chunk, lambda _, error: refused.append(error)) for chunk in read_chunks(path)]
    found = read_all(path)
    assert refused == []
    assert pa.concat_batches(columns).equals(columns_of(found, SCHEMA))
    return found


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table,
        lambda table: table[table["id"] != "nothing"].sample(frac=1, random_state=0).sort_index(),
        lambda table: table.reset_index(),
        lambda table: table.reset_index().reset_index(),
        lambda table: table.rename_axis("", axis=0).reset_index(),
        lambda table: table.astype(dict.fromkeys(WHOLE, float)),
        lambda table: table.convert_dtypes(),
        lambda table: table.drop(columns=["makespan_plan"]),
    ],
    ids=["as it comes", "filtered", "index", "two indexes", "unnamed", "floats", "its own types", "without a column"],
)
def test_rows_that_went_through_pandas_are_read(rows, tmp_path, ending, change):
    path, there = tmp_path / f"there{ending}", tmp_path / f"rows{ending}"
    write_rows(there, rows)
    table = change(pd.read_parquet(there) if ending == ".parquet" else pd.read_json(there, lines=True))
    if ending == ".parquet":
        table.to_parquet(path, index=True)
        assert pq.read_schema(path).names != SCHEMA.names or ending == ".jsonl"
    else:
        table.to_json(path, orient="records", lines=True)
    assert read(path) == rows


def test_rows_of_pythons_json_with_nan_and_floats_are_read(rows, tmp_path):
    path = tmp_path / "rows.jsonl"
    records = [
        {
            "Unnamed: 0": place,
            **{name: math.nan if value is None else value for name, value in msgspec.to_builtins(row).items()},
            **{name: float(getattr(row, name)) for name in WHOLE if getattr(row, name) is not None},
            "starts": [[float(line), float(column)] for line, column in row.starts],
        }
        for place, row in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert "NaN" in path.read_text()
    assert read(path) == rows
    assert list(read_ids(path)) == [row.id for row in rows]


def test_decimals_of_databases_are_whole_numbers(rows, tmp_path):
    table = pa.Table.from_batches([columns_of(rows, SCHEMA)])
    for name in WHOLE:
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.decimal128(38, 0)))
    pq.write_table(table, tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet") == rows
    odd = table.set_column(1, "size", pa.array([2.5] * len(rows)).cast(pa.decimal128(9, 1)))
    pq.write_table(odd, tmp_path / "odd.parquet")
    with refused("row 1: size: Decimal('2.5')"):
        read_all(tmp_path / "odd.parquet")


def test_nested_floats_of_parquet_are_whole_numbers(rows, tmp_path):
    path, cells = tmp_path / "rows.parquet", pa.list_(pa.list_(pa.float64()))
    table = pa.Table.from_batches([columns_of(rows, SCHEMA)])
    for name in ("starts", "goals"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(cells))
    pq.write_table(table, path)
    assert read(path) == rows


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
def test_of_numbers_that_are_not_whole_only_their_rows_are_refused(rows, tmp_path, ending):
    path = tmp_path / f"rows{ending}"
    records = [msgspec.to_builtins(row) for row in rows]
    wrong = {3: ("makespan", 7.5), 7: ("size", math.nan), 11: ("sum_of_costs", 1e300), 15: ("agents", -2.0)}
    for place, (name, value) in wrong.items():
        records[place][name] = value
    for record in records:
        record |= {name: float(record[name]) for name in WHOLE if record[name] is not None}
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    errors: list[InputError] = []
    found = [row for chunk in read_rows(path, Row, errors.append) for row in chunk]
    assert found == [row for place, row in enumerate(rows) if place not in wrong]
    assert len(errors) == len(wrong)
    for error, (place, (name, _)) in zip(errors, wrong.items(), strict=True):
        assert f"{place + 1}: {name}" in str(error).replace("row ", "")


def test_plans_that_went_through_pandas_are_read(rows, tmp_path):
    path = tmp_path / "plans.parquet"
    table = pd.DataFrame({"id": [row.id for row in rows[:-1]], "plan": [row.plan for row in rows[:-1]]})
    table[table["id"] != rows[0].id].to_parquet(path)
    assert read_all_as(PlanRow, path) == [PlanRow(row.id, row.plan) for row in rows[1:-1]]


@pytest.mark.parametrize("name", ["index2", "_index_level_0__", "Unnamed", "makespan_"])
def test_columns_that_are_no_index_are_refused(tmp_path, name):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**msgspec.to_builtins(BARE), name: 1}) + "\n")
    with refused(f"rows.jsonl:1: unknown field '{name}' = 1"):
        read_all(path)


def test_a_config_in_json_may_have_whole_numbers_as_floats(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"agents": 2.0, "sizes": {"4": {"data_ratio": 1, "hole_ratio": 0.2, "wait_ratio": 0.0}}}')
    assert read_config(path, EnvConfig) == EnvConfig.single(4, 2, 0.2, 0.0)
    path.write_text(path.read_text().replace("2.0", "2.5"))
    with refused("config.json: agents: 2.5", "`int`"):
        read_config(path, EnvConfig)
