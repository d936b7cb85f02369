"""Boards in a grid with filters, and one board with its plans to be stepped through."""

from collections.abc import Mapping
from typing import Any

import msgspec

from core_jax.rows import Row
from core_jax.types import FAILURE_NAMES, STATUS_NAMES
from experiments.loop.records import Example, RunFolder, Validation, read
from experiments.view.catalogue import PAGE, Catalogue, Filters, Item, Kind, Tile, table_of
from experiments.view.pictures import played, still_svg
from experiments.view.templating import Crumb, Page, asked_for, picture, plain

Query = Mapping[str, list[str]]


def boards_page(catalogue: Catalogue, item: Item, query: Query, part: str) -> Page:
    """A page of boards. Raises InputError where a filter is none, or the file cannot be read."""
    filters = asked_for(Filters, query)
    table = table_of(catalogue, item, part)
    tiles, more = table.page(filters)
    values = {
        "table": table,
        "filters": filters,
        "asked": plain(msgspec.structs.replace(filters, page=0)),
        "address": f"boards/{item.kind}/{part}/{item.name}",
        "board": f"board/{item.kind}/{part}",
        "item": item,
        "tiles": [(tile, picture(still_svg(tile.row)) if tile.row else None) for tile in tiles],
        "count": table.count(filters),
        "more": more,
        "first": filters.page * PAGE,
        "statuses": STATUS_NAMES,
        "failures": FAILURE_NAMES[1:],
    }
    return Page(f"{table.title}: {item.name}", "boards.html", values, _crumbs(item, part))


def board_page(catalogue: Catalogue, item: Item, query: Query, part: str, place: str) -> Page:
    """One board: its labels, the certified plan, and the plan that was given for it. Raises InputError."""
    table = table_of(catalogue, item, part)
    tile = table.at(int(place))
    values = {
        "tile": tile,
        "place": int(place),
        "item": item,
        "board": f"board/{item.kind}/{part}",
        "export": f"export/{item.kind}/{part}/{int(place)}/{item.name}",
        "players": players_of(tile) if tile.row else [],
        "row_text": msgspec.json.encode(tile.row).decode() if tile.row else "",
        "bare": bare(tile.row) if tile.row else "",
        "still": picture(still_svg(tile.row)) if tile.row else None,
        "checkpoints": _over_checkpoints(item, int(place), tile.row) if part == "held-out" else [],
        "asking": checkpoints_of(item) if item.kind is Kind.RUN else [],
    }
    crumbs = [*_crumbs(item, part), Crumb(f"board {int(place)}", "")]
    return Page(f"Board {int(place)} of {item.name}", "board.html", values, crumbs)


def players_of(tile: Tile) -> list[dict[str, Any]]:
    """The plan that was given, and beside it the certified one."""
    row, found = tile.row, []
    assert row
    if tile.answer and tile.failure is not None:
        given = Example(row, tile.answer[: row.agents], tile.failure, tile.agent or 0, tile.step or 0)
        found.append({"title": "The plan that was answered", "played": played(given)})
    if row.plan:
        found.append({"title": "The certified plan", "played": played(Example(row, row.plan, "none", -1, -1))})
    return found


def bare(row: Row) -> str:
    """A board without its labels, as the editor takes it."""
    return msgspec.json.encode({"grid": row.grid, "starts": row.starts, "goals": row.goals}).decode()


def checkpoints_of(item: Item) -> list[tuple[str, str]]:
    """The checkpoints of a run, by address part and name."""
    folder = RunFolder(item.path)
    parts = [("warmup", folder.warmup), *((f"stage-{n}", folder.stage(n)) for n in range(folder.settings().stages))]
    return [(name, name.replace("-", " ")) for name, stage in parts if stage.checkpoint.exists()]


def _over_checkpoints(item: Item, place: int, held_out: Row | None) -> list[dict[str, Any]]:
    """For every policy of the run whether its plan for this held-out board is valid, and the plan where it was kept."""
    folder, found = RunFolder(item.path), []
    parts = [("warm-up", folder.warmup), *((f"stage {n}", folder.stage(n)) for n in range(folder.settings().stages))]
    for name, stage in parts:
        if stage.validation.exists():
            seen = read(stage.validation, Validation)
            valid = seen.valid[place : place + 1]
            plans = [example for example in seen.examples if held_out and example.row.id == held_out.id]
            player = played(plans[0]) if plans else None
            found.append({"name": name, "valid": valid == "1" if valid else None, "played": player})
    return found


def _crumbs(item: Item, part: str) -> list[Crumb]:
    here = Crumb(part.replace("-", " "), f"boards/{item.kind}/{part}/{item.name}")
    if item.kind is Kind.BOARDS:
        return [Crumb("All", ""), Crumb(item.name, here.address)]
    return [Crumb("All", ""), Crumb(item.name, f"{item.kind}/{item.name}"), here]
