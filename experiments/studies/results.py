"""The results of a study: each run, each arm against the baseline, and how well the trial predicted the gains."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from lakewright.engineer.problems import Problem
from lakewright.engineer.tally import Tally
from lakewright.engineer.words import Words
from lakewright.experiments.environments.lake import WAIT, lake_space
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_problems
from lakewright.experiments.loop.records.token_budget import Spent, explain_spent
from lakewright.experiments.studies.halving import Stopped, find_stopped
from lakewright.experiments.studies.inference import (
    MeanEstimate,
    PairedTest,
    TrialPrediction,
    interquartile_mean,
    prediction_of,
    run_paired_tests,
)
from lakewright.experiments.studies.learning_curves import (
    Curve,
    Reached,
    average_curve,
    find_equal_time,
    sum_up_reached,
    tokens_to_best,
    value_at_time,
)
from lakewright.experiments.studies.run_results import (
    RunResult,
    StratumRates,
    average_probability,
    is_finished,
    last_policy,
    name_strata,
    run_result,
    valid_by_stratum,
    valid_by_trait,
    valid_with_trait,
)
from lakewright.experiments.studies.study import Plan, Planned, StudyFolder, StudySpec, read_prediction

CONFIDENCE = 1.96  # standard errors to either side of a 95 % interval


class Difference(msgspec.Struct, frozen=True):
    """An arm against the baseline on equal seeds, in points: the mean, half its 95 % interval by boards, and losses.

    The interval is for the paired differences of boards; runs of one arm differ by more (compare the seeds).
    """

    points: float
    interval: float
    losses: int
    seeds: int


class ArmResult(msgspec.Struct, frozen=True):
    """Means over the seeds of an arm; deviation: between its seeds, of `valid`; middle: its interquartile mean.

    forced, optimal, rates: as of a run. along: the mean valid % on the held-out set over the tokens of a run; to_best:
    how soon it reaches the baseline's best; None in results of earlier versions. probability, at_equal_time: as of a
    run.
    """

    arm: str
    seeds: int
    valid: float
    deviation: float
    gain: float
    forced: float | None
    optimal: float | None
    tokens: float
    spent: Spent
    stages: float
    seconds: float
    rolled_back: int = msgspec.field(name="taken_back")
    unchanged: int = msgspec.field(name="kept")
    tried: int
    refused: int
    against: Difference | None
    middle: MeanEstimate | None = None
    along: float | None = None
    rates: dict[str, float] = {}
    to_best: Reached | None = None
    probability: float | None = None
    at_equal_time: float | None = None


class Results(msgspec.Struct, frozen=True):
    """results.json; valid: the warm-up's, in percent. held_out: the problems of the final test or held-out set.

    missing: unfinished runs, except runs that were stopped early, which are in `stopped`. unable: the reasons of those
    that can never finish, by name. tests: the family's, in valid %; along: the same tests, in the measures that
    arms have `along`; likely: in the probability of the reference answer, if it is known. sizes, forced_sizes, traits:
    the warm-up's, as in `RunResult`. environment: the runs' environment. probability: P(reference answer) under the
    warm-up's policy, in percent. constant: the valid % on each stratum of its most frequent right answer, for problems
    in text. equal_time: the processor seconds of the shortest run, at which `at_equal_time` is read.
    """

    budget: int
    baseline: str
    valid: float
    held_out: int
    arms: list[ArmResult]
    runs: list[RunResult]
    missing: list[str]
    prediction: TrialPrediction | None
    tests: list[PairedTest] = []
    along: list[PairedTest] = []
    likely: list[PairedTest] = []
    sizes: StratumRates = {}
    forced_sizes: StratumRates = {}
    traits: dict[str, StratumRates] = {}
    environment: str = "lake"
    stopped: Stopped | None = None
    probability: float | None = None
    constant: StratumRates = {}
    equal_time: float | None = None
    unable: dict[str, str] = {}

    def __post_init__(self) -> None:
        name_strata(self, "sizes", "forced_sizes", "constant")

    @property
    def words(self) -> Words:
        """The lake's words, or the usual ones: another environment may not be there any more."""
        return lake_space().words if self.lake else Words()

    @property
    def lake(self) -> bool:
        """Whether the study is of the lake."""
        return self.environment == "lake"


def results_of(plan: Plan, folder: StudyFolder) -> Results:
    """The results of the runs that are finished."""
    after_warmup = _judge_policy(plan, folder, folder.start, folder.start.warmup)
    begun, before, lake = after_warmup.outcomes, after_warmup.pooled, plan.start.lake
    done = [planned for planned in plan.runs if _is_finished(plan, folder, planned)]
    judged = {planned.name: _judge_policy(plan, folder, folder.run(planned)) for planned in done}
    runs = _list_runs(plan, folder, judged, before)
    baselines = _map_curves(runs, plan.spec.baseline)
    stopped = find_stopped(plan, folder, runs)
    early = stopped.stages if stopped else {}
    missing = [planned for planned in plan.runs if planned not in done and planned.name not in early]
    names = list(dict.fromkeys(planned.arm for planned in done))
    solved = {name: np.array([int(digit) for digit in validation.valid]) for name, validation in judged.items()}
    return Results(
        budget=plan.spec.budget,
        baseline=plan.spec.baseline,
        valid=100 * before.valid_rate,
        held_out=before.problems,
        arms=[
            sum_up_arm(
                [run for run in runs if run.arm == name], plan.spec.baseline, plan.spec.budget, solved, baselines
            )
            for name in names
        ],
        runs=runs,
        missing=[planned.name for planned in missing],
        unable={planned.name: reason for planned in missing if (reason := _explain_unable(folder, planned))},
        prediction=prediction_of(read_prediction(folder), plan, {run.arm: run.gain for run in runs})
        if plan.spec.configs and not stopped
        else None,
        tests=run_paired_tests(_by_seed(runs, lambda run: run.valid), plan.spec.family),
        along=run_paired_tests(
            _by_seed(runs, lambda run: average_curve(run.curve, plan.spec.budget)), plan.spec.family
        ),
        likely=_compare_probabilities(runs, plan.spec),
        sizes=valid_by_stratum(begun),
        forced_sizes=valid_with_trait(begun, WAIT) if lake else {},
        traits={} if lake else valid_by_trait(begun),
        environment=plan.start.environment,
        stopped=stopped,
        probability=average_probability(after_warmup),
        constant=_judge_constant_answers(plan, folder),
        equal_time=find_equal_time(run.curve for run in runs),
    )


def _compare_probabilities(runs: Sequence[RunResult], spec: StudySpec) -> list[PairedTest]:
    """The pairs of the family by the probability of the reference answer; empty if it isn't known of every run."""
    known = {(run.arm, run.seed): run.probability for run in runs if run.probability is not None}
    if len(known) < len(runs) or not known:
        return []
    return run_paired_tests(_by_seed(runs, lambda run: known[run.arm, run.seed]), spec.family)


def _judge_constant_answers(plan: Plan, folder: StudyFolder) -> StratumRates:
    """The valid % on each stratum of the reference answer that is most frequent there, to know what guessing earns."""
    from lakewright.experiments.loop.training.trainee import make_trainee

    problems = read_problems(folder.test_file(plan.start)) if plan.spec.test else read_held_out(folder.start)
    by_stratum: dict[int | str, list[Problem]] = {}
    for problem in problems:
        if problem.answer:
            by_stratum.setdefault(problem.cell.stratum, []).append(problem)
    environment, found = make_trainee(plan.start).environment, {}
    for stratum, some in by_stratum.items():
        answer, _ = Counter(problem.answer for problem in some).most_common(1)[0]
        verdicts = environment.verdicts(some, [answer] * len(some))
        found[stratum] = 100 * sum(verdict.valid for verdict in verdicts) / len(some)
    return found


def _list_runs(plan: Plan, folder: StudyFolder, judged: Mapping[str, Validation], before: Tally) -> list[RunResult]:
    """The results of finished runs, beside the baseline of their seeds.

    plan, folder: the study. judged: how the last policies did, by the names of their runs. before: how the warm-up did.
    """
    from lakewright.experiments.loop.training.trainee import make_trainee

    space, budget = make_trainee(plan.start).environment.space, plan.spec.budget
    done = [planned for planned in plan.runs if planned.name in judged]
    runs = [run_result(planned, folder.run(planned), judged[planned.name], before, space) for planned in done]
    baselines, shortest = _map_curves(runs, plan.spec.baseline), find_equal_time(run.curve for run in runs)
    return [
        msgspec.structs.replace(
            run,
            along=average_curve(run.curve, budget),
            to_best=tokens_to_best(run.curve, baselines.get(run.seed, [])),
            at_equal_time=None if shortest is None else value_at_time(run.curve, shortest),
        )
        for run in runs
    ]


def _map_curves(runs: Sequence[RunResult], arm: str) -> dict[int, Curve]:
    """The curves of an arm by seed."""
    return {run.seed: run.curve for run in runs if run.arm == arm}


def _explain_unable(folder: StudyFolder, planned: Planned) -> str:
    return explain_spent(planned.settings.budget, folder.run(planned))


def _is_finished(plan: Plan, folder: StudyFolder, planned: Planned) -> bool:
    run = folder.run(planned)
    return is_finished(run, planned) and (not plan.spec.test or folder.test_of(run).exists())


def _judge_policy(plan: Plan, folder: StudyFolder, run: RunFolder, policy: Stage | None = None) -> Validation:
    """The outcomes of a policy, by default a run's last, on the final test, or without one on the held-out set."""
    if plan.spec.test:
        return read_record(folder.test_of(run), Validation)
    return read_record((policy or last_policy(run)).validation, Validation)


def _by_seed(runs: Sequence[RunResult], outcome: Callable[[RunResult], float]) -> dict[str, dict[int, float]]:
    """An outcome of each arm by seed."""
    arms: dict[str, dict[int, float]] = {}
    for run in runs:
        arms.setdefault(run.arm, {})[run.seed] = outcome(run)
    return arms


def sum_up_arm(
    runs: Sequence[RunResult],
    baseline: str,
    budget: int,
    solved: Mapping[str, np.ndarray],
    baselines: Mapping[int, Curve],
) -> ArmResult:
    """An arm from its runs.

    Args:
        runs: the arm's runs.
        baseline: the arm that it is compared with.
        budget: the tokens of a run.
        solved: which test problems each run solved, int [P], by the run's name, such as fixed-s0.
        baselines: the curves of the baseline by seed.
    """

    def mean(value: Callable[[RunResult], float]) -> float:
        return float(np.mean([value(run) for run in runs]))

    def mean_if_known(value: Callable[[RunResult], float | None]) -> float | None:
        known = [number for run in runs if (number := value(run)) is not None]
        return float(np.mean(known)) if known else None

    return ArmResult(
        arm=runs[0].arm,
        seeds=len(runs),
        valid=mean(lambda run: run.valid),
        deviation=float(np.std([run.valid for run in runs], ddof=1)) if len(runs) > 1 else 0.0,
        gain=mean(lambda run: run.gain),
        forced=mean_if_known(lambda run: run.forced),
        optimal=mean_if_known(lambda run: run.optimal),
        tokens=mean(lambda run: run.tokens.total),
        spent=sum((run.tokens for run in runs), Spent()),
        stages=mean(lambda run: run.stages),
        seconds=mean(lambda run: run.seconds),
        rolled_back=sum(run.rolled_back for run in runs),
        unchanged=sum(run.unchanged for run in runs),
        tried=sum(run.tried for run in runs),
        refused=sum(run.refused for run in runs),
        against=_compare_with_baseline(runs, baseline, solved),
        middle=interquartile_mean([run.valid for run in runs]),
        along=mean(lambda run: average_curve(run.curve, budget)),
        rates={name: float(np.mean([run.rates[name] for run in runs])) for name in runs[0].rates},
        to_best=sum_up_reached({run.seed: run.curve for run in runs}, baselines),
        probability=mean_if_known(lambda run: run.probability),
        at_equal_time=mean_if_known(lambda run: run.at_equal_time),
    )


def _compare_with_baseline(
    runs: Sequence[RunResult], baseline: str, solved: Mapping[str, np.ndarray]
) -> Difference | None:
    pairs = [(f"{run.arm}-s{run.seed}", f"{baseline}-s{run.seed}") for run in runs]
    changes = [solved[name] - solved[other] for name, other in pairs if other in solved and other != name]
    if not changes:
        return None
    boards = 100 * np.mean(changes, axis=0)
    interval = CONFIDENCE * float(boards.std(ddof=1)) / len(boards) ** 0.5 if len(boards) > 1 else 0.0
    return Difference(float(boards.mean()), interval, sum(bool(change.mean() < 0) for change in changes), len(changes))
