"""A static site of the viewer's pages, to publish anywhere: what can be reached from the first page by links."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from core_jax.errors import InputError
from core_jax.support import write_atomically
from experiments.view.catalogue import Catalogue
from experiments.view.pages import page_for
from experiments.view.templating import Page, render, static_files

MARK = ".lakewright-site"
DYNAMIC = ("compare", "editor", "api/", "export/")  # what needs the server


def write_site(paths: Sequence[Path], out: Path) -> int:
    """Writes the pages of what lies under `paths` into `out`, and gives their number.

    Raises InputError where a path is not there, or `out` holds something else.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        raise InputError(f"{out}: is not empty and holds no site; choose another --out")
    catalogue = Catalogue(paths)
    write_atomically(out / MARK, b"")
    for name, data in static_files().items():
        write_atomically(out / "static" / name, data)
    done: set[str] = set()
    waiting = [""]
    while waiting:
        address = waiting.pop()
        if address not in done:
            done.add(address)
            links = _Links(address)
            write_atomically(_file(out, address), _written(catalogue, address, links).encode())
            waiting += links.followed
    return len(done)


class _Links:
    """Links from one page to others of the site; those that need the server lead nowhere."""

    def __init__(self, address: str) -> None:
        self._here = f"{address}/" if address else ""
        self.followed: list[str] = []

    def __call__(self, address: str, **query: object) -> str | None:
        if query or address.startswith(DYNAMIC):
            return None
        if address.startswith("static/"):
            return self._relative(address)
        self.followed.append(address)
        return self._relative(f"{address}/index.html" if address else "index.html")

    def _relative(self, file: str) -> str:
        return quote(os.path.relpath(f"/{file}", f"/{self._here}"))


def _written(catalogue: Catalogue, address: str, links: _Links) -> str:
    """A page, or one that says why it cannot be shown."""
    try:
        return render(page_for(catalogue, address, {}), links, "bundle")
    except InputError as error:
        links.followed.clear()
        return render(Page("This cannot be shown", "error.html", {"words": str(error)[:600]}), links, "bundle")


def _file(out: Path, address: str) -> Path:
    return out / address / "index.html" if address else out / "index.html"
