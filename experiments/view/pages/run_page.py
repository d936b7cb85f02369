"""The page of a run: how far it is, what came of it, its stages and curves; and the report, a run in one file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from lakewright.experiments.loop.records import (
    Chapter,
    Example,
    RunFolder,
    chapters,
    examination_of,
    forced_rate,
    met_in_training,
)
from lakewright.experiments.loop.settings import RunSettings
from lakewright.experiments.view.catalogue.discovery import Catalogue, Item
from lakewright.experiments.view.catalogue.run_progress import StageProgress, progress_of
from lakewright.experiments.view.pages import run_charts as charts
from lakewright.experiments.view.pages.rendering import Crumb, Page, Table, format_percent, mark_svg
from lakewright.experiments.view.pages.stage_page import stage_values
from lakewright.experiments.view.pictures.board_art import MOST_SIDE, is_drawable
from lakewright.experiments.view.pictures.board_pictures import caption, frames

Log = Sequence[Mapping[str, float | None]]


def run_page(catalogue: Catalogue, item: Item, query: Mapping[str, list[str]]) -> Page:
    """What a run has done so far, also while it runs. Raises InputError where its files cannot be read."""
    folder = RunFolder(item.path)
    values = _values(folder, item.name)
    live = values["progress"].state == "running"
    return Page(item.name, "run.html", values, [Crumb("All", ""), Crumb(item.name, f"run/{item.name}")], live)


def report_page(folder: RunFolder) -> Page:
    """The run and all its stages on one page."""
    name = folder.folder.resolve().name
    values = _values(folder, name)
    history: list[Chapter] = values["history"]
    stages = [stage_values(folder, name, number) for number, chapter in enumerate(_staged(history)) if chapter]
    values |= {"stages": stages, "strips": _strips(history)}
    return Page(f"Lakewright run {name}", "report.html", values)


def _values(folder: RunFolder, name: str) -> dict[str, Any]:
    settings, history = folder.settings(), chapters(folder)
    progress = progress_of(folder, settings)
    return {
        "name": name,
        "settings": settings,
        "settings_text": msgspec.json.format(msgspec.json.encode(settings), indent=2).decode(),
        "history": history,
        "progress": progress,
        "finished": len(_staged(history)),
        "result": result_of(history, progress.now),
        "examination": _examination(folder),
        "results": _results(history),
        "by_size": _by_size(history),
        "met": {size: count for size, count in met_in_training(folder).items() if count},
        "charts": _charts(history),
        "step_charts": _step_charts(folder, history, progress.now),
        "forecast": mark_svg(forecast) if (forecast := charts.forecast_chart(history)) else None,
        "forecasts": _forecasts(history),
        "engineer_charts": [mark_svg(chart) for chart in charts.engineer_charts(history)],
        "config_charts": [mark_svg(chart) for chart in charts.config_charts(history)] if _staged(history) else [],
        "tokens": charts.tokens_after(history)[-1] if history else 0,
    }


def result_of(history: Sequence[Chapter], now: StageProgress | None = None) -> str:
    """What came of a run, in a sentence. now: what is being done."""
    if not history:
        doing = now.doing if now else "preparing"
        return f"Nothing is finished yet; the warm-up comes first: {doing}."
    first, last = history[0], [chapter for chapter in history if not chapter.taken_back][-1]
    if len(history) == 1:
        valid, forced = format_percent(first.pooled.rate(first.pooled.valid)), format_percent(forced_rate(first.pooled))
        return f"After the {first.name} {valid}% of plans are valid, and {forced}% where the board forces a wait."
    valid = _change(first.pooled.rate(first.pooled.valid), last.pooled.rate(last.pooled.valid))
    forced = _change(forced_rate(first.pooled), forced_rate(last.pooled))
    back = [chapter.name for chapter in history if chapter.taken_back]
    undone = f" Taken back: {', '.join(back)}." if back else ""
    if first is last:
        return f"No stage was kept: the policy of the {first.name} counts.{undone}"
    gains = f"valid plans go {valid}, and where the board forces a wait, {forced}"
    return f"From {first.name} to {last.name}, {gains}.{undone}"


def _examination(folder: RunFolder) -> str:
    """How well the engineer has learned its part, in a sentence; empty where the warm-up did not teach it."""
    learned = examination_of(folder)
    return f"After the warm-up {learned.summary()}." if learned else ""


def agents_of(settings: RunSettings) -> str:
    """The numbers of agents of a run's boards."""
    return " or ".join(map(str, settings.teams or [settings.env.agents]))


def _staged(history: Sequence[Chapter]) -> list[Chapter]:
    return [chapter for chapter in history if chapter.config]


def _results(history: Sequence[Chapter]) -> Table:
    header = (
        "",
        "valid %",
        "optimal makespan %",
        "optimal sum of costs %",
        "valid, wait forced %",
        "tokens",
        "minutes",
    )
    rows = [
        (
            chapter.name + " (taken back)" * chapter.taken_back,
            *(format_percent(share) for share in _shares(chapter)),
            f"{tokens:,.0f}".replace(",", " "),
            f"{chapter.seconds / 60:.1f}",
        )
        for chapter, tokens in zip(history, charts.tokens_after(history), strict=True)
    ]
    return Table(header, rows)


def _forecasts(history: Sequence[Chapter]) -> Table | None:
    """How well the difficulty model foresaw each stage."""
    known = [(chapter.name, chapter.calibration) for chapter in history if chapter.calibration]
    rows = [(name, str(found.groups), f"{found.brier:.4f}", f"{found.baseline:.4f}") for name, found in known]
    return Table(("", "groups", "Brier score", "of one prediction for all"), rows) if rows else None


def _shares(chapter: Chapter) -> list[float]:
    found = chapter.pooled
    counts = (found.valid, found.optimal_makespan, found.optimal_sum_of_costs)
    return [*map(found.rate, counts), forced_rate(found)]


def _by_size(history: Sequence[Chapter]) -> Table:
    last = history[-1].validation.sizes if history else {}
    sizes = sorted(last)
    header = ("", *(f"{size}x{size} ({last[size].boards})" for size in sizes))
    rows = []
    for chapter in history:
        parts = [chapter.validation.sizes.get(size) for size in sizes]
        rows.append((chapter.name, *(format_percent(part.rate(part.valid)) if part else "" for part in parts)))
    return Table(header, rows)


def _charts(history: Sequence[Chapter]) -> list:
    made = (charts.rates_chart, charts.sizes_chart, charts.failures_chart)
    return [mark_svg(make(history)) for make in made] if history else []


def _step_charts(folder: RunFolder, history: Sequence[Chapter], now: StageProgress | None) -> list:
    """The curves over the steps: of GRPO in all stages, and of the warm-up; also those that are being made."""
    logs: dict[str, Log] = {chapter.name: chapter.log for chapter in history if chapter.log}
    if now is not None:
        log = (folder.stage(now.number) if now.number >= 0 else folder.warmup).train_log
        if lines := _growing(log.with_name(f".{log.name}.part")) or _growing(log):
            logs[now.name] = lines
    warmup = logs.pop("warm-up", None)
    found = charts.step_charts(logs) if logs else []
    return [mark_svg(chart) for chart in [*found, *([charts.warmup_chart(warmup)] if warmup else [])]]


def _growing(log: Path) -> Log:
    """The whole lines of a log that is being written."""
    try:
        return msgspec.json.decode(b"[%s]" % b",".join(log.read_bytes().split(b"\n")[:-1]), type=list[dict[str, Any]])
    except (OSError, msgspec.DecodeError):  # not begun, or not whole: it is shown once the stage is finished
        return []


def _strips(history: Sequence[Chapter]) -> list[tuple[str, list[tuple[str, list]]]]:
    """Plans of the last stage, frame by frame: titles, captions and frames."""
    examples = history[-1].validation.examples if history else []
    found = []
    for title, valid in (("Valid plans on boards that force a wait", True), ("Failures", False)):
        shown = [example for example in examples if (example.failure == "none") == valid]
        if shown:
            strips = [(_caption(example), _frames(example)) for example in shown]
            found.append((title, strips))
    return found


def _caption(example: Example) -> str:
    side = example.row.size
    without = "" if is_drawable(side) else f" {side} x {side} cells, no picture above {MOST_SIDE}."
    return caption(example) + without


def _frames(example: Example) -> list[Markup]:
    return [mark_svg(frame) for frame in frames(example)] if is_drawable(example.row.size) else []


def _change(before: float, after: float) -> str:
    return f"from {format_percent(before)}% to {format_percent(after)}%"
