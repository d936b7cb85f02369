"""The charts of a run: curves over tokens, failures, training steps, and what boards were drawn from."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from scipy.stats import binomtest

from lakewright.core_jax.results import Outcomes
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.engineer.delta import FIELDS
from lakewright.engineer.difficulty import pooled_calibration
from lakewright.engineer.evidence import Evidence
from lakewright.experiments.charts.bars import stacked_bars
from lakewright.experiments.charts.heat import heat_map, ratio_labels
from lakewright.experiments.charts.lines import Point, Series, line_chart
from lakewright.experiments.charts.reliability import reliability_chart
from lakewright.experiments.loop.records import Chapter

Count = Callable[[Outcomes], tuple[int, int]]
MEASURES: dict[str, tuple[str, Count]] = {
    "valid": ("valid", lambda found: (found.valid, found.boards)),
    "optimal_makespan": ("optimal makespan", lambda found: (found.optimal_makespan, found.boards)),
    "optimal_cost": ("optimal sum of costs", lambda found: (found.optimal_sum_of_costs, found.boards)),
    "forced": ("valid, wait forced", lambda found: (found.wait_valid, found.wait_boards)),
}
PERCENT = (0.0, 100.0)
MOST_MEANS = 300


def tokens_after(history: Sequence[Chapter]) -> list[int]:
    """The tokens that were generated until the end of each stage."""
    return list(accumulate(chapter.tokens.total for chapter in history))


def share_point(x: float, count: int, of: int, words: str = "") -> Point:
    """A share in percent with its 95 % interval (Wilson, 1927); no number where there are no boards."""
    if not of:
        return Point(x, float("nan"))
    found = binomtest(count, of).proportion_ci(method="wilson")
    return Point(x, 100 * count / of, 100 * float(found.low), 100 * float(found.high), words)


def curve_of(history: Sequence[Chapter], count: Count) -> list[Point]:
    """A share over the tokens."""
    there = zip(history, tokens_after(history), strict=True)
    return [
        share_point(tokens, *(pair := count(chapter.pooled)), f"after {chapter.name}: {pair[0]} of {pair[1]}")
        for chapter, tokens in there
    ]


def rates_chart(history: Sequence[Chapter]) -> str:
    """Valid and optimal plans over the tokens."""
    series = [Series(name, curve_of(history, count)) for name, count in MEASURES.values()]
    return _over_tokens("Plans for held-out boards", series)


def sizes_chart(history: Sequence[Chapter]) -> str:
    """Valid plans per map size over the tokens."""
    sizes = sorted({size for chapter in history for size in chapter.validation.sizes})
    series = []
    for size in sizes:
        parts = zip(tokens_after(history), (chapter.validation.sizes.get(size) for chapter in history), strict=True)
        points = [share_point(tokens, found.valid, found.boards) for tokens, found in parts if found]
        series.append(Series(f"{size}x{size}", points))
    return _over_tokens("Valid plans by map size", series)


def failures_chart(history: Sequence[Chapter]) -> str:
    """Failures by type, stacked, a bar for each stage."""
    pooled = [chapter.pooled for chapter in history]
    kinds = {
        name.replace("_", " "): [100 * found.rate(found.failures.get(name, 0)) for found in pooled]
        for name in FAILURE_NAMES[1:]
    }
    ticks = [chapter.tick for chapter in history]
    return stacked_bars("Failed plans by type", ticks, kinds, x_label="after stage", y_label="% of boards")


def step_charts(logs: Mapping[str, Sequence[Mapping[str, float | None]]]) -> list[str]:
    """Mean reward, and shares of valid plans and of groups that teach nothing, over the GRPO steps of all stages."""
    steps = [step for log in logs.values() for step in log]
    begins = dict(zip(accumulate((len(log) for log in logs.values()), initial=1), logs, strict=False))

    def points(name: str, scale: float = 1.0) -> list[Point]:
        found = enumerate((step.get(name) for step in steps), 1)
        return [Point(x, scale * value) for x, value in found if isinstance(value, int | float)]

    shares = {"valid": "valid plans", "frac_reward_zero_std": "groups of equal rewards"}
    series = [Series(words, points(name, 100)) for name, words in shares.items()]
    common = {"x_label": "GRPO step, all stages", "marks": begins}
    reward = line_chart("Mean reward", [Series("mean reward", points("reward"))], y_label="mean reward", **common)  # type: ignore[arg-type]
    return [
        reward,
        line_chart("Valid plans and groups that teach nothing", series, y_label="%", y_range=PERCENT, **common),  # type: ignore[arg-type]
    ]


def forecast_chart(history: Sequence[Chapter]) -> str | None:
    """What the difficulty model expected of the groups of each stage before it, against what came; None without."""
    found = pooled_calibration([chapter.calibration for chapter in history if chapter.calibration])
    return reliability_chart({"this run": found}) if found else None


def engineer_charts(history: Sequence[Chapter]) -> list[str]:
    """What the proposals of an engineer that is trained earn, and how many are refused or different, group by group."""
    trained = [(chapter, chapter.engineer) for chapter in history if chapter.engineer]
    if not trained:
        return []
    groups = [figures for _, part in trained for figures in part]
    begins = accumulate((len(part) for _, part in trained), initial=1)
    marks = {x: chapter.name for x, (chapter, _) in zip(begins, trained, strict=False)}

    def points(name: str, scale: float = 1.0) -> list[Point]:
        return [Point(x, scale * figures[name]) for x, figures in enumerate(groups, 1)]

    shares = {"distinct": "different answers", "refused": "refused", "projected": "held back in part"}
    series = [Series(words, points(name, 100)) for name, words in shares.items()]
    common = {"x_label": "group of proposals, all stages", "marks": marks}
    return [
        line_chart("Reward of proposals", [Series("mean reward", points("reward"))], y_label="mean reward", **common),  # type: ignore[arg-type]
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
    return line_chart("Loss of the warm-up", [Series("loss", points)], x_label="step", y_label="loss")


def config_charts(history: Sequence[Chapter]) -> list[str]:
    """For each ratio of the config, its value on every size over the stages."""
    staged = [(float(n), chapter.config) for n, chapter in enumerate(c for c in history if c.config) if chapter.config]
    sizes = sorted({size for _, config in staged for size in config.sizes})
    names = {n: f"{n:.0f}" for n, _ in staged}
    charts = []
    for field in FIELDS:
        series = [
            Series(f"{size}x{size}", [Point(n, getattr(c.sizes[size], field)) for n, c in staged if size in c.sizes])
            for size in sizes
        ]
        title = field.replace("_", " ").capitalize()
        charts.append(line_chart(title, series, x_label="stage", names=names, y_range=(0.0, 1.0)))
    return charts


def difficulty_map(evidence: Evidence, title: str) -> str:
    """The share of valid plans in training, by size and by hole ratio and forced wait."""
    rates = {(cell.size, cell.hole_ratio, cell.forced): cell.groups for cell in evidence.groups}
    sizes = sorted({size for size, _, _ in rates})
    kinds = sorted({(ratio, forced) for _, ratio, forced in rates})
    values = [[_success_rate(rates, size, kind) for kind in kinds] for size in sizes]
    labels = ratio_labels([ratio for ratio, _ in kinds])
    columns = [f"{label}{' W' if forced else ''}" for label, (_, forced) in zip(labels, kinds, strict=True)]
    rows = [f"{size}x{size}" for size in sizes]
    return heat_map(title, rows, columns, values, "valid plans in %, by hole ratio (W: wait forced)", top=100)


def _success_rate(rates: Mapping, size: int, kind: tuple[float, bool]) -> float | None:
    found = rates.get((size, *kind))
    return None if found is None else 100 * found.success


def _over_tokens(title: str, series: Sequence[Series]) -> str:
    return line_chart(title, series, x_label="tokens generated", y_label="%", y_range=PERCENT)
