"""The viewer's pages as files: a static site to publish anywhere, or a run's report as one file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import refuse_file, write_atomically
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.viewer.catalogue.discovery import Catalogue
from lakewright.experiments.viewer.pages.board_pages import SITE_PAGES
from lakewright.experiments.viewer.pages.rendering import Page, render_page, static_files
from lakewright.experiments.viewer.pages.routes import page_for
from lakewright.experiments.viewer.pages.run_page import report_page

MARK = ".lakewright-site"
DYNAMIC = ("compare", "editor", "api/", "export/")  # what needs the server


def write_site(paths: Sequence[Path], out: Path) -> int:
    """Writes the pages of the items under `paths` into `out`, and gives their number.

    Raises InputError if a path is not there, or `out` holds something else.
    """
    refuse_file(out)
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise InputError(f"{out}: is not empty and holds no site; choose another --out")
    catalogue = Catalogue(paths)
    write_atomically(out / MARK, b"")
    for name, data in static_files().items():
        write_atomically(out / "static" / name, data)
    done: set[PageAddress] = set()
    waiting = [PageAddress("", 0)]
    while waiting:
        place = waiting.pop()
        if place not in done:
            done.add(place)
            links = _Links(place)
            write_atomically(out / place.file, _write_page(catalogue, place, links).encode())
            waiting += links.followed
    return len(done)


class PageAddress(NamedTuple):
    """An address of the viewer, and of a list of boards which page of it."""

    address: str
    page: int

    @property
    def folder(self) -> str:
        """The folder of the page in the site."""
        return f"{self.address}/page-{self.page}" if self.page else self.address

    @property
    def file(self) -> str:
        """The file of it."""
        return f"{self.folder}/index.html".removeprefix("/")


class _Links:
    """Links from one page to others of the site; those that need the server lead nowhere."""

    def __init__(self, here: PageAddress) -> None:
        self._here = here.folder
        self.followed: list[PageAddress] = []

    def __call__(self, address: str, **query: Any) -> str | None:
        page = query.pop("page", 0)
        if query or address.startswith(DYNAMIC) or (address and page >= SITE_PAGES):
            return None
        if address.startswith("static/"):
            return self._write_relative(address)
        self.followed.append(PageAddress(address, page))
        return self._write_relative(self.followed[-1].file)

    def _write_relative(self, file: str) -> str:
        return quote(os.path.relpath(f"/{file}", f"/{self._here}"))


def _write_page(catalogue: Catalogue, place: PageAddress, links: _Links) -> str:
    """A page, or one that says why it cannot be shown."""
    try:
        query = {"page": [str(place.page)]} if place.page else {}
        return render_page(page_for(catalogue, place.address, query), links, "bundle")
    except InputError as error:
        links.followed.clear()
        return render_page(Page("Cannot show this page", "error.html", {"words": str(error)[:600]}), links, "bundle")


def write_report(folder: RunFolder) -> None:
    """Writes report.html from the finished parts of the run."""
    write_atomically(folder.report, render_page(report_page(folder), _lead_nowhere, "report").encode())


def _lead_nowhere(address: str, **query: object) -> None:
    """A report leads to no other page."""
