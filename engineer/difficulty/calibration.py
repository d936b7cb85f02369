"""How well a model predicted the groups of the stage that came after it."""

from collections.abc import Sequence

import msgspec
import numpy as np

from lakewright.engineer.difficulty.model import DifficultyModel
from lakewright.engineer.difficulty.observations import Observation
from lakewright.engineer.space import DesignSpace

BINS = 10


class Bin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of the reliability curve: mean prediction and observed success of cells predicted alike."""

    predicted: float
    observed: float
    groups: int


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """brier: the mean over groups of (predicted P(valid) - observed success of the cell)^2.

    baseline: the same for one prediction for all, the mean success that the model was fitted to. groups: how many.
    reliability: the groups by what was predicted for them, in tenths.
    """

    brier: float
    baseline: float
    groups: int
    reliability: list[Bin]


def calibrate(
    model: DifficultyModel, constant: float, drawn: Sequence[Observation], space: DesignSpace
) -> Calibration | None:
    """The calibration of `model` on cells drawn after it was fitted; None where none were.

    constant: the prediction of the baseline.
    """
    if not drawn:
        return None
    predicted = model.predict([seen.cell for seen in drawn], space).mean
    groups = np.array([seen.groups for seen in drawn])
    observed = np.array([seen.success for seen in drawn]) / groups
    places = _tenth(predicted)
    bins = []
    for place in np.unique(places):
        mine = places == place
        expected, seen = (float(np.average(values[mine], weights=groups[mine])) for values in (predicted, observed))
        bins.append(Bin(expected, seen, int(groups[mine].sum())))
    brier, baseline = (
        float(np.average((values - observed) ** 2, weights=groups)) for values in (predicted, np.array(constant))
    )
    return Calibration(brier, baseline, int(groups.sum()), bins)


def pool_calibrations(found: Sequence[Calibration]) -> Calibration | None:
    """Several forecasts as one, each by its groups; None where there are none."""
    groups = sum(one.groups for one in found)
    if not groups:
        return None
    brier, baseline = (sum(getattr(one, name) * one.groups for one in found) / groups for name in ("brier", "baseline"))
    tenths: dict[int, list[Bin]] = {}
    for part in (part for one in found for part in one.reliability):
        tenths.setdefault(int(_tenth(part.predicted)), []).append(part)
    return Calibration(brier, baseline, groups, [_pool_bins(tenths[place]) for place in sorted(tenths)])


def _pool_bins(parts: Sequence[Bin]) -> Bin:
    groups = sum(part.groups for part in parts)
    predicted, observed = (
        sum(getattr(part, name) * part.groups for part in parts) / groups for name in ("predicted", "observed")
    )
    return Bin(predicted, observed, groups)


def _tenth(predicted: np.ndarray | float) -> np.ndarray:
    return np.minimum(np.floor(np.multiply(predicted, BINS)), BINS - 1)
