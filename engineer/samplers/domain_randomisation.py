"""Domain randomisation for each problem: Tobin et al. 2017, arXiv 1703.06907."""

from dataclasses import dataclass

import numpy as np

from lakewright.core_jax.support import Count
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment
from lakewright.engineer.guard import can_draw_row
from lakewright.engineer.problems import Problem
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Fresh, MemorylessSampler, Sampled, ScoreProblems

MOST_TRIES = 10_000  # for values of which problems can be drawn


@dataclass
class DomainRandomisationSampler(MemorylessSampler):
    """theta = (stratum, levels, traits) ~ U(box), drawn for every `alike` problems; again if nothing can be drawn.

    Only the strata and the givens are the design's.
    """

    alike: Count = 8

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """Problems of many designs, mixed."""
        rng = numpy_rng(key)
        problems: list[Problem] = []
        while len(problems) < count:
            problems += fresh(min(self.alike, count - len(problems)), _draw_theta(fresh.design, fresh.environment, rng))
        return Sampled([problems[i] for i in rng.permutation(count)], count)


def _draw_theta(design: Design, environment: Environment, rng: np.random.Generator) -> Design:
    space = environment.space
    strata = space.sort_strata(design.strata)
    for _ in range(MOST_TRIES):
        stratum = strata[int(rng.choice(len(strata)))]
        row: dict[str, int | float] = {space.share.name: 1.0}
        for knob in space.knobs:
            low, high = space.limits(stratum, knob)
            value = float(rng.integers(2)) if knob.trait else float(rng.uniform(low, high))
            row[knob.name] = knob.round_value(value) if knob.whole else value
        if can_draw_row(stratum, row, environment, design.given):
            return Design({stratum: row}, design.given, design.version)
    raise ValueError(f"no problem could be drawn at {MOST_TRIES} random values; choose another sampler")
