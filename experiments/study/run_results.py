"""The result of one run of a study: where it ended, how it came there, and what its engineer was worth."""

import math
from collections.abc import Mapping, Sequence

import jax
import msgspec
import numpy as np

from lakewright.core_jax.config import SizeConfig
from lakewright.core_jax.results import Outcomes, pool
from lakewright.engineer.difficulty import Calibration
from lakewright.engineer.evidence import shown
from lakewright.engineer.lessons import agreement
from lakewright.engineer.trial import Lead
from lakewright.experiments.loop.records import (
    Decision,
    Done,
    RunFolder,
    Spent,
    Stage,
    Trial,
    Validation,
    forced_rate,
    read,
    spent,
    spent_on,
)
from lakewright.experiments.loop.settings import RunSettings
from lakewright.experiments.study.study import Planned


class CurvePoint(msgspec.Struct, frozen=True):
    """The tokens generated before a validation, and the valid % of the policy that the run then has."""

    tokens: int
    valid: float


class RunResult(msgspec.Struct, frozen=True):
    """A finished run: shares of valid plans in percent, of its last policy.

    gain: over the warm-up. forced: on boards that force a wait. optimal: by sum of costs. tried: trials. kept: those of
    them that kept the current config. taken_back: stages. refused: answers that the guard refused. curve: of the
    warm-up and each stage. leads: of the best rival of each trial over the current config. calibrations: of the
    difficulty model, each forecast against the stage after it. engineer: of each stage, the figures of the groups of
    `self_trained`, the last after its training. forced_sizes: as `sizes`, on boards that force a wait; no size without
    such boards. drawn: what the boards of each stage were drawn from. as_taught: after each stage, the share of the
    changes of a checkpoint's delta that are those of the rule that it was taught. Earlier versions have none of these.
    """

    arm: str
    seed: int
    valid: float
    gain: float
    forced: float
    optimal: float
    sizes: dict[int, float]
    tokens: Spent
    stages: int
    seconds: float
    tried: int
    kept: int
    taken_back: int
    refused: int
    curve: list[CurvePoint] = []
    leads: list[Lead] = []
    calibrations: list[Calibration] = []
    engineer: list[list[dict[str, float]]] = []
    forced_sizes: dict[int, float] = {}
    drawn: list[dict[int, SizeConfig]] = []
    as_taught: list[float] = []


def run_result(planned: Planned, run: RunFolder, judged: Validation, before: Outcomes) -> RunResult:
    """The result of a finished run.

    Args:
        planned: The run as it was planned.
        run: Its folder.
        judged: How its last policy did on the test.
        before: How the warm-up's policy did.
    """
    stages = _list_stages(run, planned)
    sizes = judged.sizes
    found = pool(sizes.values())
    trials = [read(stage.trial, Trial) for stage in stages if stage.trial.exists()]
    return RunResult(
        arm=planned.arm,
        seed=planned.seed,
        valid=to_percent(found, found.valid),
        gain=to_percent(found, found.valid) - to_percent(before, before.valid),
        forced=100 * forced_rate(found),
        optimal=to_percent(found, found.optimal_sum_of_costs),
        sizes=valid_by_size(sizes),
        tokens=spent(run, len(stages)),
        stages=len(stages),
        seconds=sum(read(stage.done, Done).seconds for stage in stages),
        tried=len(trials),
        kept=sum(trial.chosen == 0 for trial in trials),
        taken_back=sum(stage.taken_back() is not None for stage in stages),
        refused=sum(_count_refused(read(stage.proposal, Decision)) for stage in stages if stage.proposal.exists()),
        curve=_read_curve(run, len(stages)),
        leads=[max(trial.leads[1:], key=lambda lead: lead.mean) for trial in trials if trial.leads],
        calibrations=[known for stage in stages if (known := stage.calibration())],
        engineer=[figures for stage in stages if (figures := stage.engineer_figures())],
        forced_sizes=forced_by_size(sizes),
        drawn=[stage.config().sizes for stage in stages],
        as_taught=[share for stage in stages if (share := _as_taught(planned.settings, stage)) is not None],
    )


def is_finished(run: RunFolder, planned: Planned) -> bool:
    """Whether a run has done all its stages or spent its budget."""
    stages = _list_stages(run, planned)
    if len(stages) == planned.settings.stages:
        return True
    return bool(stages) and spent(run, len(stages)).total >= (planned.settings.budget or math.inf)


def last_policy(run: RunFolder) -> Stage:
    """The stage, or the warm-up, of a run's last policy."""
    return run.standing(len(run.finished_stages()) - 1)


def to_percent(outcomes: Outcomes, count: int) -> float:
    """A count of outcomes as a share of the boards, in percent."""
    return 100 * outcomes.rate(count)


def valid_by_size(sizes: Mapping[int, Outcomes]) -> dict[int, float]:
    """Valid % on each map size."""
    return {size: to_percent(part, part.valid) for size, part in sizes.items()}


def forced_by_size(sizes: Mapping[int, Outcomes]) -> dict[int, float]:
    """Valid % of the boards that force a wait, on each map size that has some."""
    return {size: 100 * forced_rate(part) for size, part in sizes.items() if part.wait_boards}


def _read_curve(run: RunFolder, stages: int) -> list[CurvePoint]:
    """The warm-up and each stage on the run's held-out set, which is not that of a study's final test."""
    points = [CurvePoint(0, _held_out_valid(run.warmup))]
    for number in range(stages):
        mine = spent_on(run.stage(number))
        tokens = spent(run, number).total + mine.training + mine.sampling
        points.append(CurvePoint(tokens, _held_out_valid(run.standing(number))))
    return points


def average_curve(curve: Sequence[CurvePoint], budget: int) -> float:
    """The mean valid % over the tokens of a run: the area under its curve, lines between its points, by the budget."""
    tokens, valid = zip(*((point.tokens, point.valid) for point in curve), strict=True)
    places = np.unique(np.clip([0, *tokens, budget], 0, budget))
    return float(np.trapezoid(np.interp(places, tokens, valid), places)) / budget


def _held_out_valid(stage: Stage) -> float:
    found = pool(read(stage.validation, Validation).sizes.values())
    return to_percent(found, found.valid)


def _as_taught(settings: RunSettings, stage: Stage) -> float | None:
    """None where no checkpoint was asked, or its answer cannot be read; shuffled evidence is not what the rule sees."""
    if settings.teacher not in ("self", "base") or settings.codec != "tokens" or not stage.proposal.exists():
        return None
    if (delta := read(stage.proposal, Decision).proposal.delta) is None:
        return None
    config, modules = stage.config(), msgspec.structs.replace(settings.evidence.chosen(), shuffled=False)
    view = shown(stage.read_evidence(), modules, jax.random.key(0))
    return agreement(delta, settings.taught.rule.delta(view, config), config)


def _list_stages(run: RunFolder, planned: Planned) -> list[Stage]:
    stages = (run.stage(number) for number in range(planned.settings.stages))
    return [stage for stage in stages if stage.done.exists()]


def _count_refused(decision: Decision) -> int:
    return (decision.verdict.status == "refused") + len(decision.refused)
