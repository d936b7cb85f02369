"""The problems in text of a run, with filters, and what was answered to each."""

from collections.abc import Mapping

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.view.catalogue.board_table import PAGE, VERDICTS
from lakewright.experiments.view.catalogue.discovery import Catalogue, Item
from lakewright.experiments.view.catalogue.problem_table import AnsweredProblem, ProblemFilters, read_problem_table
from lakewright.experiments.view.catalogue.run_space import RunSpace, find_space
from lakewright.experiments.view.pages.board_pages import SITE_PAGES
from lakewright.experiments.view.pages.rendering import Crumb, Page, asked_for, query_for


def problems_page(catalogue: Catalogue, item: Item, query: Mapping[str, list[str]], part: str) -> Page:
    """A page of problems. Raises InputError if a filter is invalid, the run has boards, or a file is damaged.

    catalogue: of all items, unused. item: the run. query: the filters. part: `held-out` or `stage-N`.
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
        "shown": [(one, _name_cell(one, about)) for one in shown],
        "count": count,
        "first": filters.page * PAGE,
        "more": (filters.page + 1) * PAGE < count,
        "of_site": SITE_PAGES * PAGE,
        "verdicts": list(VERDICTS),
        "strata": about.space.sort_strata({one.problem.cell.stratum for one in table.problems}),
    }
    crumbs = [Crumb("All", ""), Crumb(item.name, f"run/{item.name}"), Crumb(part.replace("-", " "), "")]
    return Page(f"{table.title}: {item.name}", "problems.html", values, crumbs)


def _name_cell(found: AnsweredProblem, about: RunSpace) -> str:
    return about.describe_cell(found.problem.cell)
