"""PCL, prompt curriculum learning: Gao et al. 2025, arXiv 2510.01135."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from lakewright.core_jax.support import Count, Positive, Share, naming_extra
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem
from lakewright.engineer.proposal import Stateful
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Fresh, Rollout, Sampled, ScoreProblems

PclPool = Annotated[float, msgspec.Meta(ge=1, le=100)]


@dataclass
class PclSampler(Stateful):
    """Of `pool` x count fresh problems those are trained on whose predicted rate of valid answers V is nearest to
    `target`.

    Nothing is rolled out for it: V is a logistic regression (scikit-learn, C = `strength`) on the features that the
    environment gives a problem, fitted to the success of the last `window` problems that were trained on. The paper's V
    is a language model with a head. Before anything was trained on, all problems are fresh.
    """

    pool: PclPool = 4.0
    target: Share = 0.5
    strength: Positive = 1.0
    window: Count = 2048
    seen: list[list[float]] = field(default_factory=list, init=False)  # rows of features, and the success

    def draw(self, count: int, fresh: Fresh, score: ScoreProblems, key: Key) -> Sampled:
        """The problems of intermediate predicted difficulty, in an order of their own chance."""
        if not self.seen:
            return Sampled(fresh(count), count)
        problems = fresh(round(self.pool * count))
        away = np.abs(self.predict_success(problems, fresh.environment) - self.target)
        nearest = np.argsort(away, kind="stable")[:count]
        return Sampled([problems[i] for i in numpy_rng(key).permutation(nearest)], len(problems))

    def predict_success(self, problems: Sequence[Problem], environment: Environment) -> np.ndarray:
        """V of problems, float [N]."""
        with naming_extra("the sampler pcl", "sklearn"):
            from sklearn.linear_model import LogisticRegression  # a second to load: only who uses it waits
            from sklearn.pipeline import make_pipeline
            from sklearn.preprocessing import PolynomialFeatures, StandardScaler

        table = np.array(self.seen)
        points, success = table[:, :-1], np.clip(table[:, -1], 1e-3, 1 - 1e-3)
        scaled = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler())
        twice = np.concatenate([scaled.fit_transform(points)] * 2)
        valid, weights = np.repeat([1, 0], len(points)), np.concatenate([success, 1 - success])
        model = LogisticRegression(C=self.strength, max_iter=1000).fit(twice, valid, sample_weight=weights)
        asked = scaled.transform(np.array([environment.check_features(problem) for problem in problems]))
        return model.predict_proba(asked)[:, 1]

    def learn(self, rollouts: Sequence[Rollout], stage: int, environment: Environment) -> None:
        """Notes the success on the problems of a stage."""
        self.seen += [[*environment.check_features(problem), group.success] for problem, group in rollouts]
        self.seen = self.seen[-self.window :]
