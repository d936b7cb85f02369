"""Expected gains: the change of the held-out P(valid) by training on problems, of learners drawn from the posterior.

A problem gives a signal; a signal moves the abilities of its stratum, and a little the others, at their learning
rates; and abilities move the P(valid) of the held-out problems. So the gain of one problem of a cell c in stratum s is

    signal(p_c) (rate_s sum_h w_h p_h (1 - p_h) + what it does to others),

the sum being over the held-out cells h of the stratum, and w_h their shares.

The gain of the next problem says little about training on many. P(valid) follows a logistic curve: slow where nearly
nothing is solved, quick in the middle, slow where nearly all is. So a kind of problems, a stratum with the same traits,
has a prospect, too: with g(n) the gain of n problems of the kind, the largest g(n) / n for n up to a horizon. (The
index of a bandit without chance, Gittins 1979; separate kinds share a budget best by their curves' concave hulls.)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.abilities import (
    LEAST_RATE,
    OTHERS,
    OWN,
    apply_logistic,
    compute_effects,
    count_effects,
    describe_effects,
    measure_reach,
    share_signals,
)
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.space import DesignSpace

LOOKS = 8  # lengths of training that a prospect compares; closer together at the start, where curves bend
MOST_STEP = 3.0  # in logits, between two looks: a rate drawn far too large then moves an ability no further


class Kinds(NamedTuple):
    """The kinds of N cells, G in all, at most L cells each, and their held-out cells, at most H each.

    points, places: the effects and the places of the cells' strata. kind, number: int [N], the kind of each cell and
    its number there. cells: int [G, L]; a kind with fewer has its first cell again. strata: int [G]; evenness, graded:
    float [G]. traits: float [G, J]. tested: int [G, H], the held-out cells of the stratum; weights: float [G, H], 0
    beyond their number.
    """

    points: np.ndarray
    places: np.ndarray
    kind: np.ndarray
    number: np.ndarray
    cells: np.ndarray
    strata: np.ndarray
    evenness: np.ndarray
    graded: np.ndarray
    traits: np.ndarray
    tested: np.ndarray
    weights: np.ndarray


class Learners:
    """M learners, drawn from the posterior of a forecast, on which training is tried.

    effects: float [M, S, K]; rates: float [M, S, R], per unit of signal, not negative.
    """

    def __init__(
        self, known: Forecast, design: Design, space: DesignSpace, rng: np.random.Generator, count: int
    ) -> None:
        """Draws them.

        Args:
            known: a forecast whose model has abilities.
            design: gives the givens of cells that have no givens.
            space: the design space.
            rng: consumed.
            count: how many learners.

        Raises InputError if the model is a regression, which has no learning rates.
        """
        abilities = known.model.abilities
        if not abilities:
            raise InputError(
                "difficulty: model is regression, which has no learning rates; choose abilities, or another teacher"
            )
        self.model, self.space, self.design, self.unit = known.model, space, design, abilities.unit
        _, rates = describe_effects(space)
        drawn = abilities.draw(rng, count)
        size = count_effects(abilities, space)
        self.effects, self.rates = drawn[:, :, :size].copy(), np.maximum(drawn[:, :, size:], 0)
        # A learner that cannot learn a stratum would leave it for ever, also when the posterior is only unsure.
        self.rates[:, :, OWN] = np.maximum(self.rates[:, :, OWN], LEAST_RATE)
        self._into, self._near = rates.into, share_signals(space)
        parts = [(part.cell, part.share) for part in known.held_out if part.cell.stratum in design.strata]
        parts = parts or [(forecast.cell, 1 / len(known.grid)) for forecast in known.grid]
        # Held-out answers are greedy, training answers sampled: the two have different chances to be valid.
        self._held_out, self._held_out_places = self._place([cell for cell, _ in parts], sampled=False)
        share = np.array([share for _, share in parts])
        self._weights = np.zeros((len(parts), len(space.strata)))
        self._weights[np.arange(len(parts)), self._held_out_places] = share / share.sum()
        traits = [bool(cell.values[place]) for cell, _ in parts for place in space.traits]
        self._traits = np.array(traits, float).reshape(len(parts), len(space.traits))

    def _place(self, cells: Sequence[Cell], *, sampled: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The effects of cells, float [N, K], and the places of their strata, int [N]."""
        complete = [self.space.complete_cell(cell, self.design) for cell in cells]
        places = np.array([self.space.ranks[cell.stratum] for cell in complete], int)
        return compute_effects(complete, self.space, sampled=sampled)[:, : self.effects.shape[2]], places

    def _find_logits(self, points: np.ndarray, places: np.ndarray) -> np.ndarray:
        """float [M, N]."""
        return np.einsum("nk,mnk->mn", points, self.effects[:, places])

    def predict(self, cells: Sequence[Cell]) -> np.ndarray:
        """P(valid) of cells, float [M, N]."""
        return apply_logistic(self._find_logits(*self._place(cells)))

    def estimate_gains(self, cells: Sequence[Cell]) -> np.ndarray:
        """The gain in held-out P(valid) of one problem of each cell, float [M, N]."""
        return self.expect_signals(cells) * self.measure_leverage(cells)

    def expect_signals(self, cells: Sequence[Cell]) -> np.ndarray:
        """The signal of one problem of each cell, float [M, N], 1 being the most."""
        return self._expect(self.predict(cells), cells)

    def _expect(self, success: np.ndarray, cells: Sequence[Cell]) -> np.ndarray:
        """The signal of problems of cells, float [..., N]. success: P(valid) of each."""
        shape = self.model.list_evenness(cells, self.space), self.model.list_graded(cells, self.space)
        return self.model.expect_signal(success, *shape)

    def measure_leverage(self, cells: Sequence[Cell]) -> np.ndarray:
        """The gain in held-out P(valid) for the signal of one problem of each cell, float [M, N]."""
        success = self.predict_held_out()
        # The derivative of the logistic function: a step of ability moves P(valid) most where it is one half.
        slopes = success * (1 - success)
        _, places = self._place(cells)
        found = measure_reach(success, self._weights, self.rates, self._near)[:, places]
        for number, place in enumerate(self.space.traits):
            # A trait's effect counts half up with the trait and half down without it, as `compute_effects` codes it.
            having = (slopes * (self._traits[:, number] - 0.5)) @ self._weights
            extra = self.rates[:, :, 2 + number] * having
            found = found + extra[:, places] * np.array([bool(cell.values[place]) for cell in cells])
        return np.maximum(found, 0) / self.unit

    def predict_held_out(self) -> np.ndarray:
        """P(valid) of the held-out cells, float [M, H]."""
        return apply_logistic(self._find_logits(self._held_out, self._held_out_places))

    def group_cells(self, cells: Sequence[Cell]) -> Kinds:
        """The kinds of cells. A kind has the cells of a stratum with the same traits."""
        points, places = self._place(cells)
        traits = [tuple(bool(cell.values[place]) for place in self.space.traits) for cell in cells]
        members: dict[tuple[int, tuple[bool, ...]], list[int]] = {}
        for cell, key in enumerate(zip(places.tolist(), traits, strict=True)):
            members.setdefault(key, []).append(cell)
        most, first = max(map(len, members.values())), [cells[mine[0]] for mine in members.values()]
        tested = [np.flatnonzero(self._held_out_places == stratum) for stratum, _ in members]
        width = max(1, *map(len, tested))
        kind, number = np.zeros(len(cells), int), np.zeros(len(cells), int)
        for place, mine in enumerate(members.values()):
            kind[mine], number[mine] = place, range(len(mine))
        return Kinds(
            points=points,
            places=places,
            kind=kind,
            number=number,
            cells=np.array([mine + mine[:1] * (most - len(mine)) for mine in members.values()]),
            strata=np.array([stratum for stratum, _ in members]),
            evenness=self.model.list_evenness(first, self.space),
            graded=self.model.list_graded(first, self.space),
            traits=np.array([having for _, having in members], float).reshape(len(members), -1),
            tested=np.stack([np.pad(mine, (0, width - len(mine))) for mine in tested]),
            weights=np.stack(
                [
                    np.pad(self._weights[mine, stratum], (0, width - len(mine)))
                    for mine, (stratum, _) in zip(tested, members, strict=True)
                ]
            ),
        )

    def estimate_prospects(self, kinds: Kinds, problems: float) -> np.ndarray:
        """The gain in held-out P(valid) of one problem of each cell with its kind's prospect, float [M, N].

        That is the prospect times the cell's signal as a share of the largest in its kind, because the levels of a
        later round can be chosen then.

        Args:
            kinds: the cells.
            problems: the horizon.
        """
        levels = self._find_logits(kinds.points, kinds.places)[:, kinds.cells]
        tested = self._find_logits(self._held_out, self._held_out_places)[:, kinds.tested]
        signs = self._traits[kinds.tested] - 0.5
        rates, others = self.rates[:, kinds.strata], self._reach_others()[:, kinds.strata]
        before = (apply_logistic(tested) * kinds.weights).sum(axis=-1)
        shape = kinds.evenness[:, None], kinds.graded[:, None]
        now = self.model.expect_signal(apply_logistic(levels), *shape)
        ability, received, best = np.zeros(before.shape), np.zeros(before.shape), np.zeros(before.shape)
        having = np.zeros((*before.shape, len(self.space.traits)))

        def move(got: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            steps = np.minimum(got[..., None] * rates, MOST_STEP)
            return ability + steps[..., OWN], having + steps[..., 2:] * kinds.traits

        def find_signal(ability: np.ndarray, having: np.ndarray) -> np.ndarray:
            # Problems with a trait have half of its effect, as `compute_effects` codes it.
            own = ability + 0.5 * (having * kinds.traits).sum(axis=-1)
            chances = apply_logistic(levels + own[..., None])
            return self.model.expect_signal(chances, *shape).max(axis=-1)

        signal, last = now.max(axis=-1), 0.0
        for end in (problems * (np.arange(1, LOOKS + 1) / LOOKS) ** 2).tolist():
            # Heun's rule: the signal between two looks is the mean of both, always at the levels that give the most.
            units, last = (end - last) / self.unit, end
            got = (signal + find_signal(*move(signal * units))) / 2 * units
            received += got
            ability, having = move(got)
            moved = tested + ability[..., None] + np.einsum("mgj,ghj->mgh", having, signs)
            gained = (apply_logistic(moved) * kinds.weights).sum(axis=-1) - before + received * others
            # A kind is worth its best rate over all shorter horizons, because one may stop training on it.
            best = np.maximum(best, gained / end)
            signal = find_signal(ability, having)
        most = np.maximum(now.max(axis=-1, keepdims=True), np.finfo(float).tiny)
        return (best[..., None] * now / most)[:, kinds.kind, kinds.number]

    def _reach_others(self) -> np.ndarray:
        """The gain of the other strata by a unit of signal in each, float [M, S]."""
        success = self.predict_held_out()
        mass = (success * (1 - success)) @ self._weights
        return (np.maximum(self.rates[..., OTHERS], 0) * mass) @ self._near

    def train(self, cells: Sequence[Cell], problems: float) -> None:
        """Each learner is trained on `problems` problems of the cell that is its own, of M."""
        points, places = self._place(cells)
        turns = np.arange(len(cells))
        logits = np.einsum("mk,mk->m", points, self.effects[turns, places])
        signal = self._expect(apply_logistic(logits), cells) * problems / self.unit
        self.effects[turns, places, 0] += signal * self.rates[turns, places, OWN]
        self.effects[:, :, 0] += signal[:, None] * self._near[:, places].T * self.rates[:, :, OTHERS]
        for number, place in enumerate(self.space.traits):
            having = np.array([bool(cell.values[place]) for cell in cells])
            self.effects[turns, places, self._into[2 + number]] += (
                signal * self.rates[turns, places, 2 + number] * having
            )
