"""Learning progress: cells are drawn where the success rate changes, by ALP-GMM or by two means."""

import warnings
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, Share, naming_extra
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.difficulty.abilities import apply_logistic
from lakewright.engineer.evidence.evidence import CellGroups, Evidence
from lakewright.engineer.plugins import Draws
from lakewright.engineer.proposal import CellTeacher, Proposal, Stateful, propose_nothing, propose_rows, success_by_bin
from lakewright.engineer.random_generators import Key, draw_normal, numpy_rng
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.windows import replace_window

REASON = "where the success rate changed most"
FEWEST = 2  # components
Components = Annotated[int, msgspec.Meta(ge=FEWEST)]
First = Annotated[int, msgspec.Meta(ge=2 * FEWEST)]


@dataclass
class AlpGmmTeacher(Stateful):
    """ALP-GMM, absolute learning progress and a Gaussian mixture (Portelas et al. 2019, arXiv 1910.07224).

    Tasks are theta = (rank of the stratum, levels, traits), each 0 .. 1; a stage gives the success rate R of each cell.

    ALP(theta) = abs(R - R'), where R' belongs to the nearest task of earlier stages. A Gaussian mixture is fitted to
    the latest `window` (theta, ALP), its number of components, 2 to `components`, by AIC. Of `draws` tasks the share
    `random` is uniform, and so are all until there are `first` points; the others come from a component chosen in
    proportion to its mean ALP. Shares and means of the tasks by stratum are the
    design.
    """

    reads_outcomes = True

    random: Share = 0.2
    components: Components = 6
    first: First = 8
    window: Count = 128
    draws: Draws = 128
    seen: list[list[float]] = field(default_factory=list, init=False)  # rows of theta and R
    points: list[list[float]] = field(default_factory=list, init=False)  # rows of theta and ALP

    def __post_init__(self) -> None:
        if self.window < self.first:
            found = f"window is {self.window}, less than first {self.first}, so that no mixture is ever fitted"
            raise InputError(f"teacher_options: {found}; choose at least {self.first}")

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The design of the drawn tasks. Without rollouts, no edits."""
        if not evidence.groups:
            return propose_nothing()
        self.observe_stage([_describe_task(seen, design, space) for seen in evidence.groups])
        tasks = self._draw_tasks(numpy_rng(key), 1 + len(space.knobs))
        return propose_rows(design, _rows_of(tasks, design, space), REASON, space)

    def observe_stage(self, rows: list[list[float]]) -> None:
        """Takes in a stage's rows of theta and R."""
        if self.seen:
            # Before these rows are added to `seen`: otherwise the nearest task of each would be itself, and progress
            # zero.
            old = np.array(self.seen)
            for row in rows:
                nearest = int(np.argmin(np.linalg.norm(old[:, :-1] - row[:-1], axis=1)))
                self.points.append([*row[:-1], abs(row[-1] - float(old[nearest, -1]))])
        self.seen = [*self.seen, *rows][-self.window :]
        self.points = self.points[-self.window :]

    def _draw_tasks(self, rng: np.random.Generator, axes: int) -> np.ndarray:
        """float [draws, axes]"""
        uniform = rng.uniform(size=(self.draws, axes))
        # A mixture of a few points would only repeat them.
        if len(self.points) < self.first:
            return uniform
        means, covariances = _fit_mixture(np.array(self.points), self.components, int(rng.integers(1 << 31)))
        # A fitted mean may be slightly negative, which no chance can be.
        progress = np.maximum(means[:, -1], 0)
        chances = progress / progress.sum() if progress.sum() else np.full(len(means), 1 / len(means))
        chosen = rng.choice(len(means), size=self.draws, p=chances)
        drawn = [draw_normal(rng, means[i, :-1], covariances[i, :-1, :-1], 1)[0] for i in chosen]
        exploring = rng.uniform(size=(self.draws, 1)) < self.random
        return np.where(exploring, uniform, np.clip(drawn, 0, 1))


def _fit_mixture(points: np.ndarray, components: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Means [k, A + 1] and covariances [k, A + 1, A + 1], of A axes and ALP, of the mixture of the least AIC."""
    with naming_extra("the teacher alp_gmm", "sklearn"):
        from sklearn.mixture import GaussianMixture  # a second to load: only who uses it waits

    counts = range(FEWEST, min(components, len(points) // 2) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of repeated points, which leave components empty
        fits = [GaussianMixture(count, random_state=seed).fit(points) for count in counts]
    best = min(fits, key=lambda fit: fit.aic(points))
    return best.means_, best.covariances_


def _describe_task(seen: CellGroups, design: Design, space: DesignSpace) -> list[float]:
    """Theta and R of a cell."""
    strata, cell = space.sort_strata(design.strata), seen.cell
    theta = [(strata.index(cell.stratum) if cell.stratum in strata else 0) / max(len(strata) - 1, 1)]
    for knob, value in zip(space.knobs, cell.values, strict=True):
        theta.append(float(value) if knob.trait else (value - knob.low) / (knob.span or 1.0))
    return [*theta, seen.groups.success]


def _rows_of(tasks: np.ndarray, design: Design, space: DesignSpace) -> dict[Stratum, DesignRow]:
    """The rows that tasks mean: shares and means by stratum."""
    ranks = np.rint(tasks[:, 0] * (len(design.strata) - 1))
    ordered, rows = space.sort_strata(design.strata), {}
    for stratum, old in design.strata.items():
        mine = tasks[ranks == ordered.index(stratum)]
        rows[stratum] = {**old, space.share.name: 0.0}
        if len(mine):
            rows[stratum][space.share.name] = len(mine) / len(tasks)
            for knob, mean in zip(space.knobs, mine.mean(axis=0).tolist()[1:], strict=True):
                low, high = space.limits(stratum, knob)
                value = min(high, max(low, mean if knob.trait else knob.low + mean * knob.span))
                rows[stratum] = replace_window(rows[stratum], knob, value, value)
    return normalize_rows(rows, space)


@dataclass
class LearningProgressTeacher(CellTeacher):
    """Kanitscheider et al. 2021 (arXiv 2106.14876), by the formulas in `LearningProgress` in Syllabus
    (https://github.com/RyanNavillus/Syllabus): a fast and a slow mean of the success rate R_c of each cell, 0 at first:

        fast <- alpha R + (1 - alpha) fast,    slow <- alpha fast + (1 - alpha) slow,    LP = abs(f(fast) - f(slow)),
        f(p) = p (1 - theta) / (p + theta (1 - 2 p)),

    where f looks more closely at small rates. Among the cells of LP > 0, p_c ~ sigmoid((LP_c - mean) / deviation), and
    the others get nothing; without any progress all are alike. A stage counts as one evaluation of the cells that it
    rolled out; the source evaluates all of its tasks.
    """

    reason = "the cells whose success rate changes"
    alpha: Share = 0.1
    theta: Share = 0.1
    means: dict[Cell, tuple[float, float]] = field(default_factory=dict, init=False)  # fast and slow

    def weigh(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> dict[Cell, float]:
        """p. Deterministic."""
        for cell, success in success_by_bin(evidence, design, space).items():
            fast, slow = self.means.get(cell, (0.0, 0.0))
            fast = self.alpha * success + (1 - self.alpha) * fast
            self.means[cell] = fast, self.alpha * fast + (1 - self.alpha) * slow
        cells = space.grid(design.strata)
        return dict(zip(cells, self.weigh_progress([self.measure_progress(cell) for cell in cells]), strict=True))

    def measure_progress(self, cell: Cell) -> float:
        """LP of a cell."""
        fast, slow = self.means.get(cell, (0.0, 0.0))
        return abs(self._stretch_rate(fast) - self._stretch_rate(slow))

    def weigh_progress(self, progress: list[float]) -> list[float]:
        """p of cells by their LP."""
        found = np.array(progress)
        # Only cells with progress share the weight, as in the source; without any, all are alike, which explores.
        chosen = found > 0 if (found > 0).any() else np.ones(len(found), bool)
        away = found[chosen] - found[chosen].mean()
        weights = np.zeros(len(found))
        weights[chosen] = apply_logistic(away / (found[chosen].std() or 1.0))
        return (weights / weights.sum()).tolist()

    def _stretch_rate(self, p: float) -> float:
        below = p + self.theta * (1 - 2 * p)
        return p * (1 - self.theta) / below if below else 0.0
