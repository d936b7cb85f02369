"""The engineer of a run: its knowledge is in the records of the stages, and each stage notes its own decision.

engineer = RunEngineer(trainee, folder, held_out)
engineer.redesign(3)      # the design of stage 4; earlier rounds are recalled from their files
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.argument_checks import check_forecast
from lakewright.engineer.design import Delta
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.journal import Journal, Keys, Reconsidered, Step, TeacherAnswer
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.problems import Group, Problem
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.rollback import Comparison, has_fallen
from lakewright.engineer.steps import Attempt, Decision
from lakewright.engineer.trial import RollOut, Trial, TrialWork
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    EngineerTraining,
    Rollback,
    SampledRecord,
    Validation,
    find_record,
    read_record,
)
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts
from lakewright.experiments.loop.records.token_budget import has_next_stage
from lakewright.experiments.loop.redesign.engineer_training import TRAINED, train_engineer
from lakewright.experiments.loop.redesign.teacher_models import load_teacher, make_engineer
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.policy_models import free_memory
from lakewright.experiments.loop.training.trainee import Trainee

T = TypeVar("T")
FILES: dict[Step, str] = {"comparison": "rollback", "forecast": "difficulty"}  # of steps that are not named alike
LAST_STEPS = 8  # steps of the log whose means are the figures of a training
NO_EVIDENCE = ("step", "step_time")  # the line of the log, and the time, which differs from run to run


def derive_stage_keys(settings: RunSettings, number: int) -> Keys:
    """The chance of the redesign after a stage."""
    teacher, trial = (derive_seed(settings.seed, f"stage {number} {purpose}") for purpose in ("teacher", "trial"))
    return Keys(make_key(teacher), trial)


def make_rollouts(trainee: Trainee, find_policy: Callable[[], Stage], purpose: str) -> RollOut:
    """Rolls out the policy of a stage. Chance comes from the run's seed and `purpose`."""

    def roll_out(problems: Sequence[Problem], samples: int, turn: int) -> tuple[list[RolloutGroup], int]:
        with progress("trial", len(problems) * samples, trainee.environment.space.words.answers) as bar:
            seed = derive_seed(trainee.settings.seed, f"{purpose} round {turn}")
            return trainee.roll_out(find_policy().onward, problems, samples, seed, bar.update)

    return roll_out


def start_trial(trainee: Trainee, policy: Stage, purpose: str) -> TrialWork:
    """The rollouts of a trial with the policy of a stage."""
    settings, seed = trainee.settings, derive_seed(trainee.settings.seed, purpose)
    roll_out = make_rollouts(trainee, lambda: policy, purpose)
    return TrialWork(trainee.environment, roll_out, settings.trial, settings.objective, seed)


class RunEngineer:
    """The engineer of a run. Each decision is made once: one that was interrupted continues if its records end.

    Args:
        trainee, folder: the run's trainee and folder.
        held_out: the problems that the policy is judged on.
    """

    def __init__(self, trainee: Trainee, folder: RunFolder, held_out: Sequence[Problem]) -> None:
        self.trainee, self.folder, self.held_out = trainee, folder, held_out
        first = trainee.settings.engineer.asked_first
        self.round = -1 if first else 0  # the stage after which the next decision is made
        self.engineer: Engineer | None = None
        self.lengths_known = True

    def redesign(self, number: int) -> Decision:
        """The decision after stage `number`, whose records are the stage's; -1 is the warm-up."""
        while self.round < number:
            self._redesign_after(self.round)
        return self._redesign_after(number)

    def _begin(self) -> Engineer:
        """The engineer before its first decision."""
        trainee, warmup = self.trainee, self.folder.warmup
        engineer = make_engineer(
            trainee.settings, trainee.environment, trainee.start, _Unasked(), held_out=self.held_out
        )
        if not trainee.settings.engineer.asked_first and warmup.validation.exists():
            engineer.observe_start(read_outcomes(warmup, self.held_out))
        return engineer

    def _redesign_after(self, number: int) -> Decision:
        trainee, stage = self.trainee, self.folder.stage(number)
        self.engineer = engineer = self.engineer or self._begin()
        if stage.design_file.exists() and stage.design() != engineer.design:
            engineer.design = stage.design()
        if number >= 0:
            self._observe(engineer, read_rollouts(stage))
        engineer.roll_out = make_rollouts(trainee, lambda: self.folder.find_standing(number), f"stage {number} trial")
        journal = TrainedJournal if trainee.settings.teacher == TRAINED else StageJournal
        decision = engineer.redesign(
            read_outcomes(stage, self.held_out),
            journal=journal(trainee, self.folder, number, engineer),
            keys=derive_stage_keys(trainee.settings, number),
            **({} if stage.evidence.exists() else gather_evidence(trainee, stage)),
        )
        self.round = number + 1
        return decision

    def _observe(self, engineer: Engineer, rollouts: Sequence[tuple[Problem, RolloutGroup]]) -> None:
        # A run whose first stages have no lengths of answers goes on per problem, as it began.
        self.lengths_known &= all(group.tokens is not msgspec.UNSET for _, group in rollouts)
        known = {} if self.lengths_known else {"tokens": msgspec.UNSET}
        engineer.observe(
            Group(**msgspec.structs.asdict(group) | known, cell=problem.cell, version=problem.version)
            for problem, group in rollouts
        )


class StageJournal(Journal):
    """The records of a stage. A finished stage's records are read alone, also if earlier versions left some out.

    Args:
        trainee, folder, number: the run and its stage.
        engineer: gets its teacher once it is asked.
    """

    def __init__(self, trainee: Trainee, folder: RunFolder, number: int, engineer: Engineer) -> None:
        self.trainee, self.folder, self.number, self.engineer = trainee, folder, number, engineer
        self.stage = folder.stage(number)
        self.finished = self.stage.next.exists() or (number >= 0 and self.stage.done.exists())

    def note(self, step: Step, make: Callable[[], T]) -> T:
        """See `Journal.note`. No trial is held if no stage follows."""
        path = getattr(self.stage, FILES.get(step, step))
        # A record decides. A finished stage gets no further records: a step without one was not made then, except for
        # forecast and evidence, which earlier versions did not record and which can be computed again.
        if path.exists() or (self.finished and step not in ("forecast", "evidence")):
            return self._read_step(step)
        if self.finished:
            return make()
        if step == "trial" and not has_next_stage(self.folder, self.number):
            return None  # type: ignore[return-value]
        if step == "proposal":
            known = self.engineer.teacher.state_dict()
            self.engineer.teacher = load_teacher(self.trainee.settings, self.folder, self.stage, known, recorded=True)
        made = make()
        if made is not None:
            self.trainee.write_record(path, self._describe_step(made))
        if step == "proposal":
            self._forget_model()
        return made

    def _forget_model(self) -> None:
        """Gives up the teacher's model, which would take memory beside the policy of the trial."""
        self.engineer.teacher = _Unasked(self.engineer.teacher.state_dict())
        if self.trainee.asks_checkpoint:
            free_memory()

    def _read_step(self, step: Step) -> Any:
        """The result of a step in the records; None if the step wasn't run."""
        stage = self.stage
        if step == "comparison":
            rollback = find_record(stage.rollback, Rollback)
            return rollback and rollback.comparison
        if step == "proposal":
            decision = find_record(stage.proposal, DecisionRecord)
            if decision is None:
                return TeacherAnswer([], self.engineer.teacher.state_dict())
            return TeacherAnswer(
                [*decision.refused, Attempt(decision.proposal, decision.verdict)], decision.teacher_state
            )
        if step == "forecast":
            return self._read_forecast()
        read = {"evidence": stage.read_evidence, "next": stage.read_next}
        return read[step]() if step in read else find_record(stage.trial, Trial)

    def _read_forecast(self) -> Forecast | None:
        """The forecast. Raises InputError if the environment had another space then."""
        found, place = self.stage.read_forecast(), self.stage.difficulty
        try:
            if found:
                check_forecast(found, self.engineer.space)
        except InputError as error:
            said = (
                f"{place}: is of another space ({error!s:.200}); restore the earlier environment, such as ranked=True"
            )
            raise InputError(said) from error
        return found

    def _describe_step(self, made: Any) -> msgspec.Struct:
        """The record of the result."""
        settings = self.trainee.settings
        if isinstance(made, TeacherAnswer):
            *refused, last = made.attempts
            return DecisionRecord(settings.teacher, last.proposal, last.verdict, made.state, refused)
        if isinstance(made, Comparison):
            rolled_back, before = has_fallen(made, settings.rollback), self.folder.find_standing(self.number - 1)
            weights = before if rolled_back and settings.rollback.weights else self.stage
            return Rollback(before.folder.name, made, rolled_back, weights.folder.name)
        return made


class TrainedJournal(StageJournal):
    """The records of a stage whose policy is its own engineer, and trained as one."""

    def reconsider(self, attempts: Sequence[Attempt]) -> Reconsidered | None:
        """See `Journal.reconsider`: the stage's policy is trained on its proposals, unless it is rolled back."""
        stage, space = self.stage, self.engineer.space
        if self.finished:
            return None
        stands = self.folder.find_standing(self.number).folder == stage.folder  # else training it would be lost
        trains = stands and self.number >= 0 and attempts[-1].proposal.tokens
        if trains and not stage.engineer_checkpoint.exists() and has_next_stage(self.folder, self.number):
            train_engineer(self.trainee, self.folder, self.number)
        if not (training := find_record(stage.engineer, EngineerTraining)):
            return None
        again = [delta for delta in training.groups[-1].read_deltas(space) if isinstance(delta, Delta)]
        return Reconsidered(training.list_deltas(space), again if self.trainee.settings.engineer.asked_again else None)


class _Unasked:
    """The state of a teacher between two questions."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self.state = state or {}

    def propose(self, *_: Any) -> Proposal:
        """Not called: a journal either has a proposal or gets the teacher."""
        raise AssertionError

    def state_dict(self) -> dict[str, Any]:
        """As given."""
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """As given."""
        self.state = state


def read_outcomes(stage: Stage, held_out: Sequence[Problem]) -> Outcomes:
    """The answers of a stage's policy to the held-out problems."""
    validation = read_record(stage.validation, Validation)
    outcomes = Outcomes(
        {
            stratum: msgspec.structs.replace(tally, traits=validation.by_trait.get(stratum, {}))
            for stratum, tally in validation.outcomes.items()
        }
    )
    outcomes.valid = validation.valid
    outcomes.answers = Counter(zip((problem.cell for problem in held_out), validation.answered, strict=True))
    return outcomes


def gather_evidence(trainee: Trainee, stage: Stage) -> dict[str, Any]:
    """Further evidence of a stage, beside its rollouts and outcomes, as arguments of `Engineer.redesign`."""
    settings, validation = trainee.settings, read_record(stage.validation, Validation)
    trained = stage.sampled.exists()  # a warm-up has no problems of a design
    return {
        "given": trainee.given,
        "training": {**_map_hyperparameters(settings), **(_average_figures(stage) if trained else {})},
        "statistics": read_record(stage.sampled, SampledRecord).statistics if trained else {},
        "cases": [trainee.make_case(example) for example in validation.examples if example.failure != "none"]
        if validation.cases is None
        else validation.cases,
    }


def _map_hyperparameters(settings: RunSettings) -> dict[str, float | str]:
    parts = {"grpo": settings.grpo, "reward": settings.reward}
    return {
        f"{name}.{field}": value
        for name, part in parts.items()
        for field, value in msgspec.structs.asdict(part).items()
        if type(value) in (int, float, str)  # other values are defaults, or describe the host
    }


def _average_figures(stage: Stage) -> dict[str, float | str]:
    """The means of the last steps' figures."""
    log = stage.read_steps()[-LAST_STEPS:]
    last = log[-1] if log else {}
    names = [name for name, value in last.items() if isinstance(value, int | float) and name not in NO_EVIDENCE]
    return {name: float(np.mean([line[name] for line in log if line.get(name) is not None])) for name in names}
