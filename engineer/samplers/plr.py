"""PLR, prioritised level replay: Jiang et al. 2021, arXiv 2010.03934; scores as in SFL, without a critic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from lakewright.core_jax.support import Count, Share
from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.proposal import Stateful
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Fresh, Rollout, Sampled, Score

Beta = Annotated[float, msgspec.Meta(ge=0.01)]  # less, and all ranks beyond the first have no chance


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem that was trained on: its score p (1 - p) then, and the last stage that drew it."""

    problem: Problem
    score: float
    stage: int


@dataclass
class PlrSampler(Stateful):
    """`replay` of a stage's problems, or as many as there are, are of earlier stages, drawn without replacement by

        P_i = (1 - staleness) h_i / sum(h) + staleness (c - C_i) / sum(c - C),    h_i = rank_i^(-1 / beta),

    with rank 1 the largest score, c the stage to come and C_i the last one that drew the problem; the others are fresh.
    The `capacity` levels of the largest scores are stored. A replayed problem is scored again by the stage's rollouts.
    """

    replay: Share = 0.5
    staleness: Share = 0.3
    beta: Beta = 0.1
    capacity: Count = 1024
    stage: int = field(default=0, init=False)  # the one to come
    levels: list[Level] = field(default_factory=list, init=False)

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Sampled:
        """Old problems by rank and staleness, and fresh ones; nothing is rolled out for it."""
        rng, again = numpy_rng(key), min(round(self.replay * count), len(self.levels))
        problems = fresh(count - again) if again < count else []
        if again:
            chosen = rng.choice(len(self.levels), size=again, replace=False, p=self.replay_probabilities())
            problems += [self.levels[i].problem for i in chosen]
        return Sampled([problems[i] for i in rng.permutation(count)], count - again, replayed=again)

    def replay_probabilities(self) -> np.ndarray:
        """P, float [levels]."""
        scores = np.array([level.score for level in self.levels])
        ranks = np.empty(len(scores))
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        weights = np.maximum(ranks ** (-1 / self.beta), np.finfo(float).tiny)  # so that any number can be drawn
        stale = np.array([self.stage - level.stage for level in self.levels], float)
        by_age = stale / stale.sum() if stale.any() else np.full(len(stale), 1 / len(stale))
        return (1 - self.staleness) * weights / weights.sum() + self.staleness * by_age

    def learn(self, rollouts: Sequence[Rollout], stage: int, environment: Environment) -> None:
        """Scores the problems of a stage."""
        levels = {level.problem.key: level for level in self.levels}
        for problem, group in rollouts:
            levels[problem.key] = Level(problem, group.learnability, stage)
        self.levels = sorted(levels.values(), key=lambda level: -level.score)[: self.capacity]
        self.stage = stage + 1
