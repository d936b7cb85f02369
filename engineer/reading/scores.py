"""The score of a reader on pairs of evidence: changes that follow it, and what its designs are worth by it."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.worth import Mix, estimate_worth
from lakewright.engineer.environment import Environment
from lakewright.engineer.guard import GivenBounds, GuardSettings, project_delta
from lakewright.engineer.reading.forms import FormAnswer, make_steps, map_signs, name_place
from lakewright.engineer.reading.pairs import RULES, Pair

RESAMPLES = 2000
GUARD = GuardSettings()


class Interval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mean over pairs with its 95 % bootstrap interval, pairs being drawn again."""

    mean: float
    low: float
    high: float


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The score of a reader on pairs.

    pairs, unread: the number of pairs, and of answers that mean no delta. deciding: the changes that the evidence
    decides, two for each that a pair has. made: the number of them that the reader makes. follows: the share of them
    with the rule's sign; a reader that ignores the evidence has 0.5. p_value: one-sided, for a share above 0.5.
    columns: the same share by column. calibrated: the share without the reader's own leaning; None if it gives no odds.
    true, exchanged: the worth of its designs beyond the current one, by the evidence it read and by the other; gain:
    the difference, the worth of reading.
    """

    pairs: int
    unread: int
    deciding: int
    made: int
    follows: Interval | None
    p_value: float
    columns: dict[str, float]
    calibrated: Interval | None
    true: Interval
    exchanged: Interval
    gain: Interval


def score_reader(
    pairs: Sequence[Pair], answers: Sequence[tuple[FormAnswer, FormAnswer]], environment: Environment
) -> Score:
    """The score of the answers to the true and the exchanged evidence of each pair.

    pairs, answers: alike in number. environment: the pairs' own.

    The test exchanges the two answers of pairs at random: a reader that ignores the evidence gives both alike.
    """
    deltas = [[answer.delta for answer in both] for both in answers]
    counts = [_count_changes(pair, both, environment) for pair, both in zip(pairs, deltas, strict=True)]
    totals = np.sum(counts, axis=1)
    by_column = zip(environment.space.columns, np.sum(counts, axis=0).tolist(), strict=True)
    worths = np.array([_measure_worths(pair, both, environment) for pair, both in zip(pairs, deltas, strict=True)])
    return Score(
        pairs=len(pairs),
        unread=sum(delta is None for both in deltas for delta in both),
        deciding=2 * sum(len(pair.deciding) for pair in pairs),
        made=int(totals.sum()),
        follows=_estimate_share(totals),
        p_value=_test_by_exchange(totals[:, 0] - totals[:, 1]),
        columns={column.name: yes / (yes + no) for column, (yes, no) in by_column if yes + no},
        calibrated=_calibrate(pairs, answers, environment),
        true=_estimate_mean(worths[:, 0]),
        exchanged=_estimate_mean(worths[:, 1]),
        gain=_estimate_mean(worths[:, 0] - worths[:, 1]),
    )


def answer_by_rule(pair: Pair, environment: Environment) -> tuple[FormAnswer, FormAnswer]:
    """The answers of a reader that follows the evidence perfectly."""
    rule, space = RULES[pair.kind], environment.space
    true, exchanged = (FormAnswer(rule.make_delta(shown, pair.design, space)) for shown in pair.evidence)
    return true, exchanged


def measure_delta(delta: Delta, design: Design, truth: Forecast, environment: Environment) -> float:
    """The worth that a delta adds to a design, in units of the truth's objective.

    Args:
        delta, design: the change, and what it changes.
        truth: the forecast that gives the cells' worth.
        environment: the design's environment.
    """
    changed = environment.cells(_apply_delta(design, delta, environment))
    return estimate_worth(truth.model, changed, environment.space, environment.cells(design)).mean


def _count_changes(pair: Pair, deltas: Sequence[Delta | None], environment: Environment) -> np.ndarray:
    """Of the deciding changes by column those that follow the evidence and those that oppose it, int [columns, 2]."""
    places = {column.name: place for place, column in enumerate(environment.space.columns)}
    counts = np.zeros((len(places), 2), int)
    for turn, delta in zip((1, -1), deltas, strict=True):
        signs = map_signs(delta, pair.design, environment.space)
        for (stratum, column), sign in pair.deciding.items():
            agreement = turn * sign * signs[stratum, column]
            counts[places[column]] += (agreement > 0, agreement < 0)
    return counts


def _measure_worths(pair: Pair, deltas: Sequence[Delta | None], environment: Environment) -> tuple[float, float]:
    """The worth of the designs beyond the current one: by the evidence that was shown, and by the other."""
    now = environment.cells(pair.design)

    def measure(mix: Mix) -> float:
        return estimate_worth(pair.truth.model, mix, environment.space, now).mean

    def exchange(mix: Mix) -> Mix:
        return {cell._replace(stratum=pair.other.get(cell.stratum, cell.stratum)): part for cell, part in mix.items()}

    # Under the exchanged evidence a stratum is worth what the other is under the true one.
    one, two = (environment.cells(_apply_delta(pair.design, delta, environment)) for delta in deltas)
    return (measure(one) + measure(exchange(two))) / 2, (measure(two) + measure(exchange(one))) / 2


def _apply_delta(design: Design, delta: Delta | None, environment: Environment) -> Design:
    # As if all problems could be drawn: what they are worth does not depend on it, and asking takes long.
    roomy = GivenBounds(environment.space, lambda cell: True)
    return design if delta is None else project_delta(design, delta, roomy, GUARD).design


def _calibrate(
    pairs: Sequence[Pair], answers: Sequence[tuple[FormAnswer, FormAnswer]], environment: Environment
) -> Interval | None:
    """The share that follows, where the odds of each column are compared with their mean over the other pairs."""
    if not all(answer.odds for both in answers for answer in both) or len(pairs) < 2:
        return None
    counts = []
    for place, (pair, both) in enumerate(zip(pairs, answers, strict=True)):
        others = itertools.chain(*answers[:place], *answers[place + 1 :])
        leaning = _average_odds(others)
        deltas = [_answer_beyond(answer.odds, leaning, pair, environment) for answer in both]
        counts.append(_count_changes(pair, deltas, environment).sum(axis=0))
    return _estimate_share(np.array(counts))


def _average_odds(answers: Iterable[FormAnswer]) -> dict[str, float]:
    """The mean log-odds of each column."""
    found: dict[str, list[float]] = {}
    for answer in answers:
        for name, odds in answer.odds.items():
            found.setdefault(name.rpartition(" ")[2], []).append(odds)
    return {column: float(np.mean(odds)) for column, odds in found.items()}


def _answer_beyond(
    odds: Mapping[str, float], leaning: Mapping[str, float], pair: Pair, environment: Environment
) -> Delta:
    signs = {
        (stratum, column.name): int(np.sign(odds[name] - leaning.get(column.name, 0.0)))
        for stratum in pair.design.strata
        for column in environment.space.columns
        if (name := name_place(stratum, column.name)) in odds
    }
    return make_steps(signs, "calibrated", environment.space)


def _estimate_share(totals: np.ndarray) -> Interval | None:
    """The share of the changes made, int [pairs, 2], that follow; None if no change was made."""
    follows, made = totals[:, 0], totals.sum(axis=1)
    if not made.sum():
        return None
    drawn = np.random.default_rng(0).integers(len(totals), size=(RESAMPLES, len(totals)))
    resampled = made[drawn].sum(axis=1)
    shares = follows[drawn].sum(axis=1)[resampled > 0] / resampled[resampled > 0]
    return Interval(float(follows.sum() / made.sum()), *np.percentile(shares, [2.5, 97.5]).tolist())


def _estimate_mean(values: np.ndarray) -> Interval:
    drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    return Interval(float(values.mean()), *np.percentile(values[drawn].mean(axis=1), [2.5, 97.5]).tolist())


def _test_by_exchange(leads: np.ndarray) -> float:
    """One-sided: how often the answers of pairs, exchanged at random, follow the evidence at least as much."""
    signs = np.random.default_rng(0).choice([-1, 1], size=(RESAMPLES * 5, len(leads)))
    reached = (signs * leads).sum(axis=1) >= leads.sum()
    return float((1 + reached.sum()) / (1 + len(reached)))
