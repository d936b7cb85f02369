"""The charts of a run: curves over tokens, failures, training steps, and what boards were drawn from."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from lakewright.core_jax.results import wilson
from lakewright.engineer.cells import Knob, Stratum, Value
from lakewright.engineer.difficulty import pool_calibrations
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.windows import find_middle
from lakewright.experiments.loop.records.history import Chapter
from lakewright.experiments.viewer.catalogue.run_space import CountPart, RunSpace
from lakewright.experiments.viewer.charts.heat import heat_map, ratio_labels
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart, reliability_chart
from lakewright.experiments.viewer.charts.rows import stacked_bars

PERCENT = (0.0, 100.0)
MOST_MEANS = 300


def tokens_after(history: Sequence[Chapter]) -> list[int]:
    """The tokens that were generated until the end of each stage."""
    return list(accumulate(chapter.tokens.total for chapter in history))


def tokens_before_validation(history: Sequence[Chapter]) -> list[int]:
    """The tokens that were generated before each validation: the engineer and a trial of the same stage follow it."""
    before = [0, *tokens_after(history)]
    return [
        sum((tokens, chapter.tokens.training, chapter.tokens.sampling))
        for tokens, chapter in zip(before, history, strict=False)
    ]


def share_point(x: float, count: int, of: int, words: str = "") -> Point:
    """A share in percent with its 95 % interval (Wilson, 1927); no number without problems.

    Args:
        x: the position.
        count: the number of problems that have the property.
        of: the number of all problems.
        words: the label of the point.
    """
    if not of:
        return Point(x, float("nan"))
    low, high = wilson(count, of)
    return Point(x, 100 * count / of, 100 * low, 100 * high, words)


def curve_of(history: Sequence[Chapter], count: CountPart) -> list[Point]:
    """A share over the tokens."""
    there = zip(history, tokens_before_validation(history), strict=True)
    return [
        share_point(tokens, *(pair := count(chapter.pooled)), f"after {chapter.name}: {pair[0]} of {pair[1]}")
        for chapter, tokens in there
    ]


def rates_chart(history: Sequence[Chapter], about: RunSpace) -> str:
    """Valid answers, those with a grade and those to problems with a trait, over the tokens."""
    words = about.space.words
    series = [Series(measure.title, curve_of(history, measure.counts)) for measure in about.measures]
    return _over_tokens(f"{words.answers.capitalize()} on held-out {words.problems}", series)


def strata_chart(history: Sequence[Chapter], about: RunSpace) -> str:
    """Valid answers by stratum over the tokens."""
    words = about.space.words
    series = []
    for stratum in list_strata(history, about.space):
        outcomes = [chapter.validation.outcomes.get(stratum) for chapter in history]
        parts = zip(tokens_before_validation(history), outcomes, strict=True)
        points = [share_point(tokens, found.valid, found.problems) for tokens, found in parts if found]
        series.append(Series(words.label(stratum), points))
    return _over_tokens(f"Valid {words.answers} by {words.stratum}", series)


def list_strata(history: Sequence[Chapter], space: DesignSpace) -> list[Stratum]:
    """The strata of the held-out problems, by rank."""
    return space.sort_strata(dict.fromkeys(stratum for chapter in history for stratum in chapter.validation.outcomes))


def failures_chart(history: Sequence[Chapter], about: RunSpace) -> str:
    """Failures by type, stacked, a bar for each stage."""
    pooled, words = [chapter.pooled for chapter in history], about.space.words
    kinds = {
        name.replace("_", " "): [100 * found.rate(found.failures.get(name, 0)) for found in pooled]
        for name in about.space.failures
    }
    ticks = [chapter.tick for chapter in history]
    title, unit = f"Failed {words.answers} by type", f"% of {words.problems}"
    return stacked_bars(title, ticks, kinds, x_label="after stage", y_label=unit)


def step_charts(logs: Mapping[str, Sequence[Mapping[str, float | None]]], about: RunSpace) -> list[str]:
    """Mean reward, and shares of valid answers and of groups that teach nothing, over the GRPO steps of all stages."""
    answers = about.space.words.answers
    steps = [step for log in logs.values() for step in log]
    begins = dict(zip(accumulate((len(log) for log in logs.values()), initial=1), logs, strict=False))

    def points(name: str, scale: float = 1.0) -> list[Point]:
        found = enumerate((step.get(name) for step in steps), 1)
        return [Point(x, scale * value) for x, value in found if isinstance(value, int | float)]

    shares = {"valid": f"valid {answers}", "frac_reward_zero_std": "groups of equal rewards"}
    series = [Series(words, points(name, 100)) for name, words in shares.items()]
    common = {"x_label": "GRPO step, all stages", "marks": begins}
    reward = line_chart("Mean reward", [Series("mean reward", points("reward"))], **common)  # type: ignore[arg-type]
    return [
        reward,
        line_chart(f"Valid {answers} and groups that teach nothing", series, y_label="%", y_range=PERCENT, **common),  # type: ignore[arg-type]
    ]


def forecast_chart(history: Sequence[Chapter], about: RunSpace) -> str | None:
    """The outcomes of each stage's groups against the forecast of the difficulty model; None without one."""
    found = pool_calibrations([chapter.calibration for chapter in history if chapter.calibration])
    return reliability_chart({"this run": found}, about.space.words.answers) if found else None


def engineer_charts(history: Sequence[Chapter]) -> list[str]:
    """The rewards of a trained engineer's proposals, and how many are refused or different, group by group."""
    trained = [(chapter, chapter.engineer) for chapter in history if chapter.engineer]
    if not trained:
        return []
    groups = [figures for _, part in trained for figures in part]
    begins = accumulate((len(part) for _, part in trained), initial=1)
    marks = {x: chapter.name for x, (chapter, _) in zip(begins, trained, strict=False)}

    def points(name: str, scale: float = 1.0) -> list[Point]:
        return [Point(x, scale * figures[name]) for x, figures in enumerate(groups, 1)]

    shares = {"distinct": "different answers", "refused": "refused", "projected": "clipped"}
    series = [Series(words, points(name, 100)) for name, words in shares.items()]
    common = {"x_label": "group of proposals, all stages", "marks": marks}
    return [
        line_chart("Reward of proposals", [Series("mean reward", points("reward"))], **common),  # type: ignore[arg-type]
        line_chart("Proposals", series, y_label="% of a group", y_range=PERCENT, **common),  # type: ignore[arg-type]
    ]


def warmup_chart(log: Sequence[Mapping[str, float | None]]) -> str:
    """The loss over the steps of the warm-up, means over at most MOST_MEANS stretches of them."""
    stretch = -(-len(log) // MOST_MEANS)
    points = []
    for first in range(0, len(log), stretch):
        part = log[first : first + stretch]
        losses = [loss for step in part if isinstance(loss := step.get("loss"), int | float)]
        if losses:
            points.append(Point(first + len(part) / 2, sum(losses) / len(losses)))
    return line_chart("Loss of the warm-up", [Series("loss", points)], x_label="step")


def design_charts(history: Sequence[Chapter], about: RunSpace) -> list[str]:
    """For the share and each knob of the design, its value or the middle of its window in every stratum by stage."""
    designs = [chapter.design for chapter in history if chapter.design]
    strata = about.space.sort_strata(dict.fromkeys(stratum for design in designs for stratum in design.strata))
    names = {float(n): f"{n}" for n in range(len(designs))}
    charts = []
    for column in about.space.columns:
        series = []
        for stratum in strata:
            rows = [(n, design.strata[stratum]) for n, design in enumerate(designs) if stratum in design.strata]
            points = [Point(n, float(find_middle(row, column))) for n, row in rows]
            series.append(Series(about.label(stratum), points))
        title, span = column.name.replace("_", " ").capitalize(), (min(0.0, column.low), max(1.0, column.high))
        charts.append(line_chart(title, series, x_label="stage", names=names, y_range=span))
    return charts


def difficulty_map(evidence: Evidence, title: str, about: RunSpace) -> str:
    """The share of valid answers in training, by stratum and by the values of the knobs."""
    rates = {(found.cell.stratum, found.cell.values): 100 * found.groups.success for found in evidence.groups}
    strata = about.space.sort_strata({stratum for stratum, _ in rates})
    kinds = sorted({values for _, values in rates})
    values = [[rates.get((stratum, kind)) for kind in kinds] for stratum in strata]
    knobs = about.space.knobs
    marks = _mark_traits([knobs[place] for place in about.space.traits])
    levels = " and ".join(knobs[place].name.replace("_", " ") for place in about.space.levels)
    legend = "; ".join(
        f"{mark}: {about.space.words.trait_rate(knobs[place]).title}"
        for place, mark in zip(about.space.traits, marks, strict=True)
    )
    unit = f"valid {about.space.words.answers} in %{f', by {levels}' * bool(levels)}{f' ({legend})' * bool(legend)}"
    rows, columns = [about.label(stratum) for stratum in strata], _label_kinds(kinds, about.space, marks)
    return heat_map(title, rows, columns, values, unit, top=100)


def _mark_traits(traits: Sequence[Knob]) -> list[str]:
    """A letter for each trait; its word if two begin alike."""
    letters = [knob.short[0].upper() for knob in traits]
    return [mark if letters.count(mark) == 1 else knob.short for mark, knob in zip(letters, traits, strict=True)]


def _label_kinds(kinds: Sequence[tuple[Value, ...]], space: DesignSpace, marks: Sequence[str]) -> list[str]:
    """The values of the levels, and the marks of the traits that problems have."""
    columns = []
    for place in space.levels:
        values = [kind[place] for kind in kinds]
        columns.append([f"{value:g}" for value in values] if space.knobs[place].whole else ratio_labels(values))
    labels = []
    for number, kind in enumerate(kinds):
        levels = ", ".join(column[number] for column in columns)
        marked = [mark for place, mark in zip(space.traits, marks, strict=True) if kind[place]]
        labels.append(" ".join(filter(None, [levels, *marked])) or ("other" if space.traits else "all"))
    return labels


def _over_tokens(title: str, series: Sequence[Series]) -> str:
    return line_chart(title, series, x_label="tokens generated", y_label="%", y_range=PERCENT)
