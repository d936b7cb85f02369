"""The results of a study: each run, each arm against the baseline, and how well the trial predicted the gains."""

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from tabulate import tabulate

from core_jax.results import Outcomes, pool
from experiments.loop.records import (
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
)
from experiments.loop.redesign import taken_back
from experiments.study.inference import Estimate, PairedTest, interquartile_mean, paired_tests
from experiments.study.prediction import Prediction, Rank, prediction_of
from experiments.study.study import Plan, Planned, StudyFolder, predicted

HEADER = (
    *("arm", "seeds", "valid %", "s.d.", "forced %", "optimal %", "losses", "k tokens", "k trials", "k engineer"),
    *("stages", "kept", "back", "refused", "minutes"),
)
CONFIDENCE = 1.96  # standard errors to either side of a 95 % interval


class RunResult(msgspec.Struct, frozen=True):
    """A finished run: shares of valid plans in percent, of its last policy.

    gain: over the warm-up. forced: on boards that force a wait. optimal: by sum of costs. tried: trials. kept: those of
    them that kept the current config. taken_back: stages. refused: answers that the guard refused.
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


class Difference(msgspec.Struct, frozen=True):
    """An arm against the baseline on equal seeds, in points: the mean, half its 95 % interval by boards, and losses.

    The interval is that of the paired differences of boards; runs of one arm differ by more (compare the seeds).
    """

    points: float
    interval: float
    losses: int
    seeds: int


class ArmResult(msgspec.Struct, frozen=True):
    """Means over the seeds of an arm; deviation: between its seeds, of `valid`; middle: its interquartile mean."""

    arm: str
    seeds: int
    valid: float
    deviation: float
    gain: float
    forced: float
    optimal: float
    tokens: float
    spent: Spent
    stages: float
    seconds: float
    taken_back: int
    kept: int
    tried: int
    refused: int
    against: Difference | None
    middle: Estimate | None = None


class Results(msgspec.Struct, frozen=True):
    """results.json; valid: of the warm-up, in percent. missing: unfinished runs."""

    budget: int
    baseline: str
    valid: float
    held_out: int
    arms: list[ArmResult]
    runs: list[RunResult]
    missing: list[str]
    prediction: Prediction | None
    tests: list[PairedTest] = []


def results_of(plan: Plan, folder: StudyFolder) -> Results:
    """The results of the runs that are finished."""
    before = pool(read(folder.start.warmup.validation, Validation).sizes.values())
    done = [planned for planned in plan.runs if finished(folder.run(planned), planned)]
    runs = [_run_result(planned, folder.run(planned), before) for planned in done]
    names = list(dict.fromkeys(planned.arm for planned in done))
    digits = {planned.name: _digits(_end(folder.run(planned))) for planned in done}
    return Results(
        budget=plan.spec.budget,
        baseline=plan.spec.baseline,
        valid=_percent(before, before.valid),
        held_out=before.boards,
        arms=[_arm_result([run for run in runs if run.arm == name], plan.spec.baseline, digits) for name in names],
        runs=runs,
        missing=[planned.name for planned in plan.runs if planned not in done],
        prediction=prediction_of(predicted(folder), plan, {run.arm: run.gain for run in runs})
        if plan.spec.configs
        else None,
        tests=paired_tests(_by_seed(runs), plan.spec.family),
    )


def _by_seed(runs: Sequence[RunResult]) -> dict[str, dict[int, float]]:
    """The valid % of each arm by seed."""
    arms: dict[str, dict[int, float]] = {}
    for run in runs:
        arms.setdefault(run.arm, {})[run.seed] = run.valid
    return arms


def finished(run: RunFolder, planned: Planned) -> bool:
    """Whether a run has done all its stages or spent its budget."""
    stages = _stages(run, planned)
    if len(stages) == planned.settings.stages:
        return True
    return bool(stages) and spent(run, len(stages)).total >= (planned.settings.budget or math.inf)


def table(results: Results) -> str:
    """One line for each arm, the best first, or how well the trial predicted.

    k trials: thousand tokens of trials and of samplers that score boards, per run. kept: trials that kept the current
    config. back: stages taken back.
    """
    if results.prediction:
        return "\n".join(_prediction_lines(results.prediction, len(results.runs)))
    header = (*HEADER[:6], f"vs {results.baseline or '-'}", *HEADER[6:])
    ordered = sorted(results.arms, key=lambda arm: -arm.valid)
    alignment = ("left", *["right"] * (len(header) - 1))
    arms = tabulate(map(_line, ordered), header, tablefmt="plain", colalign=alignment, disable_numparse=True)
    setting = (
        f"warm-up {results.valid:.1f} % valid of {results.held_out} boards; budget {results.budget} tokens per run"
    )
    missing = [f"not finished: {', '.join(results.missing)}"] * bool(results.missing)
    return "\n".join([arms, setting, *map(_test_line, results.tests), *missing])


def _test_line(found: PairedTest) -> str:
    gain = found.difference
    interval = f"{gain.mean:+.1f} (95 % {gain.low:+.1f} to {gain.high:+.1f})"
    return f"{found.arm} - {found.other}: {interval}, p {found.corrected:.2g} by Holm, {found.seeds} seeds"


def _line(arm: ArmResult) -> tuple[str, ...]:
    against = arm.against
    return (
        arm.arm,
        str(arm.seeds),
        f"{arm.valid:.1f}",
        f"{arm.deviation:.1f}" if arm.seeds > 1 else "",
        f"{arm.forced:.1f}",
        f"{arm.optimal:.1f}",
        f"{against.points:+.1f} ± {against.interval:.1f}" if against else "",
        f"{against.losses} of {against.seeds}" if against else "",
        f"{arm.tokens / 1000:.1f}",
        f"{(arm.spent.trials + arm.spent.sampling) / arm.seeds / 1000:.1f}",
        f"{arm.spent.engineer / arm.seeds / 1000:.1f}",
        f"{arm.stages:.1f}",
        f"{arm.kept}/{arm.tried}",
        str(arm.taken_back),
        str(arm.refused),
        f"{arm.seconds / 60:.1f}",
    )


def _prediction_lines(found: Prediction, configs: int) -> Iterator[str]:
    yield f"The trial before, and the gain in valid plans after training, over {configs} configs (Spearman's rho):"
    ranks = (("mean p(1-p)", found.by_score), ("share of informative groups", found.by_informative))
    yield tabulate([(name, *_rank_cells(rank)) for name, rank in ranks], tablefmt="plain", disable_numparse=True)
    yield f"gains {min(found.gains):+.1f} to {max(found.gains):+.1f} points"


def _rank_cells(rank: Rank | None) -> tuple[str, ...]:
    if not rank:
        return "all alike", "", ""
    return f"{rank.rho:+.2f}", f"95 % {rank.low:+.2f} to {rank.high:+.2f}", f"p {rank.p_value:.2g}"


def _run_result(planned: Planned, run: RunFolder, before: Outcomes) -> RunResult:
    stages = _stages(run, planned)
    sizes = read(_end(run).validation, Validation).sizes
    found = pool(sizes.values())
    trials = [read(stage.trial, Trial) for stage in stages if stage.trial.exists()]
    return RunResult(
        arm=planned.arm,
        seed=planned.seed,
        valid=_percent(found, found.valid),
        gain=_percent(found, found.valid) - _percent(before, before.valid),
        forced=100 * forced_rate(found),
        optimal=_percent(found, found.optimal_sum_of_costs),
        sizes={size: _percent(part, part.valid) for size, part in sizes.items()},
        tokens=spent(run, len(stages)),
        stages=len(stages),
        seconds=sum(read(stage.done, Done).seconds for stage in stages),
        tried=len(trials),
        kept=sum(trial.chosen == 0 for trial in trials),
        taken_back=sum(taken_back(stage) is not None for stage in stages),
        refused=sum(_refused(read(stage.proposal, Decision)) for stage in stages if stage.proposal.exists()),
    )


def _arm_result(runs: Sequence[RunResult], baseline: str, digits: dict[str, np.ndarray]) -> ArmResult:
    def mean(value: Callable[[RunResult], float]) -> float:
        return float(np.mean([value(run) for run in runs]))

    return ArmResult(
        arm=runs[0].arm,
        seeds=len(runs),
        valid=mean(lambda run: run.valid),
        deviation=float(np.std([run.valid for run in runs], ddof=1)) if len(runs) > 1 else 0.0,
        gain=mean(lambda run: run.gain),
        forced=mean(lambda run: run.forced),
        optimal=mean(lambda run: run.optimal),
        tokens=mean(lambda run: run.tokens.total),
        spent=sum((run.tokens for run in runs), Spent()),
        stages=mean(lambda run: run.stages),
        seconds=mean(lambda run: run.seconds),
        taken_back=sum(run.taken_back for run in runs),
        kept=sum(run.kept for run in runs),
        tried=sum(run.tried for run in runs),
        refused=sum(run.refused for run in runs),
        against=_against(runs, baseline, digits),
        middle=interquartile_mean([run.valid for run in runs]),
    )


def _against(runs: Sequence[RunResult], baseline: str, digits: dict[str, np.ndarray]) -> Difference | None:
    pairs = [(f"{run.arm}-s{run.seed}", f"{baseline}-s{run.seed}") for run in runs]
    changes = [digits[name] - digits[other] for name, other in pairs if other in digits and other != name]
    if not changes:
        return None
    boards = 100 * np.mean(changes, axis=0)
    interval = CONFIDENCE * float(boards.std(ddof=1)) / len(boards) ** 0.5 if len(boards) > 1 else 0.0
    return Difference(float(boards.mean()), interval, sum(bool(change.mean() < 0) for change in changes), len(changes))


def _stages(run: RunFolder, planned: Planned) -> list[Stage]:
    stages = (run.stage(number) for number in range(planned.settings.stages))
    return [stage for stage in stages if stage.done.exists()]


def _end(run: RunFolder) -> Stage:
    """The stage, or the warm-up, of a run's last policy."""
    return run.standing(len(run.finished_stages()) - 1)


def _digits(stage: Stage) -> np.ndarray:
    return np.array([int(digit) for digit in read(stage.validation, Validation).valid])


def _refused(decision: Decision) -> int:
    return (decision.verdict.status == "refused") + len(decision.refused)


def _percent(outcomes: Outcomes, count: int) -> float:
    return 100 * outcomes.rate(count)
