"""The curves of a run as SVG. Series differ in colour (Okabe-Ito), in marker and in line; no display is needed."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from core_jax.config import EnvConfig
from core_jax.results import Outcomes
from core_jax.types import FAILURE_NAMES
from engineer.delta import FIELDS
from experiments.charts import INK, LOOK
from experiments.loop.records import Chapter, forced_rate

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8f94", "#b8a800")
PERCENT = (-2, 102)  # with room for the markers
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)), (0, (8, 2)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "---")
WIDE = (4.4, 3.5)
Draw = Callable[[Axes], None]


def rates_plot(history: Sequence[Chapter]) -> str:
    """Valid and optimal plans over the stages, on all boards and on those that force a wait."""
    return _inline("rates", lambda axes: _draw_rates(axes, history))


def sizes_plot(history: Sequence[Chapter]) -> str:
    """Valid plans per map size over the stages."""
    return _inline("sizes", lambda axes: _draw_sizes(axes, history))


def failures_plot(history: Sequence[Chapter]) -> str:
    """Failures by type over the stages, stacked."""
    return _inline("failures", lambda axes: _draw_failures(axes, history))


def reward_plot(history: Sequence[Chapter]) -> str:
    """The mean reward of each GRPO step."""

    def draw(axes: Axes) -> None:
        _draw_log(axes, history, {"reward": "mean reward"})
        axes.set(ylabel="mean reward")

    return _inline("reward", draw)


def shares_plot(history: Sequence[Chapter]) -> str:
    """Of each GRPO step, the share of valid plans, and of groups whose rewards are all equal."""

    def draw(axes: Axes) -> None:
        _draw_log(axes, history, {"valid": "valid plans", "frac_reward_zero_std": "groups of equal rewards"}, 100)
        axes.set(ylabel="%", ylim=PERCENT)
        _legend_below(axes)

    return _inline("shares", draw)


def config_plots(history: Sequence[Chapter]) -> list[str]:
    """For each map size, the ratios that the stages were drawn from; the first picture is the legend of all."""
    configs = [chapter.config for chapter in history if chapter.config]
    sizes = sorted({size for config in configs for size in config.sizes})
    return [_legend(), *(_config_plot(configs, size) for size in sizes)]


def curves_svg(history: Sequence[Chapter]) -> str:
    """The curves over the stages as one picture on white, for a README."""
    with matplotlib.rc_context(LOOK | {"svg.hashsalt": "curves"}):
        figure = Figure((9.2, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_rates(left, history)
        _draw_sizes(right, history)
        return saved(figure)


def _draw_rates(axes: Axes, history: Sequence[Chapter]) -> None:
    shares: dict[str, Callable[[Outcomes], float]] = {
        "valid": lambda found: found.rate(found.valid),
        "optimal makespan": lambda found: found.rate(found.optimal_makespan),
        "optimal sum of costs": lambda found: found.rate(found.optimal_sum_of_costs),
        "valid, wait forced": forced_rate,
    }
    for n, (name, share) in enumerate(shares.items()):
        axes.plot([100 * share(chapter.pooled) for chapter in history], **style(n), label=name)
    _finish(axes, history, "Plans for held-out boards", "%")


def _draw_sizes(axes: Axes, history: Sequence[Chapter]) -> None:
    sizes = sorted({size for chapter in history for size in chapter.validation.sizes})
    for n, size in enumerate(sizes):
        parts = [chapter.validation.sizes.get(size) for chapter in history]
        rates = [100 * part.rate(part.valid) if part else np.nan for part in parts]
        axes.plot(rates, **style(n), label=f"{size}x{size}")
    _finish(axes, history, "Valid plans by map size", "% of boards")


def _draw_failures(axes: Axes, history: Sequence[Chapter]) -> None:
    pooled = [chapter.pooled for chapter in history]
    bottom = np.zeros(len(pooled))
    for name, colour, hatch in zip(FAILURE_NAMES[1:], COLOURS, HATCHES, strict=False):
        heights = np.array([100 * found.rate(found.failures.get(name, 0)) for found in pooled])
        look: Any = {"color": colour, "hatch": hatch, "edgecolor": "#ffffff", "linewidth": 0}
        axes.bar(range(len(pooled)), heights, 0.6, bottom, **look, label=name.replace("_", " "))
        bottom += heights
    _finish(axes, history, "Failed plans by type", "% of boards")
    axes.set_ylim(0, max(1.0, 1.05 * bottom.max()))


def _draw_log(axes: Axes, history: Sequence[Chapter], names: dict[str, str], scale: float = 1) -> None:
    stages = [chapter for chapter in history if chapter.config and chapter.log]
    steps = [step for stage in stages for step in stage.log]
    for n, (name, label) in enumerate(names.items()):
        heights = [np.nan if (value := step.get(name)) is None else scale * value for step in steps]
        look = style(n) | ({"marker": ""} if len(heights) > 1 else {})
        axes.plot(range(1, len(heights) + 1), heights, **look, label=label)
    begin = 0.5
    for stage in stages:
        axes.axvline(begin, color=INK, linewidth=0.8, alpha=0.5)
        axes.text(begin, 1.0, f" {stage.name}", transform=axes.get_xaxis_transform(), va="bottom", size=8)
        begin += len(stage.log)
    axes.set(xlabel="GRPO step, all stages")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _config_plot(configs: Sequence[EnvConfig], size: int) -> str:
    def draw(axes: Axes) -> None:
        for n, field in enumerate(FIELDS):
            cells = [config.sizes.get(size) for config in configs]
            ratios = [getattr(cell, field) if cell else np.nan for cell in cells]
            axes.step(range(len(ratios)), ratios, **style(n), where="mid")
        axes.set(title=f"{size}x{size}", ylim=(-0.04, 1.04), yticks=(0, 0.5, 1), xlabel="stage")
        _ticks(axes, [str(number) for number in range(len(configs))])

    return _inline(f"config{size}", draw, (2.4, 1.9))


def _legend() -> str:
    def draw(axes: Axes) -> None:
        handles = [Line2D([], [], **style(n), label=field.replace("_", " ")) for n, field in enumerate(FIELDS)]
        axes.legend(handles=handles, loc="center", ncols=len(FIELDS), handlelength=3)
        axes.set_axis_off()

    return _inline("legend", draw, (4.4, 0.35))


def _finish(axes: Axes, history: Sequence[Chapter], title: str, unit: str) -> None:
    axes.set(title=title, xlabel="after stage", ylabel=unit, ylim=PERCENT)
    _ticks(axes, [chapter.tick for chapter in history])
    _legend_below(axes)


def _ticks(axes: Axes, names: Sequence[str]) -> None:
    every = -(-len(names) // 10)
    axes.set_xticks(range(0, len(names), every), names[::every])
    axes.set_xlim(-0.5, len(names) - 0.5)


def _legend_below(axes: Axes) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, handlelength=3)


def style(n: int) -> dict[str, Any]:
    """The look of series number `n`."""
    n %= len(COLOURS)
    return {"color": COLOURS[n], "marker": MARKERS[n], "linestyle": LINES[n]}


def _inline(name: str, draw: Draw, size: tuple[float, float] = WIDE) -> str:
    """A picture for a page: its ink is the page's, and its ids are unlike those of pictures of other names."""
    with matplotlib.rc_context(LOOK | {"svg.hashsalt": name}):
        figure = Figure(size, layout="constrained")
        draw(figure.subplots())
        svg = saved(figure, transparent=True)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    return re.sub(r' id="[a-zA-Z0-9.]+_\d+"', "", svg)


def saved(figure: Figure, transparent: bool = False) -> str:
    """A figure as SVG, the same bytes each time."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=transparent, metadata={"Date": None})
    return file.getvalue().replace("'DejaVu Sans'", "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif")
