"""Pages from Jinja templates: everything is escaped, except the SVG that our own code draws."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from lakewright.experiments.charts import escaped

Links = Callable[..., str | None]  # an address and its query as a link from this page; None where it leads nowhere


class Crumb(NamedTuple):
    """A step on the way from the first page to this one."""

    words: str
    address: str


class Page(NamedTuple):
    """A page: its template and what that shows. live: whether it changes while one looks."""

    title: str
    template: str
    values: Mapping[str, Any]
    crumbs: Sequence[Crumb] = ()
    live: bool = False


class Table(NamedTuple):
    """A table of text. prose: the number of the column that holds sentences. links: an address for each row."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    prose: int | None = None
    links: Sequence[str | None] = ()
    caption: str = ""


def render(page: Page, links: Links, mode: str = "live") -> str:
    """A whole page. mode: live, bundle (a static site) or report (one file, without scripts)."""
    style = static_files()["style.css"].decode() if mode == "report" else ""
    given = {"page": page, "link": links, "mode": mode, "style": Markup(style), **page.values}
    return _environment().get_template(page.template).render(given)


def fragment(template: str, values: Mapping[str, Any]) -> str:
    """A part of a page."""
    return _environment().get_template(template).render({"mode": "live", "link": lambda *_, **__: None, **values})


def picture(svg: str) -> Markup:
    """SVG of our own drawing, whose texts are escaped where they are written."""
    return Markup(svg)


@functools.cache
def static_files() -> dict[str, bytes]:
    """The style sheet and the scripts, by name."""
    folder = resources.files("lakewright.experiments") / "view" / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@functools.cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    found.filters |= {"percent": percent, "points": points, "words": words, "svg": picture}
    found.filters |= {"ago": ago, "moment": moment, "duration": duration}
    return found


def _template(name: str) -> str:
    file: Traversable = resources.files("lakewright.experiments") / "view" / "templates" / name
    return file.read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Text of others without what cannot be shown; markup of our own as it is."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else Markup(escaped(value))


def percent(share: float | None) -> str:
    """A share in percent, with one digit behind the point."""
    return "" if share is None else f"{100 * share:.1f}"


def points(change: float) -> str:
    """A change of a share, in percentage points with its sign."""
    return f"{100 * change:+.1f}"


def duration(seconds: float | None) -> str:
    """Seconds for people."""
    if seconds is None:
        return ""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


def ago(seconds: float) -> str:
    """How long ago a moment was, in seconds since 1970."""
    return f"{duration(max(0.0, time.time() - seconds))} ago"


def moment(seconds: float) -> str:
    """A moment in seconds since 1970, as a date and a time of this machine's clock."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def words(name: str) -> str:
    """A name of the code for people: `vertex_conflict` is `vertex conflict`."""
    return name.replace("_", " ")
