"""Tables of boards show what was answered to each board, wherever files hold it and however often it was drawn."""

import json
from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.rows import board_key, read_all, write_rows
from lakewright.core_jax.support import LISTING
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.viewer.catalogue.board_table import KEY, Filters, Tile, ask_database, boards_of_file
from lakewright.experiments.viewer.catalogue.board_tables import answers_to, table_of
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind
from tests.support.boards.generated_rows import rows
from tests.support.samples.finished_run import finish


@pytest.fixture
def run(tmp_path) -> RunFolder:
    return finish(tmp_path / "run")


def tiles(run: RunFolder, part: str) -> dict[str, tuple]:
    """What is shown for each board of a part, by its id."""
    catalogue = Catalogue([run.folder])
    item = catalogue.find(Kind.RUN, "run")
    found, _ = table_of(catalogue, item, part).page(Filters())
    return {tile.row.id: (*known(tile), len(answers_to(item, part, tile))) for tile in found if tile.row}


def known(tile: Tile) -> tuple:
    return tile.success, tile.completions, tile.failure, tile.failures, tile.kept


def reorder(path: Path) -> None:
    """Writes the boards of a file in another order."""
    write_rows(path, read_all(path)[::-1])


def by_place(path: Path, boards: Path) -> None:
    """Names the boards of a file as older versions did."""
    places = {board_key(row): place for place, row in enumerate(read_all(boards))}
    lines = msgspec.json.Decoder().decode_lines(path.read_bytes())
    named = [line | {"board": places[line["board"]]} for line in lines]
    path.write_bytes(msgspec.json.Encoder().encode_lines(named))


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
def test_the_database_calls_a_board_what_everyone_calls_it(tmp_path, ending):
    path = tmp_path / f"boards{ending}"
    write_rows(path, rows())
    query, values = boards_of_file(path)
    found = ask_database(f"SELECT place, {KEY} AS key FROM ({query}) AS boards ORDER BY place", values)
    assert [one["key"] for one in found] == [board_key(row) for row in rows()]


def test_labels_that_another_tool_wrote_as_nan_are_missing(tmp_path):
    row = msgspec.to_builtins(rows()[0])
    labels = dict.fromkeys(("status", "makespan", "sum_of_costs", "wait_required", "plan"), float("nan"))
    (tmp_path / "boards.jsonl").write_text(json.dumps(row | labels) + "\n" + json.dumps(row) + "\n")
    catalogue = Catalogue([tmp_path / "boards.jsonl"])
    (item,) = catalogue.items()
    found, _ = table_of(catalogue, item, "file").page(Filters())
    assert [(tile.problem, tile.row.status if tile.row else "") for tile in found] == [("", None), ("", row["status"])]


def test_rollouts_are_shown_at_their_boards_in_any_order(run):
    stage = run.stage(1)
    expected = {"first": (0.25, 4, None, ["hole"], True, 4), "second": (1.0, 4, None, [], False, 0)}
    assert tiles(run, "stage-1") == expected
    reorder(stage.boards)
    assert tiles(run, "stage-1") == expected


def test_plans_for_held_out_boards_are_shown_at_their_boards_in_any_order(run):
    expected = {"board": (1.0, 1, "none", ["none"], True, 0), "other": (0.0, 1, "hole", ["hole"], True, 0)}
    assert tiles(run, "held-out") == expected
    reorder(run.validation)
    assert tiles(run, "held-out") == expected


def test_a_board_that_was_drawn_twice_shows_the_answers_to_both_draws_at_each(run):
    stage = run.stage(1)
    first, second = read_all(stage.boards)
    write_rows(stage.boards, [first, second, msgspec.structs.replace(first, id="again")])
    stage.groups.write_bytes(stage.groups.read_bytes() + stage.groups.read_bytes().splitlines(keepends=True)[0])
    found = tiles(run, "stage-1")
    assert found["first"] == found["again"] == (0.25, 8, None, ["hole"], True, 4)
    assert found["second"] == (1.0, 4, None, [], False, 0)


def test_folders_of_older_versions_are_shown(run):
    stage = run.stage(1)
    expected = tiles(run, "stage-1"), tiles(run, "held-out")
    for listing in run.folder.rglob(LISTING):
        listing.unlink()
    for path in (stage.groups, stage.rollouts):
        by_place(path, stage.boards)
    by_place(stage.plans, run.validation)
    assert (tiles(run, "stage-1"), tiles(run, "held-out")) == expected
    stage.plans.unlink()
    shown = {name: found[:2] for name, found in tiles(run, "held-out").items()}
    assert shown == {"board": (1.0, 1), "other": (0.0, 1)}, "a digit for each board says whether its plan is valid"
