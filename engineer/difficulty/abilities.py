"""Abilities: a posterior of P(valid) by stratum, pooled over the strata, that moves from round to round.

In stratum s the chance of a valid answer to a problem of a cell with the effects x is logistic(x theta_s). The effects
of all strata are alike as far as the data say so: theta_s ~ N(B z_s, diag(tau^2)), z_s being 1 and, if strata have
an order, the place of s on it. Training moves them: from one round to the next

    theta_s += rates_s (signals that s received) + a random step,

so a policy that learns, or forgets, is followed, and how much a signal moves an ability is learned. `fit_abilities` in
`abilities_fit.py` finds the posterior.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell
from lakewright.engineer.space import DesignSpace

MOST_PAIRED = 5  # knobs of which products are effects, too; with more, knobs act by themselves
CENTRE = 0.4  # of the square of a level's place, -1 to 1, so that squares say little of the mean
OWN, OTHERS = 0, 1  # the first rates
LEAST_RATE = 0.02  # in logits for a usual round: a stratum that has not moved yet is not given up


class Abilities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The posterior N(mean, covariance) of each stratum of a space, in its order: its effects, then its rates.

    mean: float [S, D]. covariance: float [S, D, D]. unit: the signal that a stratum receives in a usual round, which
    rates are per. step: the standard deviation, in logits, by which an ability moves in a round beside what is learned.
    leverage: float [S], the gain on the held-out problems by the signal of one problem, 1 in the mean over the strata;
    empty if no problems are held out. It is per token if lengths of answers are known. evenness: float [S], how even
    the problems of a cell are (see `DifficultyModel`); empty in files of earlier versions, which knew one for all.
    graded: float [S], the mean signal of a group without a valid answer; unset if no such group had any.
    """

    mean: list[list[float]]
    covariance: list[list[list[float]]]
    unit: float
    step: float
    leverage: list[float] = []
    evenness: list[float] = []
    graded: list[float] | msgspec.UnsetType = msgspec.UNSET

    def predict_logits(
        self, cells: Sequence[Cell], space: DesignSpace, *, sampled: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the logit of P(valid) of cells that have their givens, float [N] each.

        sampled: whether the answers are sampled, in groups; if not, they are answers to held-out problems.
        """
        size, places = count_effects(self, space), _find_places(cells, space)
        points = compute_effects(cells, space, sampled=sampled)[:, :size]
        mean, covariance = np.array(self.mean)[places, :size], np.array(self.covariance)[places, :size, :size]
        return np.einsum("nk,nk->n", points, mean), np.einsum("nk,nkl,nl->n", points, covariance, points)

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Effects and rates drawn from the posterior, float [count, S, D]. rng: consumed."""
        mean, covariance = np.array(self.mean), np.array(self.covariance)
        values, vectors = np.linalg.eigh(covariance)
        # Eigenvectors instead of Cholesky: rounding may leave a tiny negative eigenvalue, which Cholesky refuses.
        roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        return mean + np.einsum("sij,nsj->nsi", roots, rng.standard_normal((count, *mean.shape)))

    def find_logits(self, drawn: np.ndarray, cells: Sequence[Cell], space: DesignSpace) -> np.ndarray:
        """The logits of P(valid) of cells, float [count, N], under what `draw` drew."""
        size = drawn.shape[2] - count_rates(space)
        points = compute_effects(cells, space)[:, :size]
        return np.einsum("nk,mnk->mn", points, drawn[:, _find_places(cells, space), :size])


class Effects(NamedTuple):
    """Effects of a stratum: how much is known of them before any answer, by effect K and regressor Z.

    mean, deviation: float [K, Z], the prior of B. spread: float [K], a guess of tau. pace: float [K], how large the
    random steps of an effect are, compared with the ability's own.
    """

    mean: np.ndarray
    deviation: np.ndarray
    spread: np.ndarray
    pace: np.ndarray


class Rates(NamedTuple):
    """Rates of a stratum, in logits for a usual round's signal, float [R] each; the prior of their mean and spread.

    The first is what training on the stratum itself does, the second what training on others does, then for each trait
    what training on problems with the trait does beyond this. into: int [R], the effect that each moves.
    """

    mean: np.ndarray
    deviation: np.ndarray
    spread: np.ndarray
    into: np.ndarray


def apply_logistic(x: np.ndarray) -> np.ndarray:
    """P(valid) of logits, float of any shape."""
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def compute_effects(cells: Sequence[Cell], space: DesignSpace, *, sampled: bool | np.ndarray = True) -> np.ndarray:
    """float [N, K] of cells that have their givens.

    The ability, 1; the levels, -1 to 1; the traits, -1/2 or 1/2; the givens; the squares of the levels. Then the
    products of two knobs, if there are at most MOST_PAIRED of them, and 1 if answers are sampled: groups are, held-out
    problems are usually answered without chance, and then more answers are valid.

    sampled: whether answers are sampled: one bool for all cells, or bool [N].
    """
    axes, squares = [], []
    for place, knob in enumerate(space.knobs):
        values = np.array([cell.values[place] for cell in cells], float)
        if knob.trait:
            axes.append(values - 0.5)
        else:
            axes.append(2 * (values - knob.low) / (knob.span or 1.0) - 1)
            squares.append(axes[-1] ** 2 - CENTRE)
    given = np.array([cell.given for cell in cells], float).reshape(len(cells), len(space.givens))
    givens = [(given[:, place] - one.middle) / one.half for place, one in enumerate(space.givens)]
    pairs = itertools.combinations(axes, 2) if len(axes) <= MOST_PAIRED else ()
    chance = np.broadcast_to(np.asarray(sampled, float), (len(cells),))
    return np.stack([np.ones(len(cells)), *axes, *givens, *squares, *(a * b for a, b in pairs), chance], axis=1)


def describe_effects(space: DesignSpace) -> tuple[Effects, Rates]:
    """The priors of a space, for effects in the order of `compute_effects`.

    Over its whole range a level moves P(valid) by some logits, in the direction that the knob says.
    """
    # A row is (mean, deviation, spread, pace). Strata differ most in their ability; the effect of a level is nearly the
    # same in all of them.
    levels = [(-2.5 * knob.harder, 2.5, 0.3, 0.3) for knob in space.knobs if not knob.trait]
    of_knobs = [
        (-0.7 * knob.harder, 1.5, 0.5, 0.7) if knob.trait else (-2.5 * knob.harder, 2.5, 0.3, 0.3)
        for knob in space.knobs
    ]
    pairs = len(list(itertools.combinations(space.knobs, 2))) if len(space.knobs) <= MOST_PAIRED else 0
    rows = [(0.0, 2.5, 1.5, 1.0), *of_knobs, *[(0.0, 1.0, 0.2, 0.1)] * len(space.givens)]
    rows += [(0.0, 0.3, 0.15, 0.1)] * (len(levels) + pairs)
    rows.append((0.0, 0.5, 0.3, 2.0))  # of chance in answers
    mean, deviation, spread, pace = (np.array(column) for column in zip(*rows, strict=True))
    means, deviations = mean[:, None], deviation[:, None]
    if space.ranked:  # the ability falls along the order, other effects may change along it
        means = np.concatenate([means, np.zeros((len(rows), 2))], axis=1)
        # Row 0 is the ability, column 1 the place on the order: harder strata start lower, and the data may say
        # otherwise.
        means[0, 1] = -1.0
        deviations = deviations * np.array([1.0, 0.5, 0.25])
        deviations[0, 1] = 2.0
    traits = [1 + place for place in space.traits]
    return Effects(means, deviations, spread, pace), Rates(
        mean=np.array([0.3, 0.0, *[0.1] * len(traits)]),
        deviation=np.array([0.4, 0.1, *[0.3] * len(traits)]),
        spread=np.array([0.3, 0.05, *[0.3] * len(traits)]),
        into=np.array([0, 0, *traits]),
    )


def regress_on_order(space: DesignSpace) -> np.ndarray:
    """float [S, Z] of all strata: 1 and, if they have an order, the place on it and its square."""
    one = np.ones(len(space.strata))
    if not space.ranked:
        return one[:, None]
    place = np.array([space.scale(stratum) for stratum in space.strata], float)
    return np.stack([one, place, place**2 - CENTRE], axis=1)


def share_signals(space: DesignSpace) -> np.ndarray:
    """float [S, S]: how much of the effect of a stratum's training on others row s is supposed to receive from column.

    If strata have an order the neighbours receive most, else all others the same.
    """
    ranks = np.arange(len(space.strata))
    near = np.exp(-np.abs(ranks[:, None] - ranks[None])) if space.ranked else np.ones((len(ranks), len(ranks)))
    return near - np.diag(np.diag(near))


def count_rates(space: DesignSpace) -> int:
    """The number of rates of a stratum."""
    return 2 + len(space.traits)


def count_effects(known: Abilities, space: DesignSpace) -> int:
    """The number of effects of a stratum: all, or all but the last if they were recorded before chance was one."""
    effects, _ = describe_effects(space)
    # Files of earlier versions lack the last effect, chance. They are read as they are: a file never changes its
    # meaning.
    recorded = len(known.mean[0]) - count_rates(space) if known.mean else 0
    return recorded if recorded == len(effects.spread) - 1 else len(effects.spread)


def check_abilities(known: Abilities, space: DesignSpace) -> None:
    """Raises InputError if abilities do not fit a space by their form."""
    strata, size = len(space.strata), count_effects(known, space) + count_rates(space)
    rows = [size] * strata
    square = [[len(row) for row in part] == [size] * size for part in known.covariance]
    of_strata = all(len(row) in (0, strata) for row in (known.leverage, known.evenness, known.graded or []))
    fits = [len(row) for row in known.mean] == rows and len(square) == strata and all(square) and of_strata
    if not fits or known.unit <= 0:
        said = f"state: forecast: its model is not of {size} numbers for each of {strata} {space.words.path}"
        raise InputError(f"{said}; load the state of this environment")


def measure_reach(success: np.ndarray, weights: np.ndarray, rates: np.ndarray, near: np.ndarray) -> np.ndarray:
    """The gain in held-out P(valid) by a unit of signal in each stratum, float [..., S].

    Args:
        success: P(valid) of the held-out cells, float [..., H].
        weights: the share of each held-out cell in the column of its stratum, float [H, S].
        rates: float [..., S, R], not negative.
        near: as in `share_signals`.
    """
    mass = (success * (1 - success)) @ weights
    # p (1 - p) is the slope of the logistic function: the same step of ability changes P(valid) most at p = 1/2, and
    # hardly at all where nothing or everything is solved.
    own = np.maximum(rates[..., OWN], LEAST_RATE)
    return own * mass + (np.maximum(rates[..., OTHERS], 0) * mass) @ near


def _find_places(cells: Sequence[Cell], space: DesignSpace) -> np.ndarray:
    return np.array([space.ranks[cell.stratum] for cell in cells], int)
