"""The cells of a sweep, summed up from its shards, and their pictures."""

import functools
import struct
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.experiments.boards.sweep import SweepFolder, SweepSpec
from lakewright.experiments.boards.sweep.cells import (
    LEVELS,
    QUANTITIES,
    CellSummary,
    find_quantiles,
    make_rate,
    summarize_sweep,
)
from lakewright.experiments.viewer.charts.sweep_plots import measure_area
from tests.support.processes.commands import assert_refused, elsewhere, lakewright
from tests.support.samples.tiny_sweep import SPEC, make

FREE = SweepSpec(sizes=(3, 5), agents=(2,), hole_ratios=(0.0, 0.3, 0.6), boards=600, shard=400)
STRATA = SweepSpec(sizes=(3,), agents=(2,), hole_ratios=(0.0, 0.2), wait_ratios=(0.5,), boards=40, shard=20)
EVENTS_IN_PYTHON = {
    "connected": lambda row: row["cost_bound"] is not None,
    "solvable": lambda row: row["status"] == "solvable",
    "solvable_if_connected": lambda row: row["status"] == "solvable" if row["cost_bound"] is not None else None,
    "wait_required": lambda row: row["wait_required"],
    "shortest_paths_suffice": lambda row: row["cost_gap"] == 0 if row["cost_gap"] is not None else None,
    "vertex_conflict": lambda row: row["vertex_conflicts"] > 0 if row["vertex_conflicts"] is not None else None,
    "bound_certificate": lambda row: row["certificate"] == "bound",
}


def bytes_of_pixels(png: Path) -> set[int]:
    """The different bytes in the data of a picture, which has a single stream."""
    data, place, packed = png.read_bytes(), 8, b""
    while place < len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        packed += data[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += 12 + length
    return set(zlib.decompress(packed))


@functools.cache
def made(spec: SweepSpec) -> Path:
    """The folder of a sweep, with its cells and pictures."""
    folder = elsewhere() / f"sweep-{len(spec.hole_ratios)}-{spec.wait_ratios}"
    make(spec, folder)
    from lakewright.experiments.viewer.charts.sweep_plots import plot

    plot(folder)
    return folder


def cells_of(folder: Path) -> list[CellSummary]:
    return msgspec.json.decode((folder / "cells.json").read_bytes(), type=list[CellSummary])


def boards_of(folder: Path, cell: str) -> list[dict]:
    """All rows of a cell, in plain Python."""
    return [row for file in (folder / "shards").glob(f"{cell}_*.parquet") for row in pq.read_table(file).to_pylist()]


@pytest.mark.deep
def test_a_cell_counts_what_is_in_its_shards():
    folder = made(FREE)
    assert [cell.cell for cell in cells_of(folder)] == [cell.name for cell in FREE.cells()]
    for cell in cells_of(folder):
        rows = boards_of(folder, cell.cell)
        assert cell.boards == len(rows) == 600
        for name, event in EVENTS_IN_PYTHON.items():
            seen = [happens for row in rows if (happens := event(row)) is not None]
            found = cell.rates[name]
            assert (found.count, found.of) == (sum(seen), len(seen)), f"{name} of {cell.cell}"
            assert found.rate is None or found.low <= found.rate <= found.high, f"{name} of {cell.cell}"
        for name in QUANTITIES:
            values = [row[name] for row in rows if row[name] is not None]
            if not values:
                assert name not in cell.quantities, f"{name} of {cell.cell}"
                continue
            found = cell.quantities[name]
            assert (found.of, found.largest) == (len(values), max(values)), f"{name} of {cell.cell}"
            assert found.mean == pytest.approx(np.mean(values)), f"{name} of {cell.cell}"
            assert found.quantiles == tuple(np.quantile(values, LEVELS, method="inverted_cdf")), name


def test_cells_are_the_same_as_parquet_and_the_values_add_up():
    folder = made(FREE)
    table = pq.read_table(folder / "cells.parquet")
    for row, cell in zip(table.to_pylist(), cells_of(folder), strict=True):
        assert (row["cell"], row["boards"], row["wait_ratio"]) == (cell.cell, cell.boards, None)
        assert (row["solvable"], row["solvable_low"]) == (cell.rates["solvable"].rate, cell.rates["solvable"].low)
        if "makespan" in cell.quantities:
            assert row["makespan_q95"] == cell.quantities["makespan"].quantiles[-1]
    values = pq.read_table(folder / "values.parquet")
    sums = values.group_by(["cell", "statistic"]).aggregate([("boards", "sum")]).to_pylist()
    expected = {(c.cell, name): spread.of for c in cells_of(folder) for name, spread in c.quantities.items()}
    assert {(row["cell"], row["statistic"]): row["boards_sum"] for row in sums} == expected


def test_without_boards_nothing_is_known_of_a_share():
    assert (make_rate(0, 0).rate, make_rate(0, 0).low, make_rate(0, 0).high) == (None, 0.0, 1.0)


@given(st.lists(st.integers(-3, 3), min_size=1))
def test_quantiles_of_counts_are_those_of_the_values(values):
    levels, counts = np.unique(values, return_counts=True)
    assert find_quantiles(levels, counts) == tuple(np.quantile(values, LEVELS, method="inverted_cdf"))


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2))
def test_the_area_is_the_chance_that_a_waiting_board_has_more(boards):
    waiting, others = ([value for value, wait in boards if wait == kind] for kind in (True, False))
    if not (waiting and others):
        return
    rows = [{"cell": "a", "statistic": "s", "value": float(v), "wait_required": w, "boards": 1} for v, w in boards]
    expected = np.mean([(one > other) + (one == other) / 2 for one in waiting for other in others])
    assert measure_area(pa.Table.from_pylist(rows), "a", "s") == pytest.approx(expected)


def test_strata_report_their_acceptance():
    for cell in cells_of(made(STRATA)):
        assert cell.rates["solvable"].rate == 1
        assert cell.rates["wait_required"].rate == 0.5
        assert cell.acceptance is not None
        assert 0 < cell.acceptance <= 1
    assert all(cell.acceptance is None for cell in cells_of(made(FREE)))


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (FREE, {"solvable", "blocked", "waits", "gaps", "open", "optima", "predictors"}),
        (STRATA, {"acceptance", "gaps", "open", "optima"}),
    ],
    ids=["free draws", "strata"],
)
def test_pictures_are_drawn_as_svg_and_png(spec, names):
    files = list((made(spec) / "plots").iterdir())
    assert {file.stem for file in files} == names
    for file in files:
        if file.suffix == ".png":
            assert len(bytes_of_pixels(file)) > 50, f"{file} is blank"
        else:
            texts = [element.text or "" for element in ET.parse(file).iter("{http://www.w3.org/2000/svg}text")]
            assert any("hole ratio" in text for text in texts), f"{file} names no axis"


def test_the_command_sums_up_what_is_finished_so_far(tmp_path, capsys):
    make(SPEC, tmp_path / "sweep", at_most=2)
    code, out, _ = lakewright(capsys, "sweep", "plot", tmp_path / "sweep", "--json")
    assert code == 0
    (cell,) = cells_of(tmp_path / "sweep")
    assert (cell.boards, msgspec.json.decode(out)["cells"]) == (64, str(tmp_path / "sweep" / "cells.json"))


def test_columns_that_were_not_wanted_are_not_summed_up(tmp_path):
    spec = msgspec.structs.replace(SPEC, columns=("status", "cost_bound"))
    make(spec, tmp_path / "sweep", at_most=1)
    (cell,) = summarize_sweep(SweepFolder(tmp_path / "sweep"))
    assert set(cell.quantities) == {"cost_bound"}
    assert set(cell.rates) == {"connected", "solvable", "undecided", "solvable_if_connected"}


def test_a_folder_without_a_sweep_without_shards_or_with_a_damaged_one_is_reported(tmp_path, capsys):
    assert_refused(capsys, ("sweep", "plot", tmp_path / "none"), "holds no sweep")
    make(SPEC, tmp_path / "sweep", at_most=1)
    (shard,) = (tmp_path / "sweep" / "shards").glob("*.parquet")
    shard.write_bytes(shard.read_bytes()[:-20])
    assert_refused(capsys, ("sweep", "plot", tmp_path / "sweep"), str(tmp_path), shard.name, "remove both files")
    shard.unlink()
    assert_refused(capsys, ("sweep", "plot", tmp_path / "sweep"), "no shard is finished yet; run the sweep first")
