"""The scores of an evaluation: counts and rates with intervals, for each kind of board and over all.

Beside them stand the published scores on the authors' boards: means over sizes (arXiv 2606.17682).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from tabulate import tabulate

from lakewright.core_jax.results import BoardOutcomes, pass_at_k, wilson
from lakewright.core_jax.rows import Row, VerdictRow
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.policy.judging import best_valid

RateInterval = tuple[float, float]
CRITERIA: dict[str, Callable[[VerdictRow], bool]] = {
    "valid": lambda found: found.valid,
    "optimal_makespan": lambda found: bool(found.optimal_makespan),
    "optimal_sum_of_costs": lambda found: bool(found.optimal_sum_of_costs),
}
SIZES = {3: list(range(3, 11)), 4: list(range(4, 11)), 5: list(range(5, 11))}  # of each number of agents
JudgedAnswers = Annotated[dict[tuple[str, int], VerdictRow], "by id and sample"]
HEADER = ("", "", "boards", "valid % [95 %]", "opt. makespan %", "opt. cost %", "forced wait %", "most common failures")
ALIGNMENT = ("left", "left", *["right"] * 5, "left")
SHOWN_FAILURES = 2
MOST_HOLES = 8  # hole ratios; files of more have boards drawn at random


class PassRate(msgspec.Struct, frozen=True):
    """pass@k of one criterion with its 95 % interval."""

    k: int
    rate: float
    interval: RateInterval


class PlanScore(msgspec.Struct, frozen=True):
    """The score on some boards. outcomes: counts of one answer to each board, greedy if possible. intervals: 95 %
    (Wilson) of the rates. pass_at: rates by criterion of CRITERIA, over the boards with all samples.
    """

    outcomes: BoardOutcomes
    intervals: dict[str, RateInterval]
    pass_at: dict[str, list[PassRate]]


class CellScore(msgspec.Struct, frozen=True):
    """The boards of one number of agents and size."""

    agents: int
    size: int
    score: PlanScore


class HoleScore(msgspec.Struct, frozen=True):
    """All boards of one hole ratio: for the stratum that they were drawn for, in a benchmark."""

    hole_ratio: float
    score: PlanScore


class TeamScore(msgspec.Struct, frozen=True):
    """All boards of one number of agents. means: over the sizes that have answers, unweighted, as published tables."""

    agents: int
    sizes: list[int]
    score: PlanScore
    means: dict[str, float]


class JudgedScores(msgspec.Struct, frozen=True):
    """The scores of planning with the simulator as judge: for all answers to a board the valid one with the least sum
    of costs counts, and if no plan is valid the first. Boards without all answers do not count.
    """

    answers: int
    cells: list[CellScore]
    teams: list[TeamScore]
    pooled: PlanScore


class Tokens(msgspec.Struct, frozen=True):
    """The tokens of answers. cut_off: answers that ended at their limit. dollars: spent in the folder, also on tries
    without an answer.
    """

    answers: int
    prompt: int
    completion: int
    cut_off: int
    dollars: float


class Summary(msgspec.Struct, frozen=True):
    """summary.json. boards: how many were asked. unlabelled: those without known optima, never counted as optimal.

    complete: whether all answers were given. refusals: why answers were no plan, among `outcomes`. judged: the result
    for a user who lets the simulator choose among all answers, which is better than the policy alone.
    """

    who: str
    benchmark: str
    boards: int
    unlabelled: int
    complete: bool
    greedy: bool
    samples: int
    temperature: float
    cells: list[CellScore]
    teams: list[TeamScore]
    pooled: PlanScore
    refusals: dict[str, int]
    tokens: Tokens
    judged: JudgedScores | None = None
    hole_ratios: list[HoleScore] = []


def score_answers(
    rows: Sequence[Row], judged: JudgedAnswers, first: int, samples: int
) -> tuple[list[CellScore], list[TeamScore], PlanScore]:
    """The scores of each cell, of each number of agents, and of all boards.

    Args:
        rows: The boards.
        judged: The verdicts on the answers to them.
        first: The number of the sample that `outcomes` counts. Boards without that sample do not count.
        samples: How many samples there are of each board.
    """

    def score(some: Iterable[Row]) -> PlanScore:
        return _score_rows(list(some), judged, first, samples)

    kinds = sorted({(row.agents, row.size) for row in rows})
    cells = [
        CellScore(agents, size, score(row for row in rows if (row.agents, row.size) == (agents, size)))
        for agents, size in kinds
    ]
    teams = []
    for team in sorted({agents for agents, _ in kinds}):
        of = [cell for cell in cells if cell.agents == team]
        answered = [cell for cell in of if cell.score.outcomes.boards] or of
        means = {name: sum(map(_rate_of(name), answered)) / len(answered) for name in CRITERIA}
        teams.append(TeamScore(team, [cell.size for cell in of], score(r for r in rows if r.agents == team), means))
    return cells, teams, score(rows)


def hole_scores(rows: Sequence[Row], judged: JudgedAnswers, first: int) -> list[HoleScore]:
    """The scores by hole ratio, of rows that know theirs."""
    ratios = sorted({row.hole_ratio for row in rows if row.hole_ratio is not None})
    return [
        HoleScore(ratio, _score_rows([row for row in rows if row.hole_ratio == ratio], judged, first, 0))
        for ratio in ratios
    ]


def score_best_samples(rows: Sequence[Row], judged: JudgedAnswers, wanted: Sequence[int]) -> JudgedScores:
    """The scores of the answer that the simulator chooses for each board among the samples `wanted`."""
    chosen: dict[tuple[str, int], VerdictRow] = {}
    for row in rows:
        found = [judged[row.id, sample] for sample in wanted if (row.id, sample) in judged]
        if len(found) == len(wanted):
            chosen[row.id, 0] = found[best_valid(found) or 0]
    return JudgedScores(len(wanted), *score_answers(rows, chosen, 0, 0))


def _rate_of(name: str) -> Callable[[CellScore], float]:
    return lambda cell: cell.score.outcomes.rate(getattr(cell.score.outcomes, name))


def _score_rows(rows: list[Row], judged: JudgedAnswers, first: int, samples: int) -> PlanScore:
    found = [(row, judged[row.id, first]) for row in rows if (row.id, first) in judged]
    outcomes = _count_outcomes(found)
    intervals = {name: wilson(getattr(outcomes, name), outcomes.boards) for name in CRITERIA}
    intervals["wait_valid"] = wilson(outcomes.wait_valid, outcomes.wait_boards)
    return PlanScore(outcomes, intervals, _pass_rates(rows, judged, samples))


def _count_outcomes(found: list[tuple[Row, VerdictRow]]) -> BoardOutcomes:
    return BoardOutcomes.count(
        failure=np.array([FAILURE_NAMES.index(verdict.failure) for _, verdict in found], int),
        optimal_makespan=np.array([bool(verdict.optimal_makespan) for _, verdict in found], bool),
        optimal_sum_of_costs=np.array([bool(verdict.optimal_sum_of_costs) for _, verdict in found], bool),
        waits=np.array([bool(row.wait_required) for row, _ in found], bool),
    )


def _pass_rates(rows: list[Row], judged: JudgedAnswers, samples: int) -> dict[str, list[PassRate]]:
    drawn = [[judged.get((row.id, number)) for number in range(1, samples + 1)] for row in rows]
    whole = [[verdict for verdict in of if verdict] for of in drawn if all(of)]
    if not samples or not whole:
        return {}
    return {name: _pass_rate([sum(map(right, of)) for of in whole], samples) for name, right in CRITERIA.items()}


def _pass_rate(right: list[int], samples: int) -> list[PassRate]:
    """For k = 1, 2, 4 ... and all samples."""
    sizes = sorted({1 << power for power in range(samples.bit_length())} | {samples})
    return [PassRate(k, *pass_at_k(right, samples, k)) for k in sizes]


class PublishedScore(NamedTuple):
    """A published row: valid and optimal % by number of agents."""

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
