"""The picture of an evaluation: its scores and the published ones."""

from pathlib import Path

from lakewright.core_jax.results import mean_of_rates
from lakewright.experiments.boards.evaluation.scores import PUBLISHED, SIZES, Summary, TeamScore
from lakewright.experiments.viewer.charts.frame import INK, join_pictures, save_picture
from lakewright.experiments.viewer.charts.rows import Bar, ChartRow, Mark, row_chart

OURS, THEIRS = "#e8a15a", "#c9d1d9"
OPTIMAL = {"sum_of_costs": "diamond", "makespan": "triangle"}
LABEL = 34  # characters
NOTE = "published rows: on the authors' boards;\nwhich cost their `optimal` means is unknown"
LEGEND = {
    "valid, here, with its 95 % interval": Mark(0, "box", OURS),
    "valid, published": Mark(0, "box", THEIRS),
    "optimal, published": Mark(0, "disc", INK),
} | {f"optimal {cost.replace('_', ' ')}, here": Mark(0, shape, INK) for cost, shape in OPTIMAL.items()}


def write_plots(summary: Summary, folder: Path) -> list[Path]:
    """Writes plot.svg and plot.png to `folder` and returns their paths."""
    return save_picture(evaluation_svg(summary), folder, "plot")


def evaluation_svg(summary: Summary) -> str:
    """One picture on white, with a chart for each number of agents."""
    charts = [_draw_team(team, summary, explained=not place) for place, team in enumerate(summary.teams)]
    return join_pictures(charts, columns=2)


def _draw_team(team: TeamScore, summary: Summary, explained: bool) -> str:
    """Our score on top, then the published scores in their order. explained: whether to draw a legend."""
    published = _select_published(team)
    sizes = f"{team.sizes[0]}x{team.sizes[0]}" + (f" .. {team.sizes[-1]}x{team.sizes[-1]}" if team.sizes[1:] else "")
    judged = _find_judged(team, summary)
    legend = {name: mark for name, mark in LEGEND.items() if published or not name.endswith("published")}
    legend |= {judged.words: judged} if judged else {}
    return row_chart(
        f"{team.agents} agents, {sizes}",
        [_draw_ours(team, summary, judged), *(_draw_published(*row) for row in published)],
        x_label="% of boards, mean over sizes" + (f"\n{NOTE}" if published and explained else ""),
        x_range=(0, 112),
        legend=legend if explained else None,
    )


def _draw_ours(team: TeamScore, summary: Summary, judged: Mark | None) -> ChartRow:
    outcomes = [cell.score.outcomes for cell in summary.cells if cell.agents == team.agents]
    mean, ends = mean_of_rates([(found.valid, found.boards) for found in outcomes if found.boards] or [(0, 0)])
    valid, low, high = 100 * mean, *(100 * end for end in ends)
    marks = [Mark(valid, "line", INK, (low, high), f"{valid:.1f} % valid")]
    for cost, shape in OPTIMAL.items():
        marks.append(Mark(100 * team.means[f"optimal_{cost}"], shape, INK))
    bar = Bar(valid, OURS, f"{valid:.1f}", max(high, *(mark.x for mark in marks)))
    return ChartRow(_shorten_name(summary.who), [*marks, *([judged] if judged else [])], bar)


def _find_judged(team: TeamScore, summary: Summary) -> Mark | None:
    """The mark for letting the simulator choose among all answers."""
    if not summary.judged:
        return None
    [chosen] = [one for one in summary.judged.teams if one.agents == team.agents]
    words = f"valid, here, with the simulator as judge of {summary.judged.answers} answers"
    return Mark(100 * chosen.means["valid"], "line", OURS, words=words)


def _draw_published(name: str, valid: float, optimal: float) -> ChartRow:
    return ChartRow(name, [Mark(optimal, "disc", INK)], Bar(valid, THEIRS, f"{valid:.2f}", optimal))


def _shorten_name(who: str) -> str:
    """The end of a long name, which may be a path."""
    return who if len(who) <= LABEL else f"... {who[4 - LABEL :]}"


def _select_published(team: TeamScore) -> list[tuple[str, float, float]]:
    """Name, valid % and optimal % of the published rows for boards of the same sizes."""
    if SIZES.get(team.agents) != team.sizes:
        return []
    return [(row.who, row.valid[team.agents], row.optimal[team.agents]) for row in PUBLISHED]
