"""The page of a run: progress, result, stages and curves; and the report, a run in one file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lakewright.experiments.loop.records.history import Chapter, count_met_in_training, read_chapters, read_examination
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.viewer.catalogue.discovery import Item
from lakewright.experiments.viewer.catalogue.run_progress import StageProgress, progress_of
from lakewright.experiments.viewer.catalogue.run_space import Measure, RunSpace, describe_next, find_space
from lakewright.experiments.viewer.pages import run_charts as charts
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, format_percent, mark_svg
from lakewright.experiments.viewer.pages.stage_page import asked_first, list_texts, read_stage_view
from lakewright.experiments.viewer.pictures.board_art import MOST_SIDE, fits_picture
from lakewright.experiments.viewer.pictures.board_pictures import draw_frames, write_caption

Log = Sequence[Mapping[str, float | None]]


def run_page(item: Item) -> Page:
    """The page of a run so far, also while it runs. Raises InputError if its files cannot be read."""
    folder = RunFolder(item.path)
    values = _collect_values(folder, item.name)
    live = values["progress"].state == "running"
    return Page(item.name, "run.html", values, [Crumb("All", ""), Crumb(item.name, f"run/{item.name}")], live)


def report_page(folder: RunFolder) -> Page:
    """The run and all its stages on one page."""
    name = folder.folder.resolve().name
    values = _collect_values(folder, name)
    history: list[Chapter] = values["history"]
    numbers = [-1] * asked_first(folder) + list(range(len(_select_stages(history))))
    about: RunSpace = values["about"]
    stages = [read_stage_view(folder, number, about) for number in numbers]
    examples = history[-1].validation.examples if history else []
    values |= {"stages": stages, "strips": _draw_strips(examples), "texts": list_texts(examples, about)}
    return Page(name, "report.html", values)


def _collect_values(folder: RunFolder, name: str) -> dict[str, Any]:
    settings, history = folder.settings(), read_chapters(folder)
    progress, about = progress_of(folder, settings), find_space(folder, settings)
    forecast = charts.forecast_chart(history, about)
    return {
        "about": about,
        "words": about.space.words,
        "name": name,
        "settings": settings,
        "settings_text": msgspec.json.format(msgspec.json.encode(settings), indent=2).decode(),
        "history": history,
        "progress": progress,
        "asked_first": asked_first(folder),
        "finished": len(_select_stages(history)),
        "result": result_of(history, about, progress.now),
        "examination": _describe_examination(folder),
        "results": _make_results(history, about),
        "counts": _count_traits(history, about),
        "by_stratum": _by_stratum(history, about),
        "met": _count_met(folder, about),
        "charts": _draw_charts(history, about),
        "step_charts": _step_charts(folder, history, about, progress.now),
        "forecast": mark_svg(forecast) if forecast else None,
        "forecasts": _make_forecasts(history),
        "engineer_charts": [mark_svg(chart) for chart in charts.engineer_charts(history)],
        "design_charts": [mark_svg(chart) for chart in charts.design_charts(history, about)]
        if _select_stages(history)
        else [],
        "next_words": _describe_next(folder, history, about) if progress.state != "finished" else "",
        "tokens": charts.tokens_after(history)[-1] if history else 0,
    }


def result_of(history: Sequence[Chapter], about: RunSpace, now: StageProgress | None = None) -> str:
    """The result of a run, in a sentence. now: the stage in progress."""
    if not history:
        doing = now.doing if now else "preparing"
        return f"Nothing is finished yet. The warm-up comes first: {doing}."
    first, last = history[0], [chapter for chapter in history if not chapter.rolled_back][-1]
    valid, *others = about.measures
    traits, answers = [measure for measure in others if measure.where], about.space.words.answers
    if len(history) == 1:
        shares = [f", and {format_percent(one.share(first.pooled))}% {one.where}" for one in traits]
        share = format_percent(valid.share(first.pooled))
        return f"After the {first.name} {share}% of {answers} are valid{''.join(shares)}."
    rolled_back = [chapter.name for chapter in history if chapter.rolled_back]
    said = f" Rolled back: {', '.join(rolled_back)}." if rolled_back else ""
    if first is last:
        return f"Every stage was rolled back, so the policy of the {first.name} is final.{said}"
    gains = [f", and {one.where}, {_describe_change(one, first, last)}" for one in traits]
    change = _describe_change(valid, first, last)
    return f"From {first.name} to {last.name}, valid {answers} go {change}{''.join(gains)}.{said}"


def _describe_next(folder: RunFolder, history: Sequence[Chapter], about: RunSpace) -> str:
    """The design of the stage to come, and the reason for it."""
    number = len(_select_stages(history)) - 1
    stage = folder.stage(number)
    last = number + 1 == folder.settings().stages
    if number < 0 or last or not (stage.proposal.exists() or stage.next.exists()):
        return ""
    return describe_next(stage.read_next(), stage.design(), number, about)


def _describe_examination(folder: RunFolder) -> str:
    """The result of the engineer's examination, in a sentence; empty if the warm-up taught no engineer."""
    learned = read_examination(folder)
    if not learned:
        return ""
    return f"In the engineer exam after the warm-up, {learned.summary().removeprefix('engineer exam: ')}."


def agents_of(settings: RunSettings) -> str:
    """The numbers of agents of a run's boards."""
    return " or ".join(map(str, settings.teams or [settings.agents]))


def _select_stages(history: Sequence[Chapter]) -> list[Chapter]:
    return [chapter for chapter in history if chapter.design]


def _make_results(history: Sequence[Chapter], about: RunSpace) -> Table:
    header = ("", *(f"{measure.title} %" for measure in about.measures), "tokens", "minutes")
    rows = [
        (
            chapter.name + " (rolled back)" * chapter.rolled_back,
            *(format_percent(measure.share(chapter.pooled)) for measure in about.measures),
            f"{tokens:,.0f}".replace(",", " "),
            f"{chapter.seconds / 60:.1f}",
        )
        for chapter, tokens in zip(history, charts.tokens_after(history), strict=True)
    ]
    return Table(header, rows)


def _count_traits(history: Sequence[Chapter], about: RunSpace) -> list[tuple[int, str]]:
    """The number of held-out problems with each trait, and the name of these."""
    tally = history[-1].pooled if history else None
    return [(measure.counts(tally)[1], measure.where) for measure in about.measures if tally and measure.where]


def _count_met(folder: RunFolder, about: RunSpace) -> dict[str, int]:
    """Number of held-out problems of each stratum that also occur among the problems of the finished stages."""
    met = count_met_in_training(folder)
    return {about.label(stratum): met[stratum] for stratum in about.space.sort_strata(met) if met[stratum]}


def _make_forecasts(history: Sequence[Chapter]) -> Table | None:
    """The calibration of the difficulty model's forecast of each stage."""
    known = [(chapter.name, chapter.calibration) for chapter in history if chapter.calibration]
    rows = [(name, str(found.groups), f"{found.brier:.4f}", f"{found.baseline:.4f}") for name, found in known]
    return Table(("", "groups", "Brier score", "if one share is predicted for all"), rows) if rows else None


def _by_stratum(history: Sequence[Chapter], about: RunSpace) -> Table:
    last = history[-1].validation.outcomes if history else {}
    strata = about.space.sort_strata(last)
    header = ("", *(f"{about.label(stratum)} ({last[stratum].problems})" for stratum in strata))
    rows = []
    for chapter in history:
        parts = [chapter.validation.outcomes.get(stratum) for stratum in strata]
        rows.append((chapter.name, *(format_percent(part.valid_rate) if part else "" for part in parts)))
    return Table(header, rows)


def _draw_charts(history: Sequence[Chapter], about: RunSpace) -> list:
    made = (charts.rates_chart, charts.strata_chart, charts.failures_chart)
    return [mark_svg(make(history, about)) for make in made] if history else []


def _step_charts(folder: RunFolder, history: Sequence[Chapter], about: RunSpace, now: StageProgress | None) -> list:
    """The curves over the steps: for GRPO in all stages, and of the warm-up; also those that are being made."""
    logs: dict[str, Log] = {chapter.name: chapter.log for chapter in history if chapter.log}
    if now is not None:
        log = (folder.stage(now.number) if now.number >= 0 else folder.warmup).train_log
        if lines := _read_growing(log.with_name(f".{log.name}.part")) or _read_growing(log):
            logs[now.name] = lines
    warmup = logs.pop("warm-up", None)
    found = charts.step_charts(logs, about) if logs else []
    return [mark_svg(chart) for chart in [*found, *([charts.warmup_chart(warmup)] if warmup else [])]]


def _read_growing(log: Path) -> Log:
    """The whole lines of a log that is being written."""
    try:
        return msgspec.json.decode(b"[%s]" % b",".join(log.read_bytes().split(b"\n")[:-1]), type=list[dict[str, Any]])
    except (OSError, msgspec.DecodeError):  # not begun, or not whole: it is shown once the stage is finished
        return []


def _draw_strips(examples: Sequence[Example]) -> list[tuple[str, list[tuple[str, list]]]]:
    """Plans of the last stage, frame by frame: titles, captions and frames."""
    found = []
    for title, valid in (("Valid plans on boards that force a wait", True), ("Failures", False)):
        shown = [example for example in examples if example.is_plan and (example.failure == "none") == valid]
        if shown:
            frames = [draw_frames(example) if fits_picture(example.row.size) else [] for example in shown]
            strips = [(_write_caption(one), list(map(mark_svg, its))) for one, its in zip(shown, frames, strict=True)]
            found.append((title, strips))
    return found


def _write_caption(example: Example) -> str:
    side = example.row.size
    without = "" if fits_picture(side) else f" {side} x {side} cells; pictures show at most {MOST_SIDE} x {MOST_SIDE}."
    return write_caption(example) + without


def _describe_change(measure: Measure, before: Chapter, after: Chapter) -> str:
    shares = (format_percent(measure.share(chapter.pooled)) for chapter in (before, after))
    return "from {}% to {}%".format(*shares)
