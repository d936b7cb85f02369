"""The result of one run of a study: how it ended, its way there, and the worth of its engineer."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from lakewright.engineer.design import DesignRow, by_stratum
from lakewright.engineer.difficulty import Calibration
from lakewright.engineer.evidence import show_evidence
from lakewright.engineer.lessons import measure_agreement
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally
from lakewright.engineer.trial import Lead, Trial
from lakewright.experiments.environments.lake import WAIT
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import DecisionRecord, Done, Validation, find_record, read_record
from lakewright.experiments.loop.records.token_budget import Spent, count_run_tokens, count_stage_tokens
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.studies.learning_curves import CurvePoint
from lakewright.experiments.studies.study import Planned

OPTIMAL = "optimal_sum_of_costs"
StratumRates = dict[int | str, float]
"""A rate in percent on each stratum."""


class RunResult(msgspec.Struct, frozen=True):
    """A finished run: shares of valid answers in percent, of its last policy.

    gain: over the warm-up. sizes: by stratum. tried: trials. unchanged: the trials after which the design stayed.
    rolled_back: stages that were rolled back. refused: answers that the guard refused. Of the lake alone, forced: on
    boards that force a wait; optimal: by sum of costs; forced_sizes: as `sizes`, on boards that force a wait. Of other
    environments, rates: by name, on problems that have a trait, and of answers that have a grade; traits: by trait and
    stratum. No stratum is in a table that has no such problems.

    curve: points of the warm-up and each stage. leads: the lead of each trial's best rival over the current design.
    calibrations: the difficulty model, each forecast against the stage after it. engineer: by stage, the figures of
    the groups of `self_trained`, the last after its training. drawn: the rows of the design of each stage. as_taught:
    after each stage, the share of the changes in a checkpoint's delta that follow the rule that it was taught. along:
    the mean of the curve over the tokens of the run. to_best: the tokens until it is first as good as the baseline of
    its seed at its best; None if it never is. probability: P(reference answer), in percent, for problems in text.
    at_equal_time: the valid % on the held-out set after the processor time of the study's shortest run; missing in
    results of earlier versions.
    """

    arm: str
    seed: int
    valid: float
    gain: float
    forced: float | None
    optimal: float | None
    sizes: StratumRates
    tokens: Spent
    stages: int
    seconds: float
    tried: int
    unchanged: int = msgspec.field(name="kept")
    rolled_back: int = msgspec.field(name="taken_back")
    refused: int
    curve: list[CurvePoint] = []
    leads: list[Lead] = []
    calibrations: list[Calibration] = []
    engineer: list[list[dict[str, float]]] = []
    forced_sizes: StratumRates = {}
    drawn: list[dict[int | str, DesignRow]] = []
    as_taught: list[float] = []
    rates: dict[str, float] = {}
    traits: dict[str, StratumRates] = {}
    along: float | None = None
    to_best: float | None = None
    probability: float | None = None
    at_equal_time: float | None = None

    def __post_init__(self) -> None:
        name_strata(self, "sizes", "forced_sizes")
        msgspec.structs.force_setattr(self, "drawn", list(map(by_stratum, self.drawn)))


def name_strata(record: Any, *tables: str) -> None:
    """Turns the keys of some tables of a record, and of its `traits`, into strata, as reading from a file does."""
    for name in tables:
        msgspec.structs.force_setattr(record, name, by_stratum(getattr(record, name)))
    traits = {name: by_stratum(table) for name, table in record.traits.items()}
    msgspec.structs.force_setattr(record, "traits", traits)


def run_result(planned: Planned, run: RunFolder, judged: Validation, before: Tally, space: DesignSpace) -> RunResult:
    """The result of a finished run, without the figures that depend on other runs.

    Args:
        planned: The plan of the run.
        run: The run's folder.
        judged: The last policy's verdicts on the test.
        before: The warm-up policy's verdicts on the test.
        space: The run's design space.
    """
    stages, lake = _list_stages(run, planned), planned.settings.lake
    strata, pooled = judged.outcomes, judged.pooled
    decisions = [decision for stage in stages if (decision := find_record(stage.proposal, DecisionRecord))]
    trials = [trial for stage in stages if (trial := find_record(stage.trial, Trial))]
    return RunResult(
        arm=planned.arm,
        seed=planned.seed,
        valid=100 * pooled.valid_rate,
        gain=100 * pooled.valid_rate - 100 * before.valid_rate,
        forced=100 * pooled.traits[WAIT].valid_rate if lake else None,
        optimal=100 * pooled.rate(pooled.grades[OPTIMAL]) if lake else None,
        sizes=valid_by_stratum(strata),
        tokens=count_run_tokens(run, len(stages)),
        stages=len(stages),
        seconds=sum(read_record(stage.done, Done).seconds for stage in stages),
        tried=len(trials),
        unchanged=sum(trial.chosen == 0 for trial in trials),
        rolled_back=sum(stage.rolled_back() is not None for stage in stages),
        refused=sum((one.verdict.status == "refused") + len(one.refused) for one in decisions),
        curve=_read_curve(run, len(stages)),
        leads=[max(trial.leads[1:], key=lambda lead: lead.mean) for trial in trials if trial.leads],
        calibrations=[known for stage in stages if (known := stage.read_calibration())],
        engineer=[figures for stage in stages if (figures := stage.engineer_figures())],
        forced_sizes=valid_with_trait(strata, WAIT) if lake else {},
        drawn=[stage.design().strata for stage in stages],
        as_taught=[share for stage in stages if (share := _as_taught(planned.settings, stage, space)) is not None],
        rates={} if lake else _map_rates(pooled),
        traits={} if lake else valid_by_trait(strata),
        probability=average_probability(judged),
    )


def is_finished(run: RunFolder, planned: Planned) -> bool:
    """Whether a run has done all its stages or spent its budget."""
    stages = _list_stages(run, planned)
    if len(stages) == planned.settings.stages:
        return True
    return bool(stages) and count_run_tokens(run, len(stages)).total >= (planned.settings.budget or math.inf)


def last_policy(run: RunFolder) -> Stage:
    """The stage, or the warm-up, of a run's last policy."""
    return run.find_standing(len(run.finished_stages()) - 1)


def average_probability(judged: Validation) -> float | None:
    """The mean probability of the reference answers in percent; None if they are not known."""
    known = judged.probability
    problems = [judged.outcomes[stratum].problems for stratum in known]
    return 100 * float(np.average(list(known.values()), weights=problems)) if known else None


def valid_by_stratum(strata: Mapping[int | str, Tally]) -> StratumRates:
    """Valid % on each stratum."""
    return {stratum: 100 * part.valid_rate for stratum, part in strata.items()}


def valid_with_trait(strata: Mapping[int | str, Tally], name: str) -> StratumRates:
    """Valid % of the problems that have a trait, on each stratum that has some."""
    having = {stratum: part.traits[name] for stratum, part in strata.items() if name in part.traits}
    return valid_by_stratum({stratum: part for stratum, part in having.items() if part.problems})


def valid_by_trait(strata: Mapping[int | str, Tally]) -> dict[str, StratumRates]:
    """Valid % of the problems that have a trait, by trait and stratum."""
    names = dict.fromkeys(name for part in strata.values() for name in part.traits)
    return {name: rates for name in names if (rates := valid_with_trait(strata, name))}


def _map_rates(found: Tally) -> dict[str, float]:
    """Valid % of the problems that have a trait, and the % of answers that have a grade, by name."""
    traits = {name: 100 * part.valid_rate for name, part in found.traits.items() if part.problems}
    return traits | {name: 100 * found.rate(count) for name, count in found.grades.items()}


def _read_curve(run: RunFolder, stages: int) -> list[CurvePoint]:
    """The warm-up and each stage on the run's held-out set, which is not a study's final test."""
    points, spent = [CurvePoint(0, held_out_valid(run.warmup), 0.0)], 0.0
    for number in range(stages):
        mine, done = count_stage_tokens(run.stage(number)), read_record(run.stage(number).done, Done)
        spent += math.nan if done.processor_seconds is None else done.processor_seconds
        tokens = count_run_tokens(run, number).total + mine.training + mine.sampling
        known = None if math.isnan(spent) else spent
        points.append(CurvePoint(tokens, held_out_valid(run.find_standing(number)), known))
    return points


def held_out_valid(stage: Stage) -> float:
    """Valid % of a stage's policy on the held-out set of its run."""
    return 100 * read_record(stage.validation, Validation).pooled.valid_rate


def _as_taught(settings: RunSettings, stage: Stage, space: DesignSpace) -> float | None:
    """None if no checkpoint was asked, or its answer cannot be read; shuffled evidence is not what the rule sees."""
    decision = find_record(stage.proposal, DecisionRecord)
    asked = settings.teacher in ("self", "base") and settings.codec != "text"
    if not asked or not decision or (delta := decision.proposal.delta) is None:
        return None
    design, modules = stage.design(), msgspec.structs.replace(settings.evidence.chosen(), shuffled=False)
    view = show_evidence(stage.read_evidence(), modules, make_key(0))
    return measure_agreement(delta, settings.taught.rule.make_delta(view, design, space), design, space)


def _list_stages(run: RunFolder, planned: Planned) -> list[Stage]:
    stages = (run.stage(number) for number in range(planned.settings.stages))
    return [stage for stage in stages if stage.done.exists()]
