"""A board as a file: its row, a MovingAI map and scenario, a picture, or a picture that moves."""

import msgspec
from starlette.responses import Response

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.formats.movingai import map_text, scenario_text
from lakewright.experiments.viewer.catalogue.board_tables import table_of
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind, MissingError
from lakewright.experiments.viewer.pictures.played_plans import moving_svg, still_svg
from lakewright.experiments.viewer.pictures.replay import make_example

FORMS = {
    "row": (".jsonl", "application/jsonl"),
    "map": (".map", "text/plain"),
    "scen": (".scen", "text/plain"),
    "svg": (".svg", "image/svg+xml"),
    "moving": ("_write_moving.svg", "image/svg+xml"),
}


def export_board(catalogue: Catalogue, kind: str, part: str, place: int, name: str, form: str) -> Response:
    """A board of a table as a file to download.

    Args:
        catalogue: What is shown.
        kind: The kind of item that has the board.
        part: The table of the item.
        place: The row of the table.
        name: The name of the item.
        form: One of FORMS.

    Raises InputError if the board or the form does not exist.
    """
    if form not in FORMS:
        raise InputError(f"form is {form!r:.40}; choose from {', '.join(FORMS)}")
    if kind not in list(Kind):
        raise MissingError(f"{kind!r:.40} has no boards")
    tile, _ = table_of(catalogue, catalogue.find(Kind(kind), name), part).at(place)
    if tile.row is None:
        raise InputError(f"row {place} is not a board: {tile.problem}")
    ending, media = FORMS[form]
    headers = {"content-disposition": f'attachment; filename="board_{place}{ending}"'}
    return Response(_WRITERS[form](tile.row), media_type=media, headers=headers)


def _write_moving(row: Row) -> str:
    if row.plan is None:
        raise InputError("this board has no plan that could move; export its picture")
    return moving_svg(make_example(row, row.plan))


_WRITERS = {
    "row": lambda row: msgspec.json.encode(row) + b"\n",
    "map": map_text,
    "scen": lambda row: scenario_text(row, "board.map"),
    "svg": still_svg,
    "moving": _write_moving,
}
