"""Pages from Jinja templates, and the query of an address as our own types. Both are strict with outside text."""

import functools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple, TypeVar

import jinja2
import msgspec
from markupsafe import Markup

from lakewright.core_jax.errors import InputError
from lakewright.experiments.viewer.catalogue.run_space import shorten_reason, sort_reasons
from lakewright.experiments.viewer.charts.frame import escape_text

Links = Callable[..., str | None]  # an address and its query as a link from this page; None where it leads nowhere
T = TypeVar("T", bound=msgspec.Struct)
LONGEST = 4096  # letters of a value
BROAD = 540  # the width of a picture, in its own units, from which a narrow screen scrolls it: its text would be tiny


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
    """A table of text. prose: the columns that hold sentences. links: an address for each row."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    prose: Sequence[int] = ()
    links: Sequence[str | None] = ()
    caption: str = ""


def render_page(page: Page, links: Links, mode: str = "live") -> str:
    """A whole page. mode: live, bundle (a static site) or report (one file, without scripts)."""
    style = static_files()["style.css"].decode() if mode == "report" else ""
    given = {"page": page, "link": links, "mode": mode, "style": Markup(style), **page.values}
    return _make_environment().get_template(page.template).render(given)


def render_fragment(template: str, values: Mapping[str, Any]) -> str:
    """A part of a page."""
    return _make_environment().get_template(template).render({"mode": "live", "link": lambda *_, **__: None, **values})


def mark_svg(svg: str) -> Markup:
    """SVG drawn by this package, whose texts are escaped where they are written."""
    return Markup(svg)


def is_broad(svg: str) -> bool:
    """Return True if a picture has more than the usual width."""
    found = re.search(r'viewBox="0 0 (\d+) ', svg)
    return bool(found and int(found[1]) > BROAD)


@functools.cache
def static_files() -> dict[str, bytes]:
    """The style sheet and the scripts, by name."""
    folder = resources.files("lakewright.experiments") / "viewer" / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@functools.cache
def _make_environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_value,
    )
    found.filters |= {
        "percent": format_percent,
        "points": format_points,
        "words": plain_words,
        "svg": mark_svg,
        "broad": is_broad,
        "policy": name_policy,
        "sort_reasons": sort_reasons,
        "shorten_reason": shorten_reason,
    }
    found.filters |= {"ago": format_ago, "moment": format_moment, "duration": format_duration}
    return found


def _read_template(name: str) -> str:
    file: Traversable = resources.files("lakewright.experiments") / "viewer" / "templates" / name
    return file.read_text(encoding="utf-8")


def _escape_value(value: Any) -> Any:
    """Outside text without characters that cannot be shown; markup of this package is unchanged."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else Markup(escape_text(value))


def format_percent(share: float | None) -> str:
    """A share in percent, with one digit behind the point."""
    return "" if share is None else f"{100 * share:.1f}"


def format_points(change: float) -> str:
    """A change of a share, in percentage points with its sign."""
    return f"{100 * change:+.1f}"


def format_duration(seconds: float | None) -> str:
    """Seconds for people."""
    if seconds is None:
        return ""
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


def format_ago(seconds: float) -> str:
    """The time since a moment, given in seconds since 1970, as text."""
    return f"{format_duration(max(0.0, time.time() - seconds))} ago"


def format_moment(seconds: float) -> str:
    """A moment in seconds since 1970, as a date and a time of this machine's clock."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def name_policy(part: str) -> str:
    """The policy after a part of a run, for people: `stage-1` is `stage 1`."""
    return "warm-up" if part == "warmup" else part.replace("-", " ")


def plain_words(name: str) -> str:
    """A name of the code for people: `vertex_conflict` is `vertex conflict`."""
    return name.replace("_", " ")


def asked_for(kind: type[T], query: Mapping[str, list[str]]) -> T:
    """The fields of `kind` from a query; empty ones count as not given. Raises InputError naming field and value."""
    given = {name: values[-1] for name, values in query.items() if name in kind.__struct_fields__ and values[-1] != ""}
    if long := [name for name, value in given.items() if len(value) > LONGEST]:
        raise InputError(f"address: {long[0]} is too long; give at most {LONGEST} letters")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"address: {str(error).replace('`', '')}; correct it, or go back") from error


def query_for(found: msgspec.Struct) -> dict[str, str]:
    """The query that asks for this; default values are left out."""
    defaults = type(found)()
    values = {name: getattr(found, name) for name in found.__struct_fields__}
    changed = {name: value for name, value in values.items() if value != getattr(defaults, name)}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in changed.items()}
