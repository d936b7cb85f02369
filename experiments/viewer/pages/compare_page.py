"""The comparison of runs, or of arms of a study: curves with intervals, and the settings in which they differ."""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.stats import t

from lakewright.core_jax.errors import InputError
from lakewright.experiments.environments.lake import lake_space
from lakewright.experiments.loop.records.history import Chapter, read_chapters
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind, stamp_of
from lakewright.experiments.viewer.catalogue.run_space import VALID, Measure, RunSpace, find_space
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, asked_for, format_percent, mark_svg
from lakewright.experiments.viewer.pages.run_charts import curve_of, tokens_after, tokens_before_validation

MOST_RUNS = 64
REACHED = 0.95  # of a number of tokens: runs under one budget end some tokens apart
SEED = re.compile(r"-s\d+$")


class CompareChoice(msgspec.Struct, frozen=True):
    """The choice of runs to compare. arms: whether runs that differ in their seed alone are one curve."""

    measure: str = "valid"
    arms: bool = False


def compare_page(catalogue: Catalogue, query: Mapping[str, list[str]]) -> Page:
    """The runs that the address names, overlaid. Raises InputError if one is not there or not readable."""
    asked = asked_for(CompareChoice, query)
    names = list(dict.fromkeys(query.get("run", [])))
    if len(names) > MOST_RUNS:
        raise InputError(f"address: {len(names)} runs; compare at most {MOST_RUNS}")
    folders = {name: RunFolder(catalogue.find(Kind.RUN, name).path) for name in names}
    histories = {name: history_of(folder.folder) for name, folder in folders.items()}
    settings = {name: folder.settings() for name, folder in folders.items()}
    spaces = [find_space(folder, settings[name]) for name, folder in folders.items()]
    measures = _map_measures(spaces)
    if asked.measure not in measures:
        raise InputError(f"address: measure is {asked.measure!r:.40}; choose from {', '.join(measures)}")
    measure, title = measures[asked.measure], _title_of(measures[asked.measure], spaces)
    series = [Series(name, curve_of(history, measure.counts)) for name, history in histories.items()]
    if asked.arms:
        series = _series_of_arms(histories, measure)
    flat = {name: _flatten_settings(msgspec.to_builtins(each)) for name, each in settings.items()}
    every = [item.name for item in catalogue.items() if item.kind is Kind.RUN]
    values = {
        "all": sorted(every, key=lambda name: name not in names),
        "chosen": names,
        "asked": asked,
        "measures": {name: measure.title for name, measure in measures.items()},
        "chart": mark_svg(_draw_chart(series, title)) if any(histories.values()) else None,
        "problems": " and ".join(sorted({about.space.words.problems for about in spaces})),
        "ends": _tabulate_ends(histories, list(measures.values())),
        "differing": tabulate_differences(flat),
    }
    return Page("Compare runs", "compare.html", values, [Crumb("All", ""), Crumb("compare", "compare")])


def _map_measures(spaces: Sequence[RunSpace]) -> dict[str, Measure]:
    """All that is measured of some of the runs; before any is chosen, the lake's."""
    chosen = spaces or [RunSpace(lake_space(), lake=True)]
    return {measure.name: measure for about in chosen for measure in about.measures}


def _title_of(measure: Measure, spaces: Sequence[RunSpace]) -> str:
    """The title of the chart, in the words of the runs if these agree."""
    nouns = {(about.space.words.answers, about.space.words.problems) for about in spaces}
    answers, problems = nouns.pop() if len(nouns) == 1 else ("answers", "problems")
    return f"{measure.title.capitalize()} {answers} on held-out {problems}"


def tabulate_differences(settings: Mapping[str, Mapping[str, Any]]) -> Table:
    """The settings in which runs differ, a column for each run."""
    every = list(dict.fromkeys(name for each in settings.values() for name in each))
    rows = []
    for name in every:
        values = [each.get(name, "") for each in settings.values()]
        if any(value != values[0] for value in values):
            rows.append((name, *(f"{value!s:.60}" for value in values)))
    return Table(("setting", *settings), rows)


def arm_of(name: str) -> str:
    """The arm of a study's run: its name without the seed."""
    return SEED.sub("", name)


def history_of(folder: Path) -> list[Chapter]:
    """The finished parts of a run; they are read again once a file of it has changed."""
    return _read_history(folder, stamp_of(folder))


def arms_chart(histories: Mapping[str, Sequence[Chapter]], spaces: Sequence[RunSpace]) -> str:
    """Valid answers over the tokens, the runs of an arm as one curve. spaces: the runs' design spaces."""
    return _draw_chart(_series_of_arms(histories, VALID), _title_of(VALID, spaces))


@functools.lru_cache(maxsize=MOST_RUNS)
def _read_history(folder: Path, stamp: str) -> list[Chapter]:
    return read_chapters(RunFolder(folder))


def _draw_chart(series: Sequence[Series], title: str) -> str:
    return line_chart(title, series, x_label="tokens generated", y_label="%")


def _series_of_arms(histories: Mapping[str, Sequence[Chapter]], measure: Measure) -> list[Series]:
    """Means over the seeds of each arm, with the 95 % interval of Student's t over the seeds."""
    arms: dict[str, list[Sequence[Chapter]]] = {}
    for name, history in histories.items():
        arms.setdefault(arm_of(name), []).append(history)
    return [Series(f"{arm} ({len(found)})", _average_arms(found, measure)) for arm, found in arms.items()]


def _average_arms(histories: Sequence[Sequence[Chapter]], measure: Measure) -> list[Point]:
    """The curves of several seeds, whose stages differ in tokens, interpolated at the stages of the longest curve."""
    curves = [curve for history in histories if (curve := _measure_curve(history, measure))]
    longest = max(curves, key=lambda curve: curve[-1][0], default=[])
    found = []
    for tokens, _ in longest:
        there = [curve for curve in curves if curve[-1][0] >= REACHED * tokens]
        shares = [float(np.interp(tokens, [x for x, _ in curve], [y for _, y in curve])) for curve in there]
        found.append(make_seed_point(tokens, shares))
    return found


def _measure_curve(history: Sequence[Chapter], measure: Measure) -> list[tuple[float, float]]:
    """Tokens and the share in percent after each stage that has one."""
    counted = ((tokens, measure.counts(chapter.pooled)) for tokens, chapter in _pair_tokens(history))
    return [(tokens, 100 * count / of) for tokens, (count, of) in counted if of]


def _pair_tokens(history: Sequence[Chapter]) -> Iterator[tuple[int, Chapter]]:
    return zip(tokens_before_validation(history), history, strict=True)


def make_seed_point(x: float, shares: Sequence[float]) -> Point:
    """The mean of shares of several seeds, in percent, with its 95 % interval by Student's t; of one seed without."""
    mean = float(np.mean(shares))
    if len(shares) < 2:
        return Point(x, mean)
    half = float(t.ppf(0.975, len(shares) - 1) * np.std(shares, ddof=1) / len(shares) ** 0.5)
    return Point(x, mean, max(0.0, mean - half), min(100.0, mean + half), f"{len(shares)} seeds: {mean:.1f}")


def _tabulate_ends(histories: Mapping[str, Sequence[Chapter]], measures: Sequence[Measure]) -> Table:
    rows = []
    for name, history in histories.items():
        if history:
            last = history[-1].pooled
            pairs = (measure.counts(last) for measure in measures)
            shares = (format_percent(counted / of) if of else "" for counted, of in pairs)
            rows.append((name, history[-1].name, f"{tokens_after(history)[-1]:,}".replace(",", " "), *shares))
    return Table(("run", "after", "tokens", *(f"{measure.title} %" for measure in measures)), rows)


def _flatten_settings(value: Any, path: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    if not isinstance(value, dict):
        return {path: value}
    found: dict[str, Any] = {}
    for name, inner in value.items():
        found |= _flatten_settings(inner, f"{path}.{name}".lstrip("."))
    return found
