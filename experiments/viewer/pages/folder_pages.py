"""The pages of evaluations and benchmarks: their records as tables and charts, and the way to their boards."""

from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_raw
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.experiments.viewer.catalogue.discovery import Item
from lakewright.experiments.viewer.charts.heat import heat_map
from lakewright.experiments.viewer.charts.rows import stacked_bars
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, format_percent, mark_svg


def evaluation_page(item: Item) -> Page:
    """The rates of an evaluation by agents and size. Raises InputError if its summary is missing or not readable."""
    if not (item.path / "summary.json").exists():
        raise InputError(f"{item.name}: has no summary.json yet; it is written when all answers are judged")
    found = record_of(item, "summary.json")
    try:
        values = {"item": item, "summary": found, "rates": _tabulate_rates(found), "charts": _evaluation_charts(found)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{item.name}: summary.json is not one of this version ({error!r:.80})") from error
    return Page(item.name, "evaluation.html", values, _crumbs_of(item))


def benchmark_page(item: Item) -> Page:
    """The numbers of boards of each kind in a benchmark. Raises InputError if its manifest cannot be read."""
    found = record_of(item, "manifest.json")
    try:
        counts = [
            {name: int(team[name]) for name in ("agents", "size", "boards", "wait_required")}
            for team in found["counts"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{item.name}: manifest.json is not one of this version ({error!r:.80})") from error
    rows = [tuple(map(str, team.values())) for team in counts]
    table = Table(("agents", "size", "boards", "wait required"), rows)
    values = {"item": item, "manifest": found, "counts": table, "chart": _by_kind("Boards", counts, "boards")}
    return Page(item.name, "benchmark.html", values, _crumbs_of(item))


def _tabulate_rates(found: dict[str, Any]) -> Table:
    """A line for each number of agents and size, and one for all."""
    header = ("agents", "size", "boards", "valid %", "95 %", "optimal sum of costs %", "valid, wait forced %")
    lines = [(cell["agents"], cell["size"], cell["score"]) for cell in found["cells"]]
    return Table(header, [_format_rate(*line) for line in [*lines, ("all", "", found["pooled"])]])


def _format_rate(agents: Any, size: Any, score: dict[str, Any]) -> tuple[str, ...]:
    counts = score["outcomes"]
    boards, waits = int(counts["boards"]), int(counts["wait_boards"])
    low, high = (float(end) for end in score["intervals"]["valid"])
    shares = [
        format_percent(int(counts[name]) / boards) if boards else "" for name in ("valid", "optimal_sum_of_costs")
    ]
    forced = format_percent(int(counts["wait_valid"]) / waits) if waits else ""
    return (
        f"{agents}",
        f"{size}",
        str(boards),
        shares[0],
        f"{format_percent(low)} to {format_percent(high)}",
        shares[1],
        forced,
    )


def _evaluation_charts(found: dict[str, Any]) -> list:
    cells = [{"agents": cell["agents"], "size": cell["size"], **cell["score"]["outcomes"]} for cell in found["cells"]]
    for cell in cells:
        cell["rate"] = 100 * int(cell["valid"]) / max(int(cell["boards"]), 1)
    names = [f"{cell['agents']}ag {cell['size']}" for cell in cells]
    kinds = {
        name.replace("_", " "): [100 * cell["failures"].get(name, 0) / max(cell["boards"], 1) for cell in cells]
        for name in FAILURE_NAMES[1:]
    }
    bars = stacked_bars("Failed plans by type", names, kinds, x_label="agents and size", y_label="% of boards")
    failed = any(share for shares in kinds.values() for share in shares)
    return [_by_kind("Valid plans in %", cells, "rate", 100), *[mark_svg(bars)] * failed]


def _by_kind(title: str, cells: list[dict[str, Any]], name: str, top: float | None = None) -> Any:
    """A map of a number by agents and size."""
    agents, sizes = sorted({cell["agents"] for cell in cells}), sorted({cell["size"] for cell in cells})
    values = {(cell["agents"], cell["size"]): float(cell[name]) for cell in cells}
    lines = [[values.get((team, size)) for size in sizes] for team in agents]
    return mark_svg(heat_map(title, [f"{n} agents" for n in agents], [f"{n}x{n}" for n in sizes], lines, top=top))


def record_of(item: Item, name: str) -> dict[str, Any]:
    """A file of an item that holds a JSON object. Raises InputError if it isn't one."""
    found = read_raw(item.path / name)
    if not isinstance(found, dict):
        raise InputError(f"{item.name}/{name}: holds no object; was it written by another version?")
    return found


def _crumbs_of(item: Item) -> list[Crumb]:
    return [Crumb("All", ""), Crumb(item.name, f"{item.kind}/{item.name}")]
