"""Samplers that keep the share of every stratum: a problem gives its place to another of its stratum, or keeps it.

They avoid groups whose answers all earn the same, which teach nothing: by the difficulty model's expectation, or by
answers of the policy, as DAPO does (2503.14476) without keeping the shares. With answers, the other problem also has
the traits of the first, so that the shares of traits are the design's, too.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.random_generators import Key
from lakewright.engineer.samplers.base import MOST_TURNS, Fresh, MemorylessSampler, Sampled, ScoreProblems
from lakewright.engineer.space import DesignSpace

BETTER = 1e-6  # of a signal, at most 1: less is no reason to draw another problem

Turns = Annotated[int, msgspec.Meta(ge=1, le=MOST_TURNS)]


@dataclass
class SignalSampler(MemorylessSampler):
    """Of `pool` problems of a stratum for a place, the one with most signal by the difficulty model.

    Nothing is rolled out for it. To the model, problems of a stratum differ by their traits alone, and by the levels of
    windows. So it raises the share of a trait, or of its absence. A share q becomes at most 1 - (1 - q)^pool, so
    neither starves. With fixed shares of traits, a design without windows would leave it no choice. Before the
    model knows anything, all problems are the first ones.
    """

    keeps_shares: ClassVar[bool] = True
    pool: Annotated[int, msgspec.Meta(ge=2, le=MOST_TURNS)] = 4

    def check_space(self, space: DesignSpace) -> None:
        """Raises InputError on a space in which all problems of a stratum are alike to the model."""
        if not space.traits:
            said = (
                "sampler signal: no knob of this space is a trait, so the model cannot tell problems of a stratum apart"
            )
            raise InputError(f"{said}; choose redraw, or leave it out")

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """The problems of most expected signal, in the order of the places."""
        problems, known = fresh(count), fresh.forecast
        turns = [0] * count
        if known and known.model.groups:
            # For the other turns only cells are drawn, not problems: the model cannot tell problems of a cell apart,
            # and `make` may be slow.
            cells = [
                [problem.cell, *(fresh.find_cell(place, turn) for turn in range(1, self.pool))]
                for place, problem in enumerate(problems)
            ]
            distinct = list(dict.fromkeys(cell for row in cells for cell in row))
            model, space = known.model, fresh.environment.space
            shape = model.list_evenness(distinct, space), model.list_graded(distinct, space)
            signals = model.expect_signal(model.predict(distinct, space).mean, *shape)
            signal = dict(zip(distinct, signals.tolist(), strict=True))
            for place, row in enumerate(cells):
                # Within BETTER of the best the first is taken, so that rounding does not decide, and most places keep
                # their problem.
                found = np.array([signal[cell] for cell in row])
                turns[place] = int(np.argmax(found >= found.max() - BETTER))
        chosen = [
            fresh.draw_again(place, turn) if turn else problem
            for place, (problem, turn) in enumerate(zip(problems, turns, strict=True))
        ]
        return Sampled(chosen, count + sum(map(bool, turns)), turns=turns)


@dataclass
class RedrawSampler(MemorylessSampler):
    """Problems are rolled out; if all answers earn the same, another problem of the stratum is, at most `turns`
    times. If no problem has signal, or the budget ends, the first one is used.

    By default the other problem has the traits of the first. With `keep="strata"` it may have others, so more places
    get signal, and the traits with more signal get a larger share.
    """

    keeps_shares: ClassVar[bool] = True
    rolls_out: ClassVar[bool] = True
    turns: Turns = 2
    keep: Literal["traits", "strata"] = "traits"

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """Problems to which the answers earn differently, in the order of the places."""
        first = fresh(count)
        problems, turns, left = list(first), [0] * count, list(range(count))
        scored, drawn, barren = 0, count, list[int]()
        others = MOST_TURNS if self.keep == "traits" else 0
        for turn in [0, *(others + again for again in range(1, self.turns + 1))]:
            asked = [fresh.draw_again(place, turn) if turn else first[place] for place in left]
            rollouts = score(asked)
            scored, drawn = scored + len(rollouts), drawn + (len(asked) if turn else 0)
            barren = []
            # Not strict: the budget may end within a round, and then only the first places were rolled out.
            for place, (problem, group) in zip(left, rollouts, strict=False):
                if group.informative:
                    problems[place], turns[place] = problem, turn
                else:
                    barren.append(place)
            barren += left[len(rollouts) :] if turn else []
            if not barren or len(rollouts) < len(asked):
                break
            left = barren
        return Sampled(problems, drawn, scored=scored, turns=turns, barren=barren)
