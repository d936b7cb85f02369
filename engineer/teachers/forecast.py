"""The rule that follows the forecast in steps: what a model of tokens can be taught to do with it."""

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.curriculum_cells import Cell, config_of
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.difficulty import Forecast, value_of
from lakewright.engineer.evidence import FORECAST_HOLES, FRONTIER, REASONS, TOO_EASY, TOO_HARD, Evidence
from lakewright.engineer.options import Power
from lakewright.engineer.proposal import Proposal, Stateless, decided
from lakewright.engineer.random_generators import Key
from lakewright.engineer.teachers.step_edits import step_edit, stride_toward


class ForecastTeacher(Stateless):
    """q_c ~ v_c^power r_c over cells c: each size at FORECAST_HOLES, with a forced wait and without.

    v_c is p (1 - p), or 1 - p where the model's objective is the regret, p being the forecast's P(valid); r_c is the
    larger p of the boards with and without a forced wait of c's size and hole ratio, to the power of the model's reach.
    So it is the teacher `difficulty` without chance and mix, as if just the cells were held out that evidence in tokens
    tells of. Data, hole and wait ratio of a size go toward those of q, by two steps at most.
    """

    def __init__(self, power: Power = 1.0) -> None:
        self.power = power

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The delta of the rule; no chance in it."""
        return decided(self.delta(evidence, config))

    def delta(self, evidence: Evidence, config: EnvConfig) -> ConfigDelta:
        """An edit for each size that is to change.

        None where the forecast lacks a size or rests on nothing, or where no board is worth anything.
        """
        known = evidence.forecast
        success = _shown(known, config) if known else {}
        if known is None or not known.model.groups or {cell.size for cell in success} != config.sizes.keys():
            return ConfigDelta({})
        best = {cell: max(p, success.get(cell._replace(forced=not cell.forced), 0.0)) for cell, p in success.items()}
        weights = {cell: self._value(known, p) * best[cell] ** known.model.reach for cell, p in success.items()}
        if not any(weights.values()):
            return ConfigDelta({})
        edits = {}
        for size, goal in config_of(config, weights).items():
            cell = config.sizes[size]
            reason = _reason(cell, goal, max(p for at, p in best.items() if at.size == size))
            edits[size] = step_edit(cell, stride_toward(cell, goal), REASONS[reason])
        return ConfigDelta({size: edit for size, edit in edits.items() if edit})

    def _value(self, known: Forecast, success: float) -> float:
        return value_of(success, known.model.objective) ** self.power


def _shown(known: Forecast, config: EnvConfig) -> dict[Cell, float]:
    """P(valid) of the cells that the tokens of the evidence tell."""
    return {
        found.cell: found.p
        for found in known.grid
        if found.cell.size in config.sizes and found.cell.hole_ratio in FORECAST_HOLES
    }


def _reason(cell: SizeConfig, goal: SizeConfig, best: float) -> str:
    """A size that loses data is too hard where even its easier boards mostly fail, and else too easy."""
    if goal.data_ratio >= cell.data_ratio:
        return FRONTIER
    return TOO_HARD if best < 0.5 else TOO_EASY
