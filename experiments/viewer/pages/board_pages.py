"""Boards in a grid with filters, and one board with its plans to be stepped through; problems in text.

The editor: a board made by clicking, answered by the solver, and by a checkpoint if one is chosen.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from markupsafe import Markup

from lakewright.core_jax.config import MAX_AGENTS, MAX_SIZE, MIN_SIZE
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, board_key
from lakewright.core_jax.types import FAILURE_NAMES, STATUS_NAMES
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Example, Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import RecordedAnswer, read_answers
from lakewright.experiments.viewer.catalogue.board_table import PAGE, VERDICTS, Filters, Tile
from lakewright.experiments.viewer.catalogue.board_tables import answers_to, policies_of, table_of
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Item, Kind
from lakewright.experiments.viewer.catalogue.problem_table import ProblemFilters, read_problem_table
from lakewright.experiments.viewer.catalogue.run_space import LAKE, find_space
from lakewright.experiments.viewer.pages.rendering import (
    LONGEST,
    Crumb,
    Page,
    asked_for,
    mark_svg,
    name_policy,
    query_for,
)
from lakewright.experiments.viewer.pictures.board_art import MOST_SIDE, fits_picture
from lakewright.experiments.viewer.pictures.played_plans import draw_played, make_example, still_svg
from lakewright.policy.models import PRETRAINED

Query = Mapping[str, list[str]]
SITE_PAGES = 4  # of each list of boards that a static site holds
GIVEN = "The plan that was given"


def boards_page(item: Item, catalogue: Catalogue, query: Query, part: str) -> Page:
    """A page of boards. Raises InputError if a filter is invalid, or the file cannot be read.

    Args:
        item: the item that has the boards.
        catalogue: all items that the viewer shows.
        query: the filters.
        part: see `table_of`.
    """
    filters = asked_for(Filters, query)
    table = table_of(catalogue, item, part, filters.policy)
    tiles, more = table.page(filters)
    values = {
        "table": table,
        "filters": filters,
        "asked": query_for(msgspec.structs.replace(filters, page=0)),
        "address": f"boards/{item.kind}/{part}/{item.name}",
        "board": f"board/{item.kind}/{part}",
        "item": item,
        "tiles": [(tile, _draw_still(tile.row)) for tile in tiles],
        "export": f"export/{item.kind}/{part}",
        "most_side": MOST_SIDE,
        "count": table.count(filters),
        "more": more,
        "of_site": SITE_PAGES * PAGE,
        "first": filters.page * PAGE,
        "policies": list(policies_of(RunFolder(item.path))) if part == "held-out" else [],
        "verdicts": [name for name in VERDICTS if table.several or name != "mixed"],
        "statuses": STATUS_NAMES,
        "failures": FAILURE_NAMES[1:],
    }
    title = item.name if item.name.endswith(table.title) else f"{table.title}: {item.name}"
    return Page(title, "boards.html", values, _make_crumbs(item, part))


def board_page(item: Item, catalogue: Catalogue, part: str, place: str) -> Page:
    """One board: its labels, the certified plan, and the plan that was given for it.

    Args:
        item: the item that has the board.
        catalogue: all items that the viewer shows.
        part: see `table_of`.
        place: the board's place in the table.

    Raises InputError if the board doesn't exist, or the file cannot be read.
    """
    table = table_of(catalogue, item, part)
    tile, more = table.at(int(place))
    drawn = tile.row is not None and fits_picture(tile.row.size)
    values = {
        "tile": tile,
        "place": int(place),
        "more": more,
        "item": item,
        "board": f"board/{item.kind}/{part}",
        "export": f"export/{item.kind}/{part}/{int(place)}/{item.name}",
        "drawn": drawn,
        "most_side": MOST_SIDE,
        "players": players_of(item, part, tile) if drawn else [],
        "row_text": msgspec.json.encode(tile.row).decode() if tile.row and drawn else "",
        "bare": strip_labels(tile.row) if tile.row and drawn else "",
        "still": _draw_still(tile.row),
        "checkpoints": _over_checkpoints(item, tile) if part == "held-out" else [],
        "asking": checkpoints_of(item) if item.kind is Kind.RUN and drawn else [],
    }
    crumbs = [*_make_crumbs(item, part), Crumb(f"board {int(place)}", "")]
    return Page(f"Board {int(place)} of {item.name}", "board.html", values, crumbs)


def _draw_still(row: Row | None) -> Markup | None:
    """The picture of a board; None if it is too large, or not a board."""
    return mark_svg(still_svg(row)) if row and fits_picture(row.size) else None


def players_of(item: Item, part: str, tile: Tile) -> list[dict[str, Any]]:
    """The plans that were given, and before them the certified one."""
    row = tile.row
    assert row
    found = [("The certified plan", make_example(row, row.plan))] if row.plan else []
    answers = answers_to(item, part, tile)
    titles = [f"Plan {n} of {len(answers)}" for n in range(1, len(answers) + 1)] if len(answers) > 1 else [GIVEN]
    found += [(title, _make_given(row, answer)) for title, answer in zip(titles, answers, strict=False)]
    return [{"title": title, "played": draw_played(example)} for title, example in found]


def _make_given(row: Row, answer: RecordedAnswer) -> Example:
    return make_example(row, answer.plan[: row.agents], answer.failure, answer.agent, answer.step)


def strip_labels(row: Row) -> str:
    """A board without its labels, as the editor takes it."""
    return msgspec.json.encode({"grid": row.grid, "starts": row.starts, "goals": row.goals}).decode()


def checkpoints_of(item: Item) -> list[tuple[str, str]]:
    """The checkpoints of a run that know boards, by address part and name."""
    folder = RunFolder(item.path)
    if folder.settings().environment != LAKE:
        return []
    parts = [("warmup", folder.warmup), *((f"stage-{n}", folder.stage(n)) for n in range(folder.settings().stages))]
    best = folder.find_best()
    return [
        (name, name_policy(name) + " (best)" * (best is not None and stage.folder == best.folder))
        for name, stage in parts
        if stage.checkpoint.exists()
    ]


def _over_checkpoints(item: Item, tile: Tile) -> list[dict[str, Any]]:
    """For every policy of the run whether its plan for this held-out board is valid, and the plan if it was saved."""
    found = []
    for name, stage in policies_of(RunFolder(item.path)).items():
        given = _find_greedy(stage, tile)
        valid = given.failure == "none" if given else _read_digit(stage, tile.place)
        found.append(
            {
                "name": name_policy(name),
                "valid": valid,
                "played": draw_played(given) if given and fits_picture(given.row.size) else None,
            }
        )
    return found


def _find_greedy(stage: Stage, tile: Tile) -> Example | None:
    """The plan of a policy for a held-out board, if it was saved; older versions saved some."""
    if not tile.row:
        return None
    kept = [_make_given(tile.row, answer) for answer in read_answers(stage.plans, tile.row, tile.place)]
    key, examples = board_key(tile.row), read_record(stage.validation, Validation).examples
    return next((example for example in [*kept, *examples] if board_key(example.row) == key), None)


def _read_digit(stage: Stage, place: int) -> bool | None:
    """The verdict on a policy's plan for a held-out board, from folders of versions that saved no plans."""
    return {"1": True, "0": False}.get(read_record(stage.validation, Validation).valid[place : place + 1])


def _make_crumbs(item: Item, part: str) -> list[Crumb]:
    here = Crumb(part.replace("-", " "), f"boards/{item.kind}/{part}/{item.name}")
    if item.kind is Kind.BOARDS:
        return [Crumb("All", ""), Crumb(item.name, here.address)]
    return [Crumb("All", ""), Crumb(item.name, f"{item.kind}/{item.name}"), here]


def problems_page(item: Item, query: Query, part: str) -> Page:
    """A page of problems. Raises InputError if a filter is invalid, the run has boards, or a file is damaged.

    Args:
        item: the run.
        query: the filters.
        part: `held-out` or `stage-N`.
    """
    filters, folder = asked_for(ProblemFilters, query), RunFolder(item.path)
    about = find_space(folder, folder.settings())
    if about.lake:
        raise InputError(f"{item.name}: has boards, and no problems in text; look at boards/run/{part}/{item.name}")
    table = read_problem_table(folder, item.name, part, filters.policy)
    shown, count = table.page(filters)
    values = {
        "about": about,
        "words": about.space.words,
        "table": table,
        "filters": filters,
        "asked": query_for(msgspec.structs.replace(filters, page=0)),
        "address": f"problems/{part}/{item.name}",
        "item": item,
        "shown": [(one, about.describe_cell(one.problem.cell)) for one in shown],
        "count": count,
        "first": filters.page * PAGE,
        "more": (filters.page + 1) * PAGE < count,
        "of_site": SITE_PAGES * PAGE,
        "verdicts": list(VERDICTS),
        "strata": about.space.sort_strata({one.problem.cell.stratum for one in table.problems}),
    }
    crumbs = [Crumb("All", ""), Crumb(item.name, f"run/{item.name}"), Crumb(part.replace("-", " "), "")]
    return Page(f"{table.title}: {item.name}", "problems.html", values, crumbs)


FIRST = '{"grid":["..H..",".HH..",".....","..HH.","....."],"starts":[[0,0],[2,4]],"goals":[[4,4],[2,0]]}'


class EditedBoard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board as the editor sends it."""

    grid: list[str]
    starts: list[tuple[int, int]]
    goals: list[tuple[int, int]]


def editor_page(catalogue: Catalogue, query: Mapping[str, list[str]]) -> Page:
    """The editor with the board of the address. Raises InputError if it isn't a board."""
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
