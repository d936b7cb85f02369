"""The picture of an evaluation: its scores and the published ones."""

from pathlib import Path
from typing import NamedTuple

from lakewright.core_jax.results import mean_of_rates
from lakewright.experiments.boards.evaluation.scores import SIZES, Summary, TeamScore
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


class PublishedScore(NamedTuple):
    """A published row on the authors' boards, means over sizes (arXiv 2606.17682): % by number of agents."""

    who: str
    valid: dict[int, float]
    optimal: dict[int, float]


def _read_score(who: str, *pairs: tuple[float, float]) -> PublishedScore:
    valid, optimal = ({agents: pair[of] for agents, pair in zip(SIZES, pairs, strict=True)} for of in (0, 1))
    return PublishedScore(who, valid, optimal)


PUBLISHED = (
    _read_score("GPT-5.4", (32.50, 20.58), (17.05, 10.86), (9.11, 6.00)),
    _read_score("Grok-4.2", (33.42, 21.00), (23.43, 15.33), (12.89, 8.78)),
    _read_score("Gemini-3.1-Pro", (24.50, 15.33), (12.95, 10.10), (4.78, 3.56)),
    _read_score("Kimi-K2.5", (46.17, 29.25), (26.95, 17.90), (13.47, 8.78)),
    _read_score("Qwen3-4B", (14.83, 14.00), (3.43, 3.05), (1.44, 1.22)),
    _read_score("Qwen3-4B + GRPO, fixed config", (40.42, 26.08), (26.67, 16.10), (15.11, 9.11)),
    _read_score("Qwen3-4B + GRPO, engineer: base", (45.21, 30.00), (27.62, 19.62), (16.00, 10.89)),
    _read_score("Qwen3-4B + GRPO, engineer: itself", (51.67, 31.67), (33.14, 21.33), (18.67, 11.00)),
)


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
