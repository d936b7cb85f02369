"""PCL, prompt curriculum learning: Gao et al. 2025, arXiv 2510.01135."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import Count, Positive, Share
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.samplers.base import Drawn, Fresh, Rollout, Score

Pool = Annotated[float, msgspec.Meta(ge=1, le=100)]


class PclSampler:
    """Of `pool` x count fresh boards those are trained on whose predicted rate of valid plans V is nearest to `target`.

    Nothing is rolled out for it: V is a logistic regression (scikit-learn, C = `strength`) on a board's size, holes,
    optima and forced wait, fitted to the success of the last `window` boards that were trained on; the paper's V is a
    language model with a head. Before anything was trained on, all boards are fresh.
    """

    def __init__(self, pool: Pool = 4.0, target: Share = 0.5, strength: Positive = 1.0, window: Count = 2048) -> None:
        self.pool = pool
        self.target = target
        self.strength = strength
        self.window = window
        self.seen: list[list[float]] = []  # rows of features, and the success

    def draw(self, count: int, fresh: Fresh, score: Score, key: Key) -> Drawn:
        """The boards of intermediate predicted difficulty, in an order of their own chance."""
        if not self.seen:
            return Drawn(fresh(count), count)
        rows = fresh(round(self.pool * count))
        nearest = np.argsort(np.abs(self.predicted(rows) - self.target), kind="stable")[:count]
        return Drawn([rows[i] for i in numpy_rng(key).permutation(nearest)], len(rows))

    def predicted(self, rows: Sequence[Row]) -> np.ndarray:
        """V of boards, float [N]."""
        from sklearn.linear_model import LogisticRegression  # a second to load: only who uses it waits
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler

        table = np.array(self.seen)
        points, success = table[:, :-1], np.clip(table[:, -1], 1e-3, 1 - 1e-3)
        scaled = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler())
        twice = np.concatenate([scaled.fit_transform(points)] * 2)
        valid, weights = np.repeat([1, 0], len(points)), np.concatenate([success, 1 - success])
        model = LogisticRegression(C=self.strength, max_iter=1000).fit(twice, valid, sample_weight=weights)
        return model.predict_proba(scaled.transform(np.array([_features(row) for row in rows])))[:, 1]

    def learn(self, rollouts: Sequence[Rollout], stage: int) -> None:
        """Notes the success on the boards of a stage."""
        self.seen += [[*_features(row), group.success] for row, group in rollouts]
        self.seen = self.seen[-self.window :]

    def state_dict(self) -> dict[str, Any]:
        """Features and success of the latest boards."""
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Features and success of the latest boards."""
        self.seen = list(state["seen"])


def _features(row: Row) -> list[float]:
    holes = sum(line.count("H") for line in row.grid) / row.size**2
    optima = row.makespan or 0, row.sum_of_costs or 0
    return [float(row.size), float(row.agents), holes, *map(float, optima), float(bool(row.wait_required))]
