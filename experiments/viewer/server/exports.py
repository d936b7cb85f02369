"""Boards of a table as files to download: rows, maps, scenarios and pictures."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from starlette.responses import Response

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.formats.movingai import map_text, scenario_text
from lakewright.experiments.viewer.catalogue.board_tables import table_of
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind, MissingError
from lakewright.experiments.viewer.pictures.played_plans import make_example, moving_svg, still_svg


class ExportForm(NamedTuple):
    """A form of file. ending: the end of its name. media: its media type. write: makes its content from a row."""

    ending: str
    media: str
    write: Callable[[Row], str | bytes]


def export_board(catalogue: Catalogue, kind: str, part: str, place: int, name: str, form: str) -> Response:
    """A board of a table as a file to download.

    Args:
        catalogue: What is shown.
        kind: The kind of item that has the board.
        part: The table of the item.
        place: The row of the table.
        name: The name of the item.
        form: One of FORMS.

    Raises InputError if the board or the form doesn't exist.
    """
    if form not in FORMS:
        raise InputError(f"form is {form!r:.40}; choose from {', '.join(FORMS)}")
    if kind not in list(Kind):
        raise MissingError(f"{kind!r:.40} has no boards")
    tile, _ = table_of(catalogue, catalogue.find(Kind(kind), name), part).at(place)
    if tile.row is None:
        raise InputError(f"row {place} is not a board: {tile.problem}")
    chosen = FORMS[form]
    headers = {"content-disposition": f'attachment; filename="board_{place}{chosen.ending}"'}
    return Response(chosen.write(tile.row), media_type=chosen.media, headers=headers)


def _write_moving(row: Row) -> str:
    if row.plan is None:
        raise InputError("this board has no plan to animate; export its picture")
    return moving_svg(make_example(row, row.plan))


FORMS = {
    "row": ExportForm(".jsonl", "application/jsonl", lambda row: msgspec.json.encode(row) + b"\n"),
    "map": ExportForm(".map", "text/plain", map_text),
    "scen": ExportForm(".scen", "text/plain", lambda row: scenario_text(row, "board.map")),
    "svg": ExportForm(".svg", "image/svg+xml", still_svg),
    "moving": ExportForm("_moving.svg", "image/svg+xml", _write_moving),
}
