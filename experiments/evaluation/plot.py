"""The picture of an evaluation: its scores and the published ones."""

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lakewright.core_jax.results import mean_of_rates
from lakewright.core_jax.support import replacing
from lakewright.experiments.charts.frame import INK, LOOK
from lakewright.experiments.evaluation.scores import PUBLISHED, SIZES, Summary, TeamScore

FORMS = ("png", "svg")
OURS, THEIRS = "#e8a15a", "#c9d1d9"
OPTIMAL = {"sum_of_costs": "D", "makespan": "^"}
LABEL = 34  # characters
NOTE = "Published rows: on the authors' boards; of which cost their `optimal` is, is not known."


def write_plots(summary: Summary, folder: Path) -> list[Path]:
    """Writes plot.png and plot.svg to `folder`: a panel for each number of agents."""
    paths = [folder / f"plot.{form}" for form in FORMS]
    with matplotlib.rc_context(LOOK | {"svg.hashsalt": "evaluation"}):
        figure = _draw_figure(summary)
        for path, form in zip(paths, FORMS, strict=True):
            with replacing(path) as beside:
                metadata = {"Date": None} if form == "svg" else None
                figure.savefig(beside, format=form, dpi=150, metadata=metadata)
    return paths


def _draw_figure(summary: Summary) -> Figure:
    teams = summary.teams
    lines = max(len(_select_published(team)) for team in teams) + 2
    height = 1.6 + 0.3 * lines + (0.6 if len(teams) == 1 else 0)
    figure = Figure((2.9 + 3.1 * len(teams), height), layout="constrained")
    panels = figure.subplots(
        1, len(teams), sharey=len({len(_select_published(team)) for team in teams}) == 1, squeeze=False
    )
    for axes, team in zip(panels[0], teams, strict=True):
        _draw_team(axes, team, summary)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=1 if len(teams) == 1 else 3, fontsize=9)
    if any(_select_published(team) for team in teams):
        figure.supxlabel(NOTE, fontsize=8, x=0.01, ha="left")
    return figure


def _draw_team(axes: Axes, team: TeamScore, summary: Summary) -> None:
    """Draws our score on top, and below it the published ones in their order."""
    rows = _select_published(team)[::-1]
    of = [cell.score.outcomes for cell in summary.cells if cell.agents == team.agents]
    mean, ends = mean_of_rates([(found.valid, found.boards) for found in of if found.boards] or [(0, 0)])
    valid, (low, high) = 100 * mean, (100 * end for end in ends)
    for place, (_, rate, optimal) in enumerate(rows):
        axes.barh(place, rate, 0.66, color=THEIRS, label="valid, published" if not place else None)
        axes.plot(optimal, place, "o", color=INK, markersize=4.5, label="optimal, published" if not place else None)
        axes.text(rate + 1.2, place, f"{rate:.2f}", va="center", size=8)
    place = len(rows)
    axes.barh(place, valid, 0.66, color=OURS, label="valid, here, with its 95 % interval")
    axes.errorbar(valid, place, xerr=[[valid - low], [high - valid]], color=INK, capsize=3, linewidth=1.2)
    axes.text(min(high, 100) + 1.8, place, f"{valid:.1f}", va="center", size=8, weight="bold")
    for cost, marker in OPTIMAL.items():
        label = f"optimal {cost.replace('_', ' ')}, here"
        axes.plot(100 * team.means[f"optimal_{cost}"], place, marker, color=INK, markersize=6, label=label)
    if judged := summary.judged:
        [chosen] = [one for one in judged.teams if one.agents == team.agents]
        label = f"valid, here, with the simulator as judge of {judged.answers} answers"
        axes.plot(100 * chosen.means["valid"], place, "|", color=OURS, markersize=16, markeredgewidth=3, label=label)
    axes.set_yticks(range(place + 1), [*(published for published, _, _ in rows), _shorten_name(summary.who)])
    for name in axes.get_yticklabels()[-1:]:  # panels that share an axis have none
        name.set_fontweight("bold")
    sizes = f"{team.sizes[0]}x{team.sizes[0]}" + (f" .. {team.sizes[-1]}x{team.sizes[-1]}" if team.sizes[1:] else "")
    axes.set(title=f"{team.agents} agents, {sizes}", xlabel="% of boards, mean over sizes", xlim=(0, 112))
    axes.set_xticks(range(0, 101, 20))
    axes.grid(axis="y", visible=False)


def _shorten_name(who: str) -> str:
    """The end of a long name, which may be a path."""
    return who if len(who) <= LABEL else f"... {who[4 - LABEL :]}"


def _select_published(team: TeamScore) -> list[tuple[str, float, float]]:
    """Name, valid and optimal % of the published rows on boards of the same sizes."""
    if SIZES.get(team.agents) != team.sizes:
        return []
    return [(row.who, row.valid[team.agents], row.optimal[team.agents]) for row in PUBLISHED]
