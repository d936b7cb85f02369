"""Expected gains: the change of the held-out P(valid) by training on problems, of learners drawn from the posterior.

A problem gives a signal; a signal moves the abilities of its stratum, and a little the others, at their learning
rates; and abilities move the P(valid) of the held-out problems. So the gain of one problem of a cell c in stratum s is

    signal(p_c) (rate_s sum_h w_h p_h (1 - p_h) + what it does to others),

the sum being over the held-out cells h of the stratum, and w_h their shares.
"""

from collections.abc import Sequence

import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.abilities import (
    LEAST_RATE,
    OTHERS,
    OWN,
    compute_effects,
    count_effects,
    describe_effects,
    draw_abilities,
    measure_reach,
    share_signals,
)
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.space import DesignSpace


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
            design: has the givens of cells without.
            space: the design space.
            rng: consumed.
            count: how many learners.

        Raises InputError if the model is a regression, which has no learning rates.
        """
        abilities = known.model.abilities
        if not abilities:
            raise InputError("difficulty: model is regression, which has no learning rates; choose abilities")
        self.model, self.space, self.design, self.unit = known.model, space, design, abilities.unit
        _, rates = describe_effects(space)
        drawn = draw_abilities(abilities, rng, count)
        size = count_effects(abilities, space)
        self.effects, self.rates = drawn[:, :, :size].copy(), np.maximum(drawn[:, :, size:], 0)
        # A learner that cannot learn a stratum would leave it for ever, also when the posterior is only unsure.
        self.rates[:, :, OWN] = np.maximum(self.rates[:, :, OWN], LEAST_RATE)
        self._into, self._near = rates.into, share_signals(space)
        parts = [(part.cell, part.share) for part in known.held_out if part.cell.stratum in design.strata]
        parts = parts or [(found.cell, 1 / len(known.grid)) for found in known.grid]
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

    def _predict(self, points: np.ndarray, places: np.ndarray) -> np.ndarray:
        """P(valid), float [M, N]."""
        logits = np.einsum("nk,mnk->mn", points, self.effects[:, places])
        return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))

    def predict(self, cells: Sequence[Cell]) -> np.ndarray:
        """P(valid) of cells, float [M, N]."""
        return self._predict(*self._place(cells))

    def estimate_gains(self, cells: Sequence[Cell]) -> np.ndarray:
        """The gain in held-out P(valid) of one problem of each cell, float [M, N]."""
        return self.expect_signals(cells) * self.measure_leverage(cells)

    def expect_signals(self, cells: Sequence[Cell]) -> np.ndarray:
        """The signal of one problem of each cell, float [M, N], 1 being the most."""
        return self.model.expect_signal(self.predict(cells))

    def measure_leverage(self, cells: Sequence[Cell]) -> np.ndarray:
        """The gain in held-out P(valid) for the signal of one problem of each cell, float [M, N]."""
        success = self._predict(self._held_out, self._held_out_places)
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

    def train(self, cells: Sequence[Cell], problems: float) -> None:
        """Each learner is trained on `problems` problems of the cell that is its own, of M."""
        points, places = self._place(cells)
        turns = np.arange(len(cells))
        logits = np.einsum("mk,mk->m", points, self.effects[turns, places])
        success = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
        signal = self.model.expect_signal(success) * problems / self.unit
        self.effects[turns, places, 0] += signal * self.rates[turns, places, OWN]
        self.effects[:, :, 0] += signal[:, None] * self._near[:, places].T * self.rates[:, :, OTHERS]
        for number, place in enumerate(self.space.traits):
            having = np.array([bool(cell.values[place]) for cell in cells])
            self.effects[turns, places, self._into[2 + number]] += (
                signal * self.rates[turns, places, 2 + number] * having
            )
