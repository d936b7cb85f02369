"""The pages by their addresses: one table for the server and for the static site."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind, MissingError
from lakewright.experiments.viewer.pages.board_pages import board_page, boards_page, editor_page, problems_page
from lakewright.experiments.viewer.pages.cards import index_page
from lakewright.experiments.viewer.pages.compare_page import compare_page
from lakewright.experiments.viewer.pages.engineer_page import engineer_page
from lakewright.experiments.viewer.pages.folder_pages import benchmark_page, evaluation_page
from lakewright.experiments.viewer.pages.rendering import Page
from lakewright.experiments.viewer.pages.run_page import run_page
from lakewright.experiments.viewer.pages.stage_page import stage_page
from lakewright.experiments.viewer.pages.study_page import study_page
from lakewright.experiments.viewer.pages.sweep_page import sweep_page

Query = Mapping[str, list[str]]
Route = tuple[re.Pattern[str], Callable[..., Page]]


def page_for(catalogue: Catalogue, address: str, query: Query) -> Page:
    """The page at an address such as `run/demo`. Raises MissingError if it doesn't exist."""
    for pattern, make in ROUTES:
        if found := pattern.fullmatch(address):
            return make(catalogue, query, **found.groupdict())
    raise MissingError(f"{address!r:.80} is not a page of this viewer; return to the index")


def _of_item(kind: Kind | None, make: Callable[..., Page], *needed: str) -> Callable[..., Page]:
    """A page of an item, which is looked up by its name.

    Args:
        kind: the kind of the item; None for pages of boards, whose address names it.
        make: makes the page of an item and the parts of its address.
        needed: further arguments of `make`: `catalogue`, `query`.
    """

    def make_page(catalogue: Catalogue, query: Query, name: str, **parts: Any) -> Page:
        item = catalogue.find(kind or Kind(parts.pop("kind")), name)
        further: dict[str, Any] = {"catalogue": catalogue, "query": query}
        return make(item, **{argument: further[argument] for argument in needed}, **parts)

    return make_page


ROUTES: list[Route] = [
    (re.compile(r""), index_page),
    (re.compile(r"compare"), compare_page),
    (re.compile(r"editor"), editor_page),
    (re.compile(r"stage/(?P<number>\d{1,3}|warm-up)/(?P<name>.+)"), _of_item(Kind.RUN, stage_page)),
    (re.compile(r"problems/(?P<part>[a-z0-9-]+)/(?P<name>.+)"), _of_item(Kind.RUN, problems_page, "query")),
    (re.compile(r"run/(?P<name>.+)"), _of_item(Kind.RUN, run_page)),
    (re.compile(r"study/(?P<name>.+)"), _of_item(Kind.STUDY, study_page, "catalogue")),
    (re.compile(r"engineer/(?P<name>.+)"), _of_item(Kind.ENGINEER, engineer_page)),
    (re.compile(r"sweep/(?P<name>.+)"), _of_item(Kind.SWEEP, sweep_page, "query")),
    (re.compile(r"evaluation/(?P<name>.+)"), _of_item(Kind.EVALUATION, evaluation_page)),
    (re.compile(r"benchmark/(?P<name>.+)"), _of_item(Kind.BENCHMARK, benchmark_page)),
    (
        re.compile(r"boards/(?P<kind>run|evaluation|benchmark|boards)/(?P<part>[a-z0-9-]+)/(?P<name>.+)"),
        _of_item(None, boards_page, "catalogue", "query"),
    ),
    (
        re.compile(
            r"board/(?P<kind>run|evaluation|benchmark|boards)/(?P<part>[a-z0-9-]+)/(?P<place>\d{1,15})/(?P<name>.+)"
        ),
        _of_item(None, board_page, "catalogue"),
    ),
]
