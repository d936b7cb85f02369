"""The choice between designs: which are tried, on how many problems, and how sure it is that one is better."""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty.model import DifficultyModel
from lakewright.engineer.difficulty.worth import Mix, Worth, estimate_worth
from lakewright.engineer.space import DesignSpace

MISFIT = 0.01  # of the model beyond its own uncertainty, in units of p (1 - p)
TIE = 0.005  # probabilities nearer than this to one half are stated as 0.50: neither design is better
SHARED = 4.0  # problems of any cell that the spread of a cell is mixed with


class Lead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lead in signal of a design over the current one: what was measured, what the model said, and both.

    measured, error: the difference of scores on the cells rolled out, and its standard error. expected: the model's
    expected difference. mean, deviation: for the posterior. better: its probability of more than 0.
    """

    measured: float
    error: float
    expected: float
    mean: float
    deviation: float
    better: float


def shortlist_designs(
    model: DifficultyModel, current: Mix, mixes: Sequence[Mix], count: int, space: DesignSpace
) -> list[tuple[int, Worth]]:
    """The `count` designs of the largest expected worth beyond the current one: their places, and that worth.

    Best first; equal ones, and models without observations, in order.

    Args:
        model: the posterior.
        current, mixes: the cells of the current design, and of the others.
        count: how many designs.
        space: the design space.
    """
    worth = [(place, estimate_worth(model, mix, space, current)) for place, mix in enumerate(mixes)]
    # The mean decides and not the chance of being better: a shortlist is to hold what may win, the trial says whether
    # it does.
    return sorted(worth, key=lambda one: -one[1].mean if model.groups else 0.0)[:count]


def problems_by_round(problems: int, rivals: int) -> list[int]:
    """The problems on which a design has been tried after each round of successive halving (Jamieson, Talwalkar 2016).

    After each round but the last the worse half of the rivals leaves, so there are ceil(log2(rivals)) + 1 of them.
    """
    # Every round adds the same number of problems, so the rivals that stay get more evidence than the first round
    # gave.
    rounds = math.ceil(math.log2(rivals)) + 1 if rivals > 1 else 1
    return [math.ceil(problems * (number + 1) / rounds) for number in range(rounds)]


def estimate_lead(
    mix: Mix, current: Mix, values: Mapping[Cell, Sequence[float]], answers: int, prior: Worth | None
) -> Lead:
    """The lead of a design over the current one.

    Args:
        mix, current: the shares of the cells of both.
        values: the estimated worth of each problem of a cell.
        answers: how many answers were sampled to each problem.
        prior: the lead that the difficulty model expects, or None.

    Cells are shared, so the difference is sum_s (q_s - c_s) m_s, with q and c the shares of the two and m_s the mean
    of a cell's problems, and its variance sum_s (q_s - c_s)^2 v_s / n_s. Its normal likelihood is multiplied with the
    normal prior of the difficulty model, whose variance is the sum of the model's and MISFIT^2.
    """
    # Only where the designs differ is anything compared: a cell with equal shares adds neither lead nor error.
    away = {s: mix.get(s, 0.0) - current.get(s, 0.0) for s in dict.fromkeys([*mix, *current])}
    spread = _estimate_spreads({s: values[s] for s in away}, answers)
    measured = math.fsum(part * float(np.mean(values[s])) for s, part in away.items())
    error = math.sqrt(math.fsum(part**2 * spread[s] / len(values[s]) for s, part in away.items()))
    expected, variance = (prior.mean, prior.deviation**2 + MISFIT**2) if prior else (0.0, math.inf)
    # Normal times normal: precisions add up. Without a prior its precision is 0, and the measurement stands alone.
    precision = 1 / max(error**2, 1e-12), 1 / variance
    mean = (precision[0] * measured + precision[1] * expected) / sum(precision)
    deviation = sum(precision) ** -0.5
    better = _normal_cdf(mean / deviation) if any(away.values()) else 0.5
    return Lead(measured, error, expected, mean, deviation, better)


def choose_rival(leads: Sequence[Lead], best: int, proposed: int | None = None) -> int | None:
    """The place of the rival to train on; None for the current design.

    best: the place of the rival that won the trial. proposed: the place of the original proposal, if it was tried.

    The winner is taken if it is more likely better than the current design than not. If the original proposal is as
    likely as not to lead by as much, it is taken instead. So ties change nothing: a design that nobody proposed is
    trained on only if the trial supports it.
    """
    if leads[best].better <= 0.5 + TIE:
        return None
    if proposed is None or leads[proposed].better <= 0.5 + TIE:
        return best
    # The two leads share problems of the current design; taken as independent, the spread is rather too large, which
    # favours what the teacher proposed.
    ahead = leads[best].mean - leads[proposed].mean
    spread = math.hypot(leads[best].deviation, leads[proposed].deviation)
    return proposed if _normal_cdf(ahead / spread) <= 0.5 + TIE else best


def _normal_cdf(x: float) -> float:
    """The distribution function of the standard normal distribution."""
    return math.erfc(-x / math.sqrt(2)) / 2


def _estimate_spreads(values: Mapping[Cell, Sequence[float]], answers: int) -> dict[Cell, float]:
    """The variance between the problems of each cell, mixed with the variance of all because cells are small.

    To the squares of each cell one more problem is added of which one answer differs from all others: what a
    few problems do not show is rare, but not impossible (as Agresti and Caffo, 2000, do for two proportions). Without
    it, a cell whose answers are all alike would have no variance, and one valid answer elsewhere would be evidence.
    """
    # The worth of such a problem is next to the end of 0 to 1 that those of the cell are nearer to.
    rare = {s: 1 / answers if float(np.mean(part)) < 0.5 else 1 - 1 / answers for s, part in values.items()}
    more = {s: [*part, rare[s]] for s, part in values.items()}
    # A cell has few problems, so its own spread is a guess; SHARED problems of the pooled spread are mixed in.
    pooled = float(np.var(np.concatenate([np.asarray(part) for part in more.values()])))
    squares = {s: len(part) * float(np.var(part)) for s, part in more.items()}
    return {s: (squares[s] + SHARED * pooled) / (len(part) + SHARED) for s, part in values.items()}
