"""The forecast after a stage: the model, its predictions for a grid of cells, and how good the previous one was."""

from collections.abc import Sequence

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig
from lakewright.engineer.curriculum_cells import Cell
from lakewright.engineer.difficulty.calibration import Calibration, calibration_of
from lakewright.engineer.difficulty.fitting import DifficultySettings, fit
from lakewright.engineer.difficulty.item_response import DifficultyModel
from lakewright.engineer.difficulty.observations import Observation

HOLES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)  # hole ratios of the grid
UNIFORM = 12**-0.5  # the standard deviation of a p of which nothing is known


class HeldOutCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of the held-out boards that are of a cell."""

    cell: Cell
    share: float


class CellForecast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """P(valid) of a cell with its standard deviation, the expected p (1 - p) of its boards; groups: seen so far."""

    cell: Cell
    p: float
    deviation: float
    learnability: float
    groups: int


class Forecast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """difficulty.json. grid: size x hole ratio x forced wait, for the config's number of agents.

    held_out: what the policy is judged on. certainty: 0 where nothing is known of the held-out cells, 1 where all is.
    success: the mean of all groups. calibration: of the forecast one stage earlier, on the cells drawn since.
    """

    model: DifficultyModel
    grid: list[CellForecast]
    held_out: list[HeldOutCell]
    certainty: float
    success: float
    calibration: Calibration | None = None


def forecast(
    config: EnvConfig,
    observations: Sequence[Observation],
    held_out: Sequence[HeldOutCell],
    settings: DifficultySettings,
    before: Forecast | None = None,
    tested: Sequence[Observation] = (),
) -> Forecast:
    """The forecast from all groups so far, those of age 0 being new since `before`.

    tested: outcomes on held-out boards; the model is fitted to them, too, and everything else is of the groups.
    """
    model = fit([*observations, *tested], settings)
    weights = [(settings.decay**seen.age * seen.groups, seen.success / seen.groups) for seen in observations]
    total = sum(weight for weight, _ in weights)
    drawn = [seen for seen in observations if not seen.age]
    return Forecast(
        model=model,
        grid=grid_of(config, model, observations),
        held_out=list(held_out),
        certainty=_certainty(config, model, held_out),
        success=sum(weight * share for weight, share in weights) / total if total else 0.5,
        calibration=calibration_of(before.model, before.success, drawn) if before else None,
    )


def grid_of(config: EnvConfig, model: DifficultyModel, observations: Sequence[Observation] = ()) -> list[CellForecast]:
    """The model's predictions for size x HOLES x forced wait, ascending."""
    strata = (False, True) if config.agents > 1 else (False,)
    cells = [Cell(size, hole, forced) for size in sorted(config.sizes) for hole in HOLES for forced in strata]
    seen = dict.fromkeys(cells, 0)
    for found in observations:
        nearest = min(HOLES, key=lambda hole: abs(hole - found.cell.hole_ratio))
        if (cell := found.cell._replace(hole_ratio=nearest)) in seen:
            seen[cell] += found.groups
    predicted = model.predict(cells, [config.agents] * len(cells))
    learnability = model.learnability(predicted.mean)
    rows = zip(
        cells, predicted.mean.tolist(), predicted.deviation.tolist(), learnability.tolist(), seen.values(), strict=True
    )
    return [CellForecast(*row) for row in rows]


def _certainty(config: EnvConfig, model: DifficultyModel, held_out: Sequence[HeldOutCell]) -> float:
    if not held_out or not model.groups:
        return 0.0
    predicted = model.predict([part.cell for part in held_out], [config.agents] * len(held_out))
    spread = np.average(predicted.deviation, weights=[part.share for part in held_out])
    return float(max(0.0, 1 - spread / UNIFORM))
