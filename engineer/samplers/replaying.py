"""Samplers that use problems again: PLR, prioritised level replay, and VCRL, variance-based curriculum."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import Count, Share
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem
from lakewright.engineer.proposal import Stateful
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Fresh, Rollout, Sampled, ScoreProblems

Beta = Annotated[float, msgspec.Meta(ge=0.01)]  # less, and all ranks beyond the first have no chance


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem that was trained on: its score p (1 - p) then, and the last stage that drew it."""

    problem: Problem
    score: float
    stage: int


@dataclass
class PlrSampler(Stateful):
    """PLR (Jiang et al. 2021, arXiv 2010.03934), with scores as in SFL, without a critic.

    `replay` of a stage's problems, or as many as there are, are of earlier stages, drawn without replacement by

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

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
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
        # By key, so that a problem that was drawn again replaces its old score instead of counting twice.
        levels = {level.problem.key: level for level in self.levels}
        for problem, group in rollouts:
            levels[problem.key] = Level(problem, group.learnability, stage)
        self.levels = sorted(levels.values(), key=lambda level: -level.score)[: self.capacity]
        self.stage = stage + 1


class Remembered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem of the memory, and its priority."""

    problem: Problem
    priority: float


@dataclass
class VcrlSampler(Stateful):
    """VCRL (Jiang et al. 2025, arXiv 2509.19803).

    Fresh problems are rolled out, and those with p >= threshold trained on, where p is the variance of a group's
    verdicts k (G - k) / (G (G - 1)) over the most that it can be. The places of the others are filled from a memory of
    problems that once had as much, the largest priority first, and then with the best of the others.

    The priority of a problem in the memory is p <- momentum p + (1 - momentum) p' when it is trained on again with p',
    and the `capacity` problems of the largest stay in it. The threshold is `first` in the first stage and `later` after
    it: in the paper 0.3 for 20 steps, then 0.8.
    """

    first: Share = 0.3
    later: Share = 0.8
    momentum: Share = 0.9
    capacity: Count = 1024
    stage: int = field(default=0, init=False)  # the one to come
    memory: list[Remembered] = field(default_factory=list, init=False)

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """The problems above the threshold, then the memory's, then the best of the rest."""
        problems = fresh(count)
        rollouts = score(problems)
        threshold = self.later if self.stage else self.first
        order = sorted(rollouts, key=lambda rollout: -spread_of(rollout[1]))
        above = [problem for problem, group in order if spread_of(group) >= threshold]
        old = [known.problem for known in self.memory][: count - len(above)]
        rest = [problem for problem, _ in order[len(above) :]] + problems[len(rollouts) :]
        chosen = [*above, *old, *rest][:count]
        permutation = numpy_rng(key).permutation(count)
        return Sampled([chosen[i] for i in permutation], count, scored=len(rollouts), replayed=len(old))

    def learn(self, rollouts: Sequence[Rollout], stage: int, environment: Environment) -> None:
        """Notes what the problems of a stage were worth in training."""
        memory = {known.problem.key: known for known in self.memory}
        for problem, group in rollouts:
            now = spread_of(group)
            before = memory.get(problem.key)
            priority = self.momentum * before.priority + (1 - self.momentum) * now if before else now
            memory[problem.key] = Remembered(problem, priority)
        # Only what passes the later threshold is worth memory: everything else would be drawn fresh as cheaply.
        useful = (known for known in memory.values() if known.priority >= self.later)
        self.memory = sorted(useful, key=lambda known: -known.priority)[: self.capacity]
        self.stage = stage + 1


def spread_of(group: RolloutGroup) -> float:
    """p: the variance of a group's verdicts over the most that it can be, 0 .. 1; 0 of one plan alone."""
    half = group.completions // 2
    most = half * (group.completions - half)
    return group.valid * (group.completions - group.valid) / most if most else 0.0
