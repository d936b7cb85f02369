"""The fit of `Abilities`: a smoother over the rounds of each stratum inside an EM algorithm for what strata share."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from lakewright.engineer.cells import Stratum
from lakewright.engineer.difficulty.abilities import (
    OTHERS,
    OWN,
    Abilities,
    Effects,
    Rates,
    apply_logistic,
    compute_effects,
    describe_effects,
    regress_on_order,
    share_signals,
)
from lakewright.engineer.difficulty.graded_rewards import measure_graded
from lakewright.engineer.difficulty.model import Objective, Observation, receive_signals
from lakewright.engineer.space import DesignSpace

ROUNDS = 16  # of which answers count; older ones tell little of a policy that moved
STEPS = 4000  # strata times rounds, at most, so that the time of a fit is bounded
TURNS = 12  # of EM
STEP = 0.15  # in logits: what the random step of a round is supposed to be before any answer
PRIOR_STRATA = 3.0  # how many strata the supposed spreads count for
PRIOR_STEPS = 8.0  # how many steps the supposed step counts for
MOST_OWED = 0.8  # the most of a stratum's posterior that may be owed to its prior, when it counts for the mean
PRIOR_EVENNESS = (1.8, 2.0)  # what evenness is supposed to be before any group, .9, as if seen in two groups
LEAST_EVEN = 0.05
PRIOR_UNEVENNESS = 0.1  # the supposed standard deviation of evenness over strata, as if seen in PRIOR_STRATA of them
EVENNESS_VARIANCE = 0.12  # the variance of the evenness of one group, of about p = 1/2
MOST_MOVE = 3.0  # in logits, of one turn


class Answers(NamedTuple):
    """Observations as arrays, float or int [N]: stratum, time, and counts of answers and valid answers.

    size: answers to a problem, by which answers are alike; those to held-out problems are single.
    """

    effects: np.ndarray
    stratum: np.ndarray
    time: np.ndarray
    answers: np.ndarray
    valid: np.ndarray
    size: np.ndarray


class StrataPrior(NamedTuple):
    """The prior of every stratum, which EM learns.

    mean: B, float [K, Z]; doubt: its posterior variances. variance: tau^2, float [K]. rate, rate_doubt, rate_variance:
    the same of the rates, float [R]. step: the variance of an ability's random step.
    """

    mean: np.ndarray
    doubt: np.ndarray
    variance: np.ndarray
    rate: np.ndarray
    rate_doubt: np.ndarray
    rate_variance: np.ndarray
    step: float


class SmoothedStates(NamedTuple):
    """The posterior at each of T + 1 points in time: mean float [T + 1, S, D], covariance [T + 1, S, D, D].

    moved: float [S, K], the sum over the rounds of the expected squares of the random steps.
    """

    mean: np.ndarray
    covariance: np.ndarray
    moved: np.ndarray


class Fitted(NamedTuple):
    """Abilities, how even the problems of a cell are in all, and the groups or single answers that were counted."""

    abilities: Abilities
    evenness: float
    groups: float


def fit_abilities(
    observations: Sequence[Observation],
    tested: Sequence[Observation],
    space: DesignSpace,
    objective: Objective,
    doubted: Collection[Stratum] = (),
) -> Fitted:
    """The posterior after the youngest round.

    Args:
        observations: groups; at age a, sampled a rounds ago before the training on them, or in a trial after it.
        tested: answers to held-out problems; at age a, given after the training of a rounds ago.
        space: the design space of the cells, which have their givens.
        objective: what signal a group gives.
        doubted: strata that say nothing of others, because their graders may be broken.

    Each of TURNS turns has three steps. A logistic likelihood is made normal at its mode (iterated reweighted least
    squares). A smoother over the rounds finds each stratum's posterior (Rauch, Tung, Striebel 1965). From these the
    prior that strata share is estimated (empirical Bayes by EM; Dempster, Laird, Rubin 1977).

    The answers to one problem are alike with a correlation of 1 - evenness of its stratum, so G of them weigh
    G / (1 + (G - 1) (1 - evenness)).
    """
    effects, rates = describe_effects(space)
    order = regress_on_order(space)
    parts = (effects.mean.copy(), effects.deviation**2, effects.spread**2)
    shared = StrataPrior(*parts, rates.mean.copy(), rates.deviation**2, rates.spread**2, STEP**2)
    used = sorted({space.ranks[seen.cell.stratum] for seen in (*observations, *tested)})
    if not used:
        mean, covariance = _predict_unseen(shared, order)
        return Fitted(_make_abilities(mean, covariance, 1.0, shared, []), 1.0, 0.0)
    rounds = max(1, min(ROUNDS, STEPS // len(used)))
    recent = [seen for seen in observations if seen.age < rounds]
    observations = [seen for seen in recent if not seen.tried]
    tested = [*(seen for seen in recent if seen.tried), *(seen for seen in tested if seen.age < rounds)]
    # Point t is before the training of round t: its groups are observed there, trials and held-out answers at t + 1.
    last = 1 + max((seen.age for seen in (*observations, *tested)), default=0)
    answers = _list_answers(observations, tested, last, used, space)
    signals, unit = _list_signals(observations, last, space, objective)
    evenness, logits = np.full(len(used), PRIOR_EVENNESS[0] / PRIOR_EVENNESS[1]), np.zeros(len(answers.time))
    trusted = [place for place, rank in enumerate(used) if space.strata[rank] not in doubted] or range(len(used))
    smoothed = None
    for _ in range(TURNS):
        smoothed = _run_smoother(answers, logits, evenness, signals[:, used], shared, effects, rates, order[used])
        states = smoothed.mean[answers.time, answers.stratum, : answers.effects.shape[1]]
        # A bounded step: from logits far off, Newton's next normal approximation can overshoot and never settle.
        smoothed_logits = np.einsum("nk,nk->n", answers.effects, states)
        logits = logits + np.clip(smoothed_logits - logits, -MOST_MOVE, MOST_MOVE)
        shared = _estimate_prior(smoothed, shared, effects, rates, order[used], last, list(trusted))
        overall, evenness = _estimate_evenness([*observations, *tested], logits, answers.stratum, len(used))
    assert smoothed
    mean, covariance = _predict_unseen(shared, order)
    mean[used], covariance[used] = smoothed.mean[-1], smoothed.covariance[-1]
    groups = float(sum(seen.groups for seen in (*observations, *tested)))
    of_strata = np.full(len(space.strata), overall)
    of_strata[used] = evenness
    abilities = _make_abilities(mean, covariance, unit, shared, of_strata.tolist())
    graded = measure_graded(recent, space)
    return Fitted(msgspec.structs.replace(abilities, graded=graded), overall, groups)


def _make_abilities(
    mean: np.ndarray, covariance: np.ndarray, unit: float, shared: StrataPrior, evenness: list[float]
) -> Abilities:
    # Rounding makes a covariance uneven, and `eigh` and the file would see another matrix each.
    even = (covariance + covariance.transpose(0, 2, 1)) / 2
    return Abilities(mean.tolist(), even.tolist(), unit, float(np.sqrt(shared.step)), evenness=evenness)


def _predict_unseen(shared: StrataPrior, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The prior of strata that were never seen: mean float [S, D], covariance [S, D, D]."""
    mean = np.concatenate([order @ shared.mean.T, np.tile(shared.rate, (len(order), 1))], axis=1)
    effects = shared.variance + order**2 @ shared.doubt.T
    rates = np.tile(shared.rate_variance + shared.rate_doubt, (len(order), 1))
    return mean, np.concatenate([effects, rates], axis=1)[:, :, None] * np.eye(mean.shape[1])


def _list_answers(
    observations: Sequence[Observation],
    tested: Sequence[Observation],
    last: int,
    used: Sequence[int],
    space: DesignSpace,
) -> Answers:
    """Groups of age a are of the point in time before the training of that round, answers to tests of the one after."""
    both = [*observations, *tested]
    place = {rank: number for number, rank in enumerate(used)}
    ages = np.array([seen.age for seen in both], int)
    after = np.arange(len(both)) >= len(observations)
    groups = np.array([seen.groups for seen in both], float)
    answers = np.array([seen.answers or seen.groups for seen in both], float)
    success = np.array([seen.success for seen in both], float)
    # Training samples its answers, also if it has one for a problem; of answers after it, only those of trials.
    sampled = np.array([seen.variance is not None for seen in both], bool) | ~after
    return Answers(
        effects=compute_effects([seen.cell for seen in both], space, sampled=sampled),
        stratum=np.array([place[space.ranks[seen.cell.stratum]] for seen in both], int),
        time=last - 1 - ages + after,
        answers=answers,
        valid=success / groups * answers,
        size=answers / groups,
    )


def _list_signals(
    observations: Sequence[Observation], last: int, space: DesignSpace, objective: Objective
) -> tuple[np.ndarray, float]:
    """The signals of each round, float [T, S, R], in units, and the unit: what a stratum receives in a usual round."""
    strata = len(space.strata)
    received = np.zeros((last, strata, 2 + len(space.traits)))
    for seen in observations:
        amount, rank = receive_signals(seen, objective), space.ranks[seen.cell.stratum]
        received[last - 1 - seen.age, rank, OWN] += amount
        for number, place in enumerate(space.traits):
            received[last - 1 - seen.age, rank, 2 + number] += amount * bool(seen.cell.values[place])
    # What others do to a stratum is a signal of its own, with a rate of its own, learned from all strata.
    received[:, :, OTHERS] = received[:, :, OWN] @ share_signals(space).T
    own = received[:, :, OWN]
    rounds = own.sum(axis=1)
    # Weighed by the signals themselves: strata that receive none do not count, however many the space has.
    usual = (own * (own / np.maximum(rounds, np.finfo(float).tiny)[:, None])).sum(axis=1)[rounds > 0]
    unit = float(usual.mean()) if len(usual) and usual.mean() > 0 else 1.0
    return received / unit, unit


def _run_smoother(
    answers: Answers,
    logits: np.ndarray,
    evenness: np.ndarray,
    signals: np.ndarray,
    shared: StrataPrior,
    effects: Effects,
    rates: Rates,
    order: np.ndarray,
) -> SmoothedStates:
    """The posterior of all points in time, the likelihood made normal at `logits`.

    Args:
        answers: the N observations.
        logits: float [N], where the likelihood is made normal.
        evenness: float [S], how alike the problems of a stratum are.
        signals: float [T, S, Z], what each round trained.
        shared: the prior of every stratum.
        effects, rates: the effects of a stratum, and the rates at which training moves them.
        order: float [S, K], the regression of strata on their order.
    """
    count, size, strata = answers.effects.shape[1], answers.effects.shape[1] + len(rates.into), len(order)
    points = signals.shape[0] + 1
    precision, weighted = _pool_evidence(answers, logits, evenness, (points, strata, size))
    # The state of a stratum is its effects and its rates. Training moves effects by rate x signal, linear in the state:
    # so rates are learned by the same smoother, from the effects that they moved.
    moves = np.tile(np.eye(size), (points - 1, strata, 1, 1))
    for number, into in enumerate(rates.into):
        moves[:, :, into, count + number] += signals[:, :, number]
    # Rates have no random step: how fast a policy learns is one number for all rounds.
    noise = np.diag(np.concatenate([shared.step * effects.pace**2, np.zeros(len(rates.into))]))
    mean, covariance = _predict_unseen(shared, order)
    means, covariances, expected, doubts = [], [], [], []
    # Forward, a Kalman filter: what is known before each point, then with the answers at this point.
    for point in range(points):
        if point:
            mean = np.einsum("sij,sj->si", moves[point - 1], mean)
            covariance = moves[point - 1] @ covariance @ moves[point - 1].transpose(0, 2, 1) + noise
        expected.append(mean)
        doubts.append(covariance)
        covariance = np.linalg.inv(np.linalg.inv(covariance) + precision[point])
        surprise = weighted[point] - np.einsum("sij,sj->si", precision[point], mean)
        mean = mean + np.einsum("sij,sj->si", covariance, surprise)
        means.append(mean)
        covariances.append(covariance)
    moved = np.zeros((strata, count))
    # Backward (Rauch, Tung, Striebel): each point learns what the later answers say.
    for point in reversed(range(points - 1)):
        move, turned = moves[point], moves[point].transpose(0, 2, 1)
        gain = covariances[point] @ turned @ np.linalg.inv(doubts[point + 1])
        back = gain.transpose(0, 2, 1)
        means[point] = means[point] + np.einsum("sij,sj->si", gain, means[point + 1] - expected[point + 1])
        covariances[point] = covariances[point] + gain @ (covariances[point + 1] - doubts[point + 1]) @ back
        # The expected square of the random step, for EM, which needs the covariance of the two states, too.
        both = covariances[point + 1] @ back  # of the later and the earlier state
        step = means[point + 1] - np.einsum("sij,sj->si", move, means[point])
        spread = covariances[point + 1] - move @ both.transpose(0, 2, 1) - both @ turned
        spread = spread + move @ covariances[point] @ turned
        moved += (step**2 + np.einsum("sii->si", spread))[:, :count]
    return SmoothedStates(np.stack(means), np.stack(covariances), moved)


def _pool_evidence(
    answers: Answers, logits: np.ndarray, evenness: np.ndarray, shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The normal likelihood of each point and stratum: precision float [T + 1, S, D, D], precision x mean [.., D]."""
    points, strata, size = shape
    count = answers.effects.shape[1]
    # The design effect: answers to one problem say little more than one answer if problems of a cell differ.
    worth = 1 / (1 + (answers.size - 1) * (1 - evenness[answers.stratum]))
    chance = apply_logistic(logits)
    # The floor keeps an answer that was certain from weighing nothing, whatever it was.
    weight = np.maximum(answers.answers * worth * chance * (1 - chance), 1e-9)
    pull = weight * logits + worth * (answers.valid - answers.answers * chance)
    precision, weighted = np.zeros((points * strata, size, size)), np.zeros((points * strata, size))
    place = answers.time * strata + answers.stratum
    outer = answers.effects[:, :, None] * answers.effects[:, None, :]
    np.add.at(precision[:, :count, :count], place, weight[:, None, None] * outer)
    np.add.at(weighted[:, :count], place, pull[:, None] * answers.effects)
    return precision.reshape(points, strata, size, size), weighted.reshape(points, strata, size)


def _estimate_prior(
    smoothed: SmoothedStates,
    before: StrataPrior,
    effects: Effects,
    rates: Rates,
    order: np.ndarray,
    rounds: int,
    trusted: list[int],
) -> StrataPrior:
    """The prior of every stratum, from the posteriors of the trusted strata at the first point in time.

    Args:
        smoothed: the posteriors.
        before: the prior of the turn before.
        effects, rates: their hyperpriors.
        order: float [S, K], the regression of strata on their order.
        rounds: the number of rounds.
        trusted: the places of strata whose graders are not in doubt.
    """
    order = order[trusted]
    count, strata = len(effects.spread), len(order)
    state, doubt = smoothed.mean[0, trusted], np.einsum("sii->si", smoothed.covariance[0, trusted])
    mean, doubts = before.mean.copy(), before.doubt.copy()
    # The mean of the strata comes from what each one's answers say alone. The posteriors are shrunk to the old mean, so
    # without this EM would creep. Seven tenths of a step, because the spreads change with the mean.
    for place in range(count):
        parts = state[:, place], doubt[:, place], order @ before.mean[place], before.variance[place]
        seen, certain = _undo_shrinkage(*parts)
        precision = (order * certain[:, None]).T @ order + np.diag(effects.deviation[place] ** -2.0)
        target = (order * certain[:, None]).T @ seen + effects.mean[place] * effects.deviation[place] ** -2.0
        mean[place] += 0.7 * (np.linalg.solve(precision, target) - mean[place])
        doubts[place] = np.diag(np.linalg.inv(precision))
    # PRIOR_STRATA strata of the supposed spread are added: of two or three strata a spread is hardly known.
    off = state[:, :count] - order @ mean.T
    variance = ((off**2 + doubt[:, :count]).sum(axis=0) + PRIOR_STRATA * effects.spread**2) / (strata + PRIOR_STRATA)
    own, uncertain = state[:, count:], doubt[:, count:]
    seen, certain = _undo_shrinkage(own, uncertain, before.rate, before.rate_variance)
    total = certain.sum(axis=0) + rates.deviation**-2.0
    rate = ((certain * seen).sum(axis=0) + rates.mean * rates.deviation**-2.0) / total
    rate = before.rate + 0.7 * (rate - before.rate)
    rate_variance = ((own - rate) ** 2 + uncertain).sum(axis=0) + PRIOR_STRATA * rates.spread**2
    ability = smoothed.moved[trusted, 0].sum()
    return StrataPrior(
        mean,
        doubts,
        variance,
        rate,
        1 / total,
        rate_variance / (strata + PRIOR_STRATA),
        float((ability + PRIOR_STEPS * STEP**2) / (strata * rounds + PRIOR_STEPS)),
    )


def _undo_shrinkage(
    state: np.ndarray, doubt: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The value of a state of prior N(mean, variance) by its answers alone, and its precision as a draw of that prior.

    The posterior is mean + (1 - c) (answers - mean) with c = doubt / variance; 1 / (variance + variance of the
    answers' estimate) is 1 / variance - doubt / variance^2.
    """
    # A stratum whose posterior is nearly all prior would be divided by almost zero; MOST_OWED bounds what it can claim.
    owed = np.clip(doubt / variance, 0, MOST_OWED)
    return (state - owed * mean) / (1 - owed), np.maximum(1 / variance - doubt / variance**2, 1e-9)


def _estimate_evenness(
    observations: Sequence[Observation], logits: np.ndarray, stratum: np.ndarray, strata: int
) -> tuple[float, np.ndarray]:
    """E[p (1 - p)] over the problems of a cell as a share of p (1 - p) of the cell's mean, from groups of answers.

    Args:
        observations, logits: the groups, and the logit of each.
        stratum: int [N], the place of each group's stratum.
        strata: number of strata.

    Returns: evenness of all, and by stratum, float [S], pooled as far as strata are alike (DerSimonian, Laird 1986).
    """
    overall = PRIOR_EVENNESS[0] / PRIOR_EVENNESS[1]
    known = [place for place, one in enumerate(observations) if one.variance is not None]
    if not known:
        return overall, np.full(strata, overall)
    chance = apply_logistic(logits[known])
    groups = np.array([observations[place].groups for place in known])
    meant = np.bincount(stratum[known], groups * chance * (1 - chance), strata)
    seen = np.bincount(stratum[known], np.array([observations[place].variance for place in known]), strata)
    even, groups_before = PRIOR_EVENNESS
    overall = float(np.clip((seen.sum() + even / 4) / (meant.sum() + groups_before / 4), LEAST_EVEN, 1))
    # The variance over strata is what their evenness differs by beyond what chance in their groups explains.
    weight, count = 4 * meant / EVENNESS_VARIANCE, np.count_nonzero(meant)
    differ = float((weight * (seen / np.maximum(meant, 1e-9) - overall) ** 2).sum()) - (count - 1)
    scale = float(weight.sum() - (weight**2).sum() / max(1e-9, weight.sum()))
    spread = max(0.0, differ / scale) if scale > 0 else 0.0
    spread = ((count - 1) * spread + PRIOR_STRATA * PRIOR_UNEVENNESS**2) / (count - 1 + PRIOR_STRATA)
    pooled = (4 * seen / EVENNESS_VARIANCE + overall / spread) / (weight + 1 / spread)
    return overall, np.clip(pooled, LEAST_EVEN, 1)
