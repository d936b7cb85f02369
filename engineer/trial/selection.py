"""The choice between configs that are tried: who is tried, for how long, and how sure it is that one is better."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.stats import norm

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import Stratum
from lakewright.engineer.difficulty import DifficultyModel, Worth, worth_of
from lakewright.engineer.trial.signals import strata_of

MISFIT = 0.01  # of the model beyond its own uncertainty, in units of p (1 - p)
TIE = 0.005  # probabilities nearer than this to one half are stated as 0.50: neither config is better
SHARED = 4.0  # boards of any stratum that the spread of a stratum is mixed with


class Lead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much more signal a config gives than the current one: what was measured, what the model said, and both.

    measured, error: the difference of scores on the strata rolled out, and its standard error. expected: the model's
    difference. mean, deviation: of the posterior. better: its probability of more than 0.
    """

    measured: float
    error: float
    expected: float
    mean: float
    deviation: float
    better: float


class Outlook(NamedTuple):
    """The model's prior of a difference."""

    mean: float
    variance: float


def shortlisted(
    model: DifficultyModel, current: EnvConfig, configs: Sequence[EnvConfig], count: int, teams: tuple[int, ...] = ()
) -> list[EnvConfig]:
    """The `count` configs of the largest expected worth, best first; equal ones, and those of no model, in order."""
    if not model.groups:
        return list(configs[:count])
    worth = [worth_of(model, config, current, teams).mean for config in configs]
    order = sorted(range(len(configs)), key=lambda place: -worth[place])
    return [configs[place] for place in order[:count]]


def boards_by_round(boards: int, rivals: int) -> list[int]:
    """How many boards a config has been tried on after each round of successive halving (Jamieson, Talwalkar 2016).

    After each round but the last the worse half of the rivals leaves, so there are ceil(log2(rivals)) + 1 of them.
    """
    rounds = math.ceil(math.log2(rivals)) + 1 if rivals > 1 else 1
    return [math.ceil(boards * (number + 1) / rounds) for number in range(rounds)]


def lead_of(
    config: EnvConfig,
    current: EnvConfig,
    values: Mapping[Stratum, Sequence[float]],
    prior: Worth | None,
    teams: Sequence[int] = (),
) -> Lead:
    """The lead of a config over the current one, from the estimates of what the boards of each stratum are worth.

    Strata are shared, so the difference is sum_s (q_s - c_s) m_s, with q and c the shares of the two and m_s the mean
    of a stratum's boards, and its variance sum_s (q_s - c_s)^2 v_s / n_s. Its normal likelihood is multiplied with the
    normal prior of the difficulty model, whose variance is that of the model and MISFIT^2.
    """
    shares, others = strata_of(config, teams), strata_of(current, teams)
    away = {s: shares.get(s, 0.0) - others.get(s, 0.0) for s in shares.keys() | others.keys()}
    spread = _spreads({s: values[s] for s in away})
    measured = math.fsum(part * float(np.mean(values[s])) for s, part in away.items())
    error = math.sqrt(math.fsum(part**2 * spread[s] / len(values[s]) for s, part in away.items()))
    outlook = Outlook(prior.mean, prior.deviation**2 + MISFIT**2) if prior else Outlook(0.0, math.inf)
    precision = 1 / max(error**2, 1e-12), 1 / outlook.variance
    mean = (precision[0] * measured + precision[1] * outlook.mean) / sum(precision)
    deviation = sum(precision) ** -0.5
    better = float(norm.cdf(mean / deviation)) if any(away.values()) else 0.5
    return Lead(measured, error, outlook.mean, mean, deviation, better)


def choose_rival(leads: Sequence[Lead], best: int, proposed: int | None = None) -> int | None:
    """The place of the rival to train on; None for the current config.

    best: the place of the rival that won the trial. proposed: that of the proposal as it was made, where it was tried.

    The winner is taken if it is more likely better than the current config than not. Where the proposal as it was made
    is as likely as not to lead by as much, it is taken instead. So ties change nothing: a config that nobody proposed
    is trained on only where the trial speaks for it.
    """
    if leads[best].better <= 0.5 + TIE:
        return None
    if proposed is None or leads[proposed].better <= 0.5 + TIE:
        return best
    ahead, spread = (
        leads[best].mean - leads[proposed].mean,
        math.hypot(leads[best].deviation, leads[proposed].deviation),
    )
    return proposed if norm.cdf(ahead / spread) <= 0.5 + TIE else best


def _spreads(values: Mapping[Stratum, Sequence[float]]) -> dict[Stratum, float]:
    """The variance between the boards of each stratum, mixed with that of all, as strata are small."""
    pooled = float(np.var(np.concatenate([np.asarray(part) for part in values.values()])))
    return {s: (len(part) * float(np.var(part)) + SHARED * pooled) / (len(part) + SHARED) for s, part in values.items()}
