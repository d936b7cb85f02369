"""The scores of an evaluation as a table in text."""

from collections.abc import Sequence

from tabulate import tabulate

from lakewright.experiments.boards.evaluation.scores import MOST_HOLES, JudgedScores, PlanScore, Summary, TeamScore

HEADER = ("", "", "boards", "valid % [95 %]", "opt. makespan %", "opt. cost %", "forced wait %", "most common failures")
ALIGNMENT = ("left", "left", *["right"] * 5, "left")
SHOWN_FAILURES = 2


def tabulate_summary(summary: Summary) -> str:
    """One line for each number of agents and size, their means, and all; below them pass@k, refusals and tokens."""
    lines: list[Sequence[str]] = []
    for team in summary.teams:
        cells = [cell for cell in summary.cells if cell.agents == team.agents]
        name = f"{team.agents} agent{'s' * (team.agents > 1)}"
        lines += [(name, f"{cell.size}x{cell.size}", *_format_figures(cell.score)) for cell in cells]
        if len(cells) > 1:
            lines.append((name, "mean over sizes", *_format_means(team)))
    if 1 < len(summary.hole_ratios) <= MOST_HOLES:
        lines += [
            ("all", f"hole ratio {part.hole_ratio:g}", *_format_figures(part.score)) for part in summary.hole_ratios
        ]
    if len(summary.teams) > 1 or len(summary.cells) == 1:
        lines.append(("all", "", *_format_figures(summary.pooled)))
    table = tabulate(lines, HEADER, tablefmt="plain", colalign=ALIGNMENT, disable_numparse=True)
    return "\n".join([_write_title(summary), "", table, *_list_remarks(summary)])


def _write_title(summary: Summary) -> str:
    how = "" if summary.greedy else f", the first sample at temperature {summary.temperature:g}"
    title = f"{summary.who} on {summary.boards} boards of {summary.benchmark}{how}"
    missing = summary.boards - summary.pooled.outcomes.boards
    return f"{title}; {missing} boards have no answer yet" if missing else title


def _format_figures(score: PlanScore) -> tuple[str, ...]:
    found = score.outcomes
    failures = sorted(((count, name) for name, count in found.failures.items() if count), reverse=True)
    commonest = ", ".join(f"{name.replace('_', ' ')} {count}" for count, name in failures[:SHOWN_FAILURES])
    return (
        str(found.boards),
        _with_interval(found.rate(found.valid), score.intervals["valid"]),
        _format_percent(found.rate(found.optimal_makespan)),
        _format_percent(found.rate(found.optimal_sum_of_costs)),
        _format_percent(found.wait_valid / found.wait_boards) if found.wait_boards else "-",
        commonest,
    )


def _format_means(team: TeamScore) -> tuple[str, ...]:
    boards, *_, forced, _ = _format_figures(team.score)
    return (boards, *(_format_percent(mean) for mean in team.means.values()), forced, "")


def _list_remarks(summary: Summary) -> list[str]:
    lines = []
    for name, rates in summary.pooled.pass_at.items():
        shown = "  ".join(f"pass@{rate.k} {_with_interval(rate.rate, rate.interval)}" for rate in rates)
        lines.append(f"{name.replace('_', ' ')}, {summary.samples} samples at {summary.temperature:g}: {shown}")
    if summary.judged:
        lines += _list_judged(summary.judged)
    if summary.refusals:
        reasons = sorted(summary.refusals.items(), key=lambda reason: -reason[1])
        shown = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in reasons)
        lines.append(f"answers that are not plans: {shown}")
    if summary.unlabelled:
        lines.append(f"{summary.unlabelled} boards have no known optimum and never count as optimal")
    tokens = summary.tokens
    if tokens.completion:
        spent = f"tokens: {tokens.prompt:,} in, {tokens.completion:,} out, {tokens.cut_off} answers cut off"
        lines.append(spent + (f", {tokens.dollars:.2f} dollars" if tokens.dollars else ""))
    return ["", *lines] if lines else []


def _list_judged(judged: JudgedScores) -> list[str]:
    lines = [f"planning with the simulator as judge, the best valid of {judged.answers} answers, means over sizes:"]
    for team in judged.teams:
        means = {name.replace("_", " "): _format_percent(mean) for name, mean in team.means.items()}
        shown = ", ".join(f"{name} {mean} %" for name, mean in means.items())
        lines.append(f"  {team.agents} agent{'s' * (team.agents > 1)}: {shown}")
    return lines


def _with_interval(rate: float, interval: tuple[float, float]) -> str:
    return f"{_format_percent(rate)} [{', '.join(map(_format_percent, interval))}]"


def _format_percent(rate: float) -> str:
    return f"{100 * rate:.1f}"
