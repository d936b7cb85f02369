"""The forecast of a stage: the fitted model, its predictions for a grid of cells, and its calibration."""

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np

from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Design, by_stratum
from lakewright.engineer.difficulty.abilities import count_effects, measure_reach, share_signals
from lakewright.engineer.difficulty.abilities_fit import fit_abilities
from lakewright.engineer.difficulty.model import DifficultyModel, DifficultySettings, Observation
from lakewright.engineer.difficulty.regression_fit import fit_regression
from lakewright.engineer.signal import Doubt
from lakewright.engineer.space import DesignSpace

FADING = 0.5  # of the weight of lengths of answers with every round
BINS = 10  # of predictions, for the reliability curve
UNIFORM = 12**-0.5  # the standard deviation of a p of which nothing is known


class Bin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of the reliability curve: mean prediction and observed success of cells predicted alike."""

    predicted: float
    observed: float
    groups: int


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """brier: the mean over groups of (predicted P(valid) - observed success of the cell)^2.

    baseline: the same for a single prediction, the mean success that the model was fitted to. groups: their number.
    reliability: the groups by prediction, in tenths.
    """

    brier: float
    baseline: float
    groups: int
    reliability: list[Bin]


def measure_calibration(
    model: DifficultyModel, constant: float, drawn: Sequence[Observation], space: DesignSpace
) -> Calibration | None:
    """The calibration of `model` on cells drawn after it was fitted; None if no such cell was.

    Args:
        model: the forecast's model.
        constant: the prediction of the baseline.
        drawn: outcomes since.
        space: the design space.
    """
    predicted = model.predict([seen.cell for seen in drawn], space).mean.tolist()
    calibrations = []
    for p, seen in zip(predicted, drawn, strict=True):
        observed = seen.success / seen.groups
        point = Bin(p, observed, seen.groups)
        calibrations.append(Calibration((p - observed) ** 2, (constant - observed) ** 2, seen.groups, [point]))
    return pool_calibrations(calibrations)


def pool_calibrations(found: Sequence[Calibration]) -> Calibration | None:
    """Pools the calibrations of several forecasts, weighted by their groups; None without a forecast."""
    if not _count(found):
        return None
    tenths: dict[int, list[Bin]] = {}
    for part in (part for one in found for part in one.reliability):
        tenths.setdefault(min(math.floor(part.predicted * BINS), BINS - 1), []).append(part)
    parts = [tenths[place] for place in sorted(tenths)]
    bins = [Bin(_average(mine, "predicted"), _average(mine, "observed"), _count(mine)) for mine in parts]
    return Calibration(_average(found, "brier"), _average(found, "baseline"), _count(found), bins)


def _average(parts: Sequence[Bin | Calibration], name: str) -> float:
    """The mean of a field, by the groups of the parts."""
    total: float = sum(getattr(part, name) * part.groups for part in parts)
    return total / _count(parts)


def _count(parts: Sequence[Bin | Calibration]) -> int:
    return sum(part.groups for part in parts)


class HeldOutCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cell, and its share of the held-out problems."""

    cell: Cell
    share: float


class CellForecast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """P(valid) of a cell with its standard deviation, the expected p (1 - p) of its problems; groups: seen so far.

    worth: the signal of a problem times the leverage of its stratum, if problems are held out and rates are known.
    """

    cell: Cell
    p: float
    deviation: float
    learnability: float
    groups: int
    worth: float | msgspec.UnsetType = msgspec.UNSET


class Forecast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """difficulty.json. grid: the cells of `DesignSpace.forecast_cells`, with the givens of the design.

    held_out: cells that the policy is judged on. certainty: 0 if the held-out cells are unknown, 1 if they are known.
    success: the mean of all groups. calibration: the previous forecast's calibration on the cells drawn since. tokens:
    the usual length of an answer by stratum, if lengths are known.
    doubts: strata whose graders may be broken.
    """

    model: DifficultyModel
    grid: list[CellForecast]
    held_out: list[HeldOutCell]
    certainty: float
    success: float
    calibration: Calibration | None = None
    tokens: dict[int | str, float] | msgspec.UnsetType = msgspec.UNSET
    doubts: list[Doubt] | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.tokens is not msgspec.UNSET:
            msgspec.structs.force_setattr(self, "tokens", by_stratum(self.tokens))


def find_costs(tokens: Mapping[Stratum, float], strata: Sequence[Stratum]) -> np.ndarray:
    """The cost of a problem of each stratum, float [N], by the lengths of answers; 1 if these are unknown.

    A stratum of unknown length is assumed to have the mean of the others.
    """
    usual = sum(tokens.values()) / len(tokens) if tokens else 1.0
    return np.array([tokens.get(stratum, usual) for stratum in strata])


def make_forecast(
    design: Design,
    observations: Sequence[Observation],
    held_out: Sequence[HeldOutCell],
    settings: DifficultySettings,
    space: DesignSpace,
    before: Forecast | None = None,
    tested: Sequence[Observation] = (),
    doubts: Sequence[Doubt] = (),
) -> Forecast:
    """The forecast from all groups so far, with age 0 for the new ones since `before`.

    Args:
        design: the source of the problems.
        observations: the groups.
        held_out: cells that the policy is judged on.
        settings: how the model is fitted.
        space: the design space.
        before: the forecast one stage earlier.
        tested: outcomes on held-out problems; the model is fitted to them, too, but all else is from the groups alone.
        doubts: strata whose outcomes say nothing of others.
    """
    model = _fit(observations, tested, settings, space, {doubt.stratum for doubt in doubts})
    held_out = _weigh_strata(held_out) if settings.weigh == "strata" else held_out
    tokens = _measure_tokens(observations)
    model = _add_leverage(model, held_out, design, space, tokens)
    weights = [(settings.decay**seen.age * seen.groups, seen.success / seen.groups) for seen in observations]
    total = sum(weight for weight, _ in weights)
    # Only this round's groups: the earlier forecast was fitted to all others, and would be judged on its own data.
    drawn = [seen for seen in observations if not seen.age]
    return Forecast(
        model=model,
        grid=predict_grid(design, model, space, observations),
        held_out=list(held_out),
        certainty=_estimate_certainty(design, model, held_out, space),
        success=sum(weight * share for weight, share in weights) / total if total else 0.5,
        calibration=measure_calibration(before.model, before.success, drawn, space) if before else None,
        tokens=tokens or msgspec.UNSET,
        doubts=list(doubts) or msgspec.UNSET,
    )


def _measure_tokens(observations: Sequence[Observation]) -> dict[int | str, float]:
    """The mean length of an answer by stratum, if it is known; a round counts half as much as the next."""
    sums: dict[int | str, list[float]] = {}
    for seen in observations:
        if seen.tokens and seen.answers:
            weight, found = FADING**seen.age, sums.setdefault(seen.cell.stratum, [0.0, 0.0])
            found[0] += weight * seen.tokens
            found[1] += weight * seen.answers
    return {stratum: tokens / answers for stratum, (tokens, answers) in sums.items()}


def _fit(
    observations: Sequence[Observation],
    tested: Sequence[Observation],
    settings: DifficultySettings,
    space: DesignSpace,
    doubted: Collection[Stratum],
) -> DifficultyModel:
    if settings.model == "regression":  # as version 0.2 did: held-out answers if asked, and before any group
        known = [*observations, *(tested if settings.held_out or not observations else ())]
        return fit_regression([one for one in known if one.cell.stratum not in doubted], settings, space)
    objective = settings.resolved_objective
    fitted = fit_abilities(observations, tested, space, objective, doubted)
    parts = {"objective": objective, "reach": settings.reach, "abilities": fitted.abilities}
    return DifficultyModel([], [], fitted.groups, fitted.evenness, **parts)  # type: ignore[arg-type]


def _add_leverage(
    model: DifficultyModel,
    held_out: Sequence[HeldOutCell],
    design: Design,
    space: DesignSpace,
    tokens: Mapping[Stratum, float],
) -> DifficultyModel:
    """The model with the leverage of strata, by the means of its posterior; unchanged if it has no abilities.

    It is per token if lengths of answers are known.
    """
    if not model.abilities or not held_out:
        return model
    cells = [space.complete_cell(part.cell, design) for part in held_out]
    weights = np.zeros((len(cells), len(space.strata)))
    weights[range(len(cells)), [space.ranks[cell.stratum] for cell in cells]] = [part.share for part in held_out]
    rates = np.array(model.abilities.mean)[:, count_effects(model.abilities, space) :]
    reach = measure_reach(model.predict(cells, space, sampled=False).mean, weights, rates, share_signals(space))
    # A rate is per problem and a budget is in tokens, so long answers must earn more to be worth the same.
    reach = reach / find_costs(tokens, space.strata)
    # 1 in the mean over strata that are held out, so that worth with and without leverage has one scale.
    leverage = reach / max(1e-12, reach[weights.any(axis=0)].mean())
    known = msgspec.structs.replace(model.abilities, leverage=leverage.tolist())
    return msgspec.structs.replace(model, abilities=known)


def _weigh_strata(held_out: Sequence[HeldOutCell]) -> list[HeldOutCell]:
    """The held-out cells, reweighted so that the shares of each stratum have the same sum."""
    totals: dict[Stratum, float] = {}
    for part in held_out:
        totals[part.cell.stratum] = totals.get(part.cell.stratum, 0.0) + part.share
    return [HeldOutCell(part.cell, part.share / totals[part.cell.stratum] / len(totals)) for part in held_out]


def predict_grid(
    design: Design, model: DifficultyModel, space: DesignSpace, observations: Sequence[Observation] = ()
) -> list[CellForecast]:
    """The model's predictions for the cells of `DesignSpace.forecast_cells`.

    Args:
        design: gives the strata and the givens.
        model: the model that predicts.
        space: the design space.
        observations: groups so far.
    """
    cells = space.forecast_cells(design)
    seen = dict.fromkeys(cells, 0)
    for observation in observations:
        if (cell := _find_nearest_cell(observation.cell, space)) in seen:
            seen[cell] += observation.groups
    predicted = model.predict([space.complete_cell(cell, design) for cell in cells], space)
    evenness = model.list_evenness(cells, space)
    learnability = model.learnability(predicted.mean, evenness)
    columns = (part.tolist() for part in (predicted.mean, predicted.deviation, learnability))
    rows = [CellForecast(*row) for row in zip(cells, *columns, seen.values(), strict=True)]
    if not model.abilities or not model.abilities.leverage:
        return rows
    leverage = np.array([model.find_leverage(cell.stratum, space) for cell in cells])
    worth = (model.expect_signal(predicted.mean, evenness, model.list_graded(cells, space)) * leverage).tolist()
    return [msgspec.structs.replace(row, worth=one) for row, one in zip(rows, worth, strict=True)]


def _find_nearest_cell(cell: Cell, space: DesignSpace) -> Cell:
    """The cell with each level at the nearest of its points, without givens."""
    values = []
    for knob, value in zip(space.knobs, cell.values, strict=True):
        points = [value] if knob.trait else knob.list_points(*space.limits(cell.stratum, knob))
        values.append(min(points, key=lambda point, value=value: abs(point - value)))  # type: ignore[misc]
    return Cell(cell.stratum, tuple(values))


def _estimate_certainty(
    design: Design, model: DifficultyModel, held_out: Sequence[HeldOutCell], space: DesignSpace
) -> float:
    if not held_out or not model.groups:
        return 0.0
    cells = [space.complete_cell(part.cell, design) for part in held_out]
    predicted = model.predict(cells, space, sampled=False)
    # Certain is who predicts held-out cells with less doubt than a uniform distribution has.
    spread = np.average(predicted.deviation, weights=[part.share for part in held_out])
    return float(max(0.0, 1 - spread / UNIFORM))
