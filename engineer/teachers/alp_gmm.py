"""ALP-GMM: absolute learning progress and a Gaussian mixture. Portelas et al. 2019, arXiv 1910.07224."""

import warnings
from typing import Annotated, Any

import msgspec
import numpy as np

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, Share
from lakewright.engineer.delta import ConfigDelta, normalised
from lakewright.engineer.evidence import CellGroups, Evidence
from lakewright.engineer.options import Draws
from lakewright.engineer.proposal import Proposal, decided, moved_to
from lakewright.engineer.random_generators import Key, numpy_rng

REASON = "where the success rate changed most"
SIZE, HOLE, WAIT, ALP = range(4)
FEWEST = 2  # components
Components = Annotated[int, msgspec.Meta(ge=FEWEST)]
First = Annotated[int, msgspec.Meta(ge=2 * FEWEST)]


class AlpGmmTeacher:
    """Tasks theta = (size rank, hole ratio, forced wait), each 0 .. 1; a stage gives the success rate R of each cell.

    ALP(theta) = abs(R - R'), where R' belongs to the nearest task of earlier stages. A Gaussian mixture is fitted to
    the latest `window` (theta, ALP), its number of components, 2 to `components`, by AIC. Of `draws` tasks the share
    `random` is uniform, and so are all until there are `first` points; the others come from a component chosen in
    proportion to its mean ALP. Shares and means of the tasks by size are the config.
    """

    def __init__(
        self, random: Share = 0.2, components: Components = 6, first: First = 8, window: Count = 128, draws: Draws = 128
    ) -> None:
        if window < first:
            raise InputError(
                f"teacher_options: window is {window}, less than first {first}, so that no mixture is ever fitted; "
                f"choose at least {first}"
            )
        self.random = random
        self.components = components
        self.first = first
        self.window = window
        self.draws = draws
        self.seen: list[list[float]] = []  # rows of theta and R
        self.points: list[list[float]] = []  # rows of theta and ALP

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The config of the drawn tasks. Without rollouts, no edits."""
        if not evidence.groups:
            return decided(ConfigDelta({}))
        self.observe([_task(cell, config) for cell in evidence.groups])
        return moved_to(config, _config_of(self._tasks(numpy_rng(key)), config), REASON)

    def observe(self, rows: list[list[float]]) -> None:
        """Takes in a stage's rows of theta and R."""
        if self.seen:
            old = np.array(self.seen)
            for row in rows:
                nearest = int(np.argmin(np.linalg.norm(old[:, :ALP] - row[:ALP], axis=1)))
                self.points.append([*row[:ALP], abs(row[ALP] - float(old[nearest, ALP]))])
        self.seen = [*self.seen, *rows][-self.window :]
        self.points = self.points[-self.window :]

    def state_dict(self) -> dict[str, Any]:
        """Tasks with their success rates, and with their learning progress."""
        return {"seen": list(self.seen), "points": list(self.points)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Tasks with their success rates, and with their learning progress."""
        self.seen, self.points = list(state["seen"]), list(state["points"])

    def _tasks(self, rng: np.random.Generator) -> np.ndarray:
        """float [draws, 3]"""
        uniform = rng.uniform(size=(self.draws, ALP))
        if len(self.points) < self.first:
            return uniform
        means, covariances = _mixture(np.array(self.points), self.components, int(rng.integers(1 << 31)))
        progress = np.maximum(means[:, ALP], 0)
        chances = progress / progress.sum() if progress.sum() else np.full(len(means), 1 / len(means))
        chosen = rng.choice(len(means), size=self.draws, p=chances)
        drawn = [rng.multivariate_normal(means[i, :ALP], covariances[i, :ALP, :ALP], method="eigh") for i in chosen]
        exploring = rng.uniform(size=(self.draws, 1)) < self.random
        return np.where(exploring, uniform, np.clip(drawn, 0, 1))


def _mixture(points: np.ndarray, components: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means [k, 4] and covariances [k, 4, 4] of the mixture of the least AIC."""
    from sklearn.mixture import GaussianMixture  # a second to load: only who uses it waits

    counts = range(FEWEST, min(components, len(points) // 2) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of repeated points, which leave components empty
        fits = [GaussianMixture(count, random_state=seed).fit(points) for count in counts]
    best = min(fits, key=lambda fit: fit.aic(points))
    return best.means_, best.covariances_


def _task(cell: CellGroups, config: EnvConfig) -> list[float]:
    sizes = sorted(config.sizes)
    rank = sizes.index(cell.size) / max(len(sizes) - 1, 1)
    return [rank, cell.hole_ratio / MAX_HOLE_RATIO, float(cell.forced), cell.groups.success]


def _config_of(tasks: np.ndarray, config: EnvConfig) -> dict[int, SizeConfig]:
    ranks = np.rint(tasks[:, SIZE] * (len(config.sizes) - 1))
    ordered, sizes = sorted(config.sizes), {}
    for size, old in config.sizes.items():
        mine = tasks[ranks == ordered.index(size)]
        sizes[size] = SizeConfig(0.0, old.hole_ratio, old.wait_ratio)
        if len(mine):
            _, hole, wait = mine.mean(axis=0).tolist()
            share = len(mine) / len(tasks)
            sizes[size] = SizeConfig(share, hole * MAX_HOLE_RATIO, wait if config.agents > 1 else 0.0)
    return normalised(sizes)
