"""The editor: a board made by clicking, answered by the real solver, and by a checkpoint if one is chosen."""

from collections.abc import Mapping

import msgspec

from lakewright.core_jax.config import MAX_AGENTS, MAX_SIZE, MIN_SIZE
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind
from lakewright.experiments.viewer.pages.board_pages import checkpoints_of
from lakewright.experiments.viewer.pages.rendering import LONGEST, Crumb, Page
from lakewright.policy.models import PRETRAINED

FIRST = '{"grid":["..H..",".HH..",".....","..HH.","....."],"starts":[[0,0],[2,4]],"goals":[[4,4],[2,0]]}'


class EditedBoard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board as the editor sends it."""

    grid: list[str]
    starts: list[tuple[int, int]]
    goals: list[tuple[int, int]]


def editor_page(catalogue: Catalogue, query: Mapping[str, list[str]]) -> Page:
    """The editor with the board of the address. Raises InputError if it is not a board."""
    text = query.get("board", [FIRST])[-1]
    read_drawn_row(text)
    runs = [item for item in catalogue.items() if item.kind is Kind.RUN]
    values = {"board_text": text, "sizes": range(MIN_SIZE, MAX_SIZE + 1), "teams": range(1, MAX_AGENTS + 1)}
    values |= {"checkpoints": _list_checkpoints(runs)}
    return Page("Board editor", "editor.html", values, [Crumb("All", ""), Crumb("editor", "editor")])


def read_drawn_row(text: str) -> Row:
    """The row of a board in an address. Raises InputError naming what is wrong with it."""
    if len(text) > LONGEST:
        raise InputError(f"board: is longer than {LONGEST} letters; draw a smaller one")
    try:
        found = msgspec.json.decode(text, type=EditedBoard)
        return Row("drawn", len(found.grid), len(found.starts), found.grid, found.starts, found.goals)
    except (ValueError, RecursionError) as error:
        raise InputError(f"board: {error}") from error


def _list_checkpoints(runs: list) -> list[tuple[str, str]]:
    """The checkpoints that may be asked, with labels: the policy of the package, and the runs' own."""
    found = [(PRETRAINED, PRETRAINED)]
    for item in runs:
        try:
            found += [(f"{part}/{item.name}", f"{item.name}, {name}") for part, name in checkpoints_of(item)]
        except InputError:  # a run of another version: its page says so
            continue
    return found
