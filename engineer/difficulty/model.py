"""The difficulty model: a normal posterior of the weights of a logistic model of P(valid), and its observations.

The posterior has one of two forms: abilities by stratum that move from round to round (`abilities.py`), or, as in runs
of version 0.2, one regression on features of all cells with older groups counting less (`regression.py`).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import Share
from lakewright.engineer.cells import Cell, Stratum, sort_cells
from lakewright.engineer.difficulty.abilities import (
    Abilities,
    apply_logistic,
)
from lakewright.engineer.difficulty.regression import Regression
from lakewright.engineer.plugins import Power
from lakewright.engineer.space import DesignSpace

NODES = np.linspace(-8, 8, 401)  # of the quadrature, in standard deviations; denser than the logistic function is steep
MASSES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()  # of a standard normal distribution at NODES
USUAL_GROUP = 8  # answers of a group, for the chance that none of them is valid

Objective = Literal["learnability", "regret"]
"""The worth of a problem: learnability, p (1 - p), or regret, 1 - p, by which a right answer beats the policy."""

Values = TypeVar("Values", float, np.ndarray)


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Groups rolled out `age` stages ago on problems of one cell (givens included).

    success: the sum over the groups of their shares of valid answers. variance: the sum of the unbiased estimates of
    p (1 - p), k (G - k) / (G (G - 1)); None if groups are one answer, as on held-out problems. answers: their number in
    all groups; 0 in files of version 0.2, which count a group as one. tried: whether they trained nothing, as in a
    trial, or in a round whose weights were restored. tokens: the length of all answers; unset if
    unknown. graded: the sum over the groups without a valid answer of the signal of their rewards; unset if it is 0.
    """

    cell: Cell
    groups: int
    success: float
    variance: float | None
    age: int = 0
    answers: int = 0
    tried: bool = False
    tokens: int | msgspec.UnsetType = msgspec.UNSET
    graded: float | msgspec.UnsetType = msgspec.UNSET


def observe_held_out(answers: Iterable[tuple[Cell, bool]], age: int = 0) -> list[Observation]:
    """One answer each to problems of these cells, by cell, and whether it is valid."""
    outcomes: dict[Cell, list[int]] = defaultdict(list)
    for cell, valid in answers:
        outcomes[cell].append(int(valid))
    return [
        Observation(cell, len(found), sum(found), None, age, len(found))
        for cell, found in ((cell, outcomes[cell]) for cell in sort_cells(outcomes))
    ]


def observe_groups(groups: Iterable[tuple[Cell, RolloutGroup]], age: int = 0) -> list[Observation]:
    """The groups by the cells of their problems, in that order.

    A cell with groups of one answer and others has two observations, because one answer tells no variance.
    """
    cells: dict[Cell, tuple[list[RolloutGroup], list[RolloutGroup]]] = defaultdict(lambda: ([], []))
    for cell, group in groups:
        cells[cell][group.completions == 1].append(group)
    return [_observe_cell(cell, part, age) for cell in sort_cells(cells) for part in cells[cell] if part]


def _observe_cell(cell: Cell, groups: list[RolloutGroup], age: int) -> Observation:
    # Sums, not means: observations of a cell are pooled by adding them, in any order and any number of rounds.
    counts = [(group.valid, group.completions) for group in groups]
    success = sum(valid / answers for valid, answers in counts)
    parts = [valid * (answers - valid) / (answers * (answers - 1)) for valid, answers in counts if answers > 1]
    variance = sum(parts) if parts else None
    # As 4 m (1 - m) is of rewards 0 and 1. Rewards of another scale than a valid answer's 1 must not count for more.
    failed = [group for group in groups if group.informative and not group.valid]
    graded = sum(min(1.0, 4 * group.spread**2 * (1 - 1 / group.completions)) for group in failed)
    answers = sum(answers for _, answers in counts)
    return Observation(cell, len(groups), success, variance, age, answers, graded=graded or msgspec.UNSET)


def receive_signals(seen: Observation, objective: Objective) -> float:
    """The signal of training on the groups of a cell, where the strongest possible group counts as 1.

    With m the share of valid answers of a group: 4 m (1 - m), four times the variance of its rewards; and if each group
    holds a right answer (regret), half of that and half of 1 - m, by how much that answer beats the policy's own. A
    group without a valid answer gives signal if rewards are graded.
    """
    size = (seen.answers or seen.groups) / seen.groups
    # G - 1 over G: an unbiased variance is of all answers there might be, a signal of the answers there were.
    # Held-out answers have no group, so their spread follows from p itself; groups measured it.
    differ = (
        seen.success - seen.success**2 / seen.groups if seen.variance is None else seen.variance * (size - 1) / size
    )
    graded = seen.graded or 0.0
    return graded + (2 * differ + (seen.groups - seen.success) / 2 if objective == "regret" else 4 * differ)


def value_of(success: Values, objective: Objective) -> Values:
    """The worth of problems by the objective, `success` being their P(valid): a number, or an array of them."""
    return 1 - success if objective == "regret" else success * (1 - success)


class DifficultySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the model of P(valid). Raises InputError on a setting that the chosen model does not have."""

    decay: Share = 0.6
    """The factor by which a group's weight falls with every stage since its rollout, 0 to 1."""
    objective: Literal["auto", "learnability", "regret"] = "auto"
    """The worth of problems: learnability, p (1 - p), or regret, 1 - p, by which a right answer beats the policy. auto
    is regret if each group holds the reference answer (grpo.guided), otherwise learnability."""
    by_size: Power = 0.0
    """How far, in logits, a stratum may be from the smooth curve of all strata, separately with and without a trait:
    the prior's standard deviation; 0: not at all. Strata without an order always have their own effects."""
    held_out: bool = False
    """Whether a regression is also fitted to the answers to held-out problems of all rounds; abilities always are."""
    reach: Power = 0.0
    """The worth of problems, in trials and for the teachers difficulty and forecast, is multiplied by r to this power,
    where r is the largest P(valid) of problems that differ only in their traits. The teacher gain does not use it."""
    model: Literal["abilities", "regression"] = "abilities"
    """The form of the model: abilities by stratum that change from round to round, with learning rates; or the
    regression of version 0.2. Only the regression has the settings decay, by_size and held_out."""
    weigh: Literal["problems", "strata"] = "problems"
    """The weight of a stratum: its share of the held-out problems, or the same for all strata."""

    def __post_init__(self) -> None:
        of_regression = {"decay": self.decay != 0.6, "by_size": self.by_size > 0, "held_out": self.held_out}
        if self.model == "abilities" and (given := [name for name, used in of_regression.items() if used]):
            value = getattr(self, given[0])
            said = f"difficulty: {given[0]} is {value}, a setting that the model abilities does not have"
            raise InputError(f"{said}; remove it, or give model=regression")

    @property
    def resolved_objective(self) -> Objective:
        """The objective; `auto` is learnability here because a run resolves it itself."""
        return "regret" if self.objective == "regret" else "learnability"


class Prediction(msgspec.Struct, frozen=True):
    """P(valid) of cells: the posterior mean and standard deviation, float [N] each."""

    mean: np.ndarray
    deviation: np.ndarray


class Sample(NamedTuple):
    """P(valid) of N cells under each of M weights, float [M, N] each: `success`, and `best`, the largest of it and that
    of the cells that differ in their traits alone. leverage: float [N], what their signal is worth. evenness,
    graded: float [N], of their strata."""

    success: np.ndarray
    best: np.ndarray
    leverage: np.ndarray
    evenness: np.ndarray
    graded: np.ndarray


class Posterior(Protocol):
    """The knowledge of P(valid): `Abilities`, or a `Regression`.

    leverage, evenness, graded: a number for each stratum, as in `Abilities`; empty or unset if they are not known by
    stratum.
    """

    @property
    def leverage(self) -> Sequence[float]: ...
    @property
    def evenness(self) -> Sequence[float]: ...
    @property
    def graded(self) -> Sequence[float] | msgspec.UnsetType: ...

    def predict_logits(
        self, cells: Sequence[Cell], space: DesignSpace, *, sampled: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the logit of P(valid) of cells that have their givens, float [N] each."""
        ...

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """`count` draws from the posterior. rng: consumed."""
        ...

    def find_logits(self, drawn: np.ndarray, cells: Sequence[Cell], space: DesignSpace) -> np.ndarray:
        """The logits of P(valid) of cells under what `draw` drew, float [count, N]."""
        ...


class DifficultyModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record of a posterior, and the worth of problems by it.

    weights, covariance: the fields of a `Regression`. groups: how many it was fitted to, earlier stages by their
    decayed weights. evenness: E[p (1 - p)] over the problems of a cell as a share of p (1 - p) of the cell's mean:
    problems of a cell differ, so it is less than 1. objective, reach: what problems are worth. by_size: the prior of
    each stratum's own effects. abilities: the posterior by stratum, in place of a regression, whose weights and
    covariance then are empty.
    """

    weights: list[float]
    covariance: list[list[float]]
    groups: float
    evenness: float
    objective: Objective = "learnability"
    by_size: float = 0.0
    reach: float = 0.0
    abilities: Abilities | msgspec.UnsetType = msgspec.UNSET

    @property
    def posterior(self) -> Posterior:
        """The form in which the model is: by stratum, or one regression."""
        return self.abilities or Regression(np.array(self.weights), np.array(self.covariance), self.by_size)

    def predict(self, cells: Sequence[Cell], space: DesignSpace, *, sampled: bool = True) -> Prediction:
        """P(valid) of cells that have their givens, whether they were ever drawn or not.

        sampled: whether it is of the answers of groups, or else of answers to held-out problems, which a regression
        does not tell apart.
        """
        return logistic_normal_moments(*self.posterior.predict_logits(cells, space, sampled=sampled))

    def sample(self, cells: Sequence[Cell], space: DesignSpace, rng: np.random.Generator, count: int) -> Sample:
        """P(valid) of cells under weights drawn from the posterior.

        Args:
            cells: the cells, givens included.
            space: the design space.
            rng: consumed.
            count: how many weights are drawn.
        """
        posterior = self.posterior
        drawn = posterior.draw(rng, count)
        success = apply_logistic(posterior.find_logits(drawn, cells, space))
        # Siblings in turn, each with the same drawn weights: the best of a draw is not the best of the means.
        best = success
        siblings = [space.siblings(cell) for cell in cells] if self.reach else []
        for turn in range(max(map(len, siblings), default=0)):
            others = [mine[turn] if turn < len(mine) else cell for mine, cell in zip(siblings, cells, strict=True)]
            best = np.maximum(best, apply_logistic(posterior.find_logits(drawn, others, space)))
        leverage = np.array([self.find_leverage(cell.stratum, space) for cell in cells])
        return Sample(success, best, leverage, self.list_evenness(cells, space), self.list_graded(cells, space))

    def find_leverage(self, stratum: Stratum, space: DesignSpace) -> float:
        """The gain on the held-out problems by the signal of a problem of a stratum; 1 if the model has no answers."""
        known = self.posterior.leverage
        return known[space.ranks[stratum]] if known else 1.0

    def list_evenness(self, cells: Sequence[Cell], space: DesignSpace) -> np.ndarray:
        """The evenness of each cell's stratum, float [N]; files of earlier versions know one for all strata."""
        known = self.posterior.evenness
        return np.array([known[space.ranks[cell.stratum]] if known else self.evenness for cell in cells])

    def list_graded(self, cells: Sequence[Cell], space: DesignSpace) -> np.ndarray:
        """The signal of a group without a valid answer in each cell's stratum, float [N]; 0 without graded rewards."""
        known = self.posterior.graded or [0.0] * len(space.strata)
        return np.array([known[space.ranks[cell.stratum]] for cell in cells])

    def value(self, drawn: Sample) -> np.ndarray:
        """The worth of problems of cells: their expected learnability, or their regret, times best^reach and leverage.

        So little is expected if the policy can do nothing yet. With the regret and reach 1 that is p (1 - p) for the
        easier kind of problems of a stratum and its levels, and more for the other.
        """
        regret = self.objective == "regret"
        # A quarter of the signal, which is 4 p (1 - p) of answers that are valid or not.
        signal = 1 - drawn.success if regret else self.expect_signal(drawn.success, drawn.evenness, drawn.graded) / 4
        return signal * drawn.best**self.reach * drawn.leverage

    def expect_signal(self, success: np.ndarray, evenness: np.ndarray, graded: np.ndarray) -> np.ndarray:
        """The signal, about 1 at most, that groups of answers to problems of cells are expected to give.

        success: P(valid) of the cells, of any shape. evenness, graded: one for each cell, in a shape that fits.
        `receive_signals` says what a signal is.
        """
        differ = self.learnability(success, evenness)
        own = 2 * differ + (1 - success) / 2 if self.objective == "regret" else 4 * differ
        return own + graded * (1 - success) ** USUAL_GROUP

    def learnability(self, success: np.ndarray, evenness: np.ndarray) -> np.ndarray:
        """The expected p (1 - p) of problems of cells whose P(valid) is `success`. evenness: see `expect_signal`."""
        return evenness * success * (1 - success)


def logistic_normal_moments(logit: np.ndarray, variance: np.ndarray) -> Prediction:
    """Mean and standard deviation of logistic(x) for x ~ N(logit, variance), float [N] each.

    By the trapezoidal rule on NODES, which for smooth functions that vanish at both ends converges exponentially.
    """
    success = apply_logistic(logit[:, None] + np.sqrt(variance)[:, None] * NODES)
    mean = success @ MASSES
    return Prediction(mean, np.sqrt((success - mean[:, None]) ** 2 @ MASSES))
