"""The scores of an evaluation: counts and rates with intervals, for each kind of board and over all."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import msgspec
import numpy as np

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
