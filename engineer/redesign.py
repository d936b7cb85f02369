"""The engineer: observes what answers earned, and redesigns what the next problems are drawn from.

    engineer = Engineer(environment, teacher="difficulty", held_out=held_out)
    problems = engineer.draw(64)
    engineer.observe(environment.groups(problems, answers))
    decision = engineer.redesign(environment.tallies(held_out, greedy))

`Engineer` keeps all its state in memory. `redesign` is made of steps that are methods, too: `fit_forecast`, `propose`,
`try_proposal`. The closed loop of experiments takes them one at a time, with a file after each.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lakewright.core_jax import results
from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.support import convert
from lakewright.engineer.cells import Stratum, list_parts
from lakewright.engineer.delta import describe_delta, list_changes
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty.forecasting import Forecast, HeldOutCell, make_forecast
from lakewright.engineer.difficulty.model import DifficultySettings, Observation, observe_groups
from lakewright.engineer.environment import Environment, Group, Problem, check_environment_type, tally_by_stratum
from lakewright.engineer.evidence.evidence import Evidence, Round
from lakewright.engineer.evidence.modules import EvidenceSettings
from lakewright.engineer.guard import GuardSettings, GuardVerdict, project_delta, widen_reach
from lakewright.engineer.proposal import Teacher, check_space
from lakewright.engineer.random_generators import Key, fold_key, make_key
from lakewright.engineer.rollback import Comparison, RollbackSettings, compare_answers
from lakewright.engineer.space import DesignSpace, check_design
from lakewright.engineer.state import STATE, Seen, State, check_cell_of, read_state
from lakewright.engineer.steps import (
    Attempt,
    Next,
    count_held_out,
    decide_next,
    group_by_cell,
    negotiate,
    try_rivals,
)
from lakewright.engineer.tally import Case, Drawn, Tally
from lakewright.engineer.teachers.models import Tools
from lakewright.engineer.teachers.registry import METHODS, make_teacher
from lakewright.engineer.trial.signals import TrialSettings
from lakewright.engineer.trial.trial import RollOut, Trial, TrialWork


class EngineerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of an engineer: its evidence, difficulty model, guard, trial and rollback."""

    evidence: EvidenceSettings = EvidenceSettings()
    """What a language model is shown."""
    difficulty: DifficultySettings = DifficultySettings()
    """How the difficulty model is fitted."""
    guard: GuardSettings = GuardSettings()
    """How far one redesign may go."""
    trial: TrialSettings = TrialSettings()
    """How proposals are tried, where a way to roll out is given."""
    rollback: RollbackSettings = RollbackSettings()
    """When a design that lowered validation is given up."""
    proposals: int = 1
    """How many changes a teacher is to propose, to be tried side by side."""


class Decision(msgspec.Struct, frozen=True):
    """A redesign: what is next, and what led to it.

    before: the design until now. evidence: what the teacher was asked about. attempts: its proposals with the guard's
    verdicts; the last one counts; none after a rollback. trial: of the proposals, where one was held. comparison: the
    held-out answers of this round beside those of the last that stands.
    """

    next: Next
    before: Design
    evidence: Evidence
    forecast: Forecast
    attempts: list[Attempt]
    trial: Trial | None
    comparison: Comparison | None
    line: str

    @property
    def design(self) -> Design:
        """The design that the next problems are drawn from."""
        return self.next.design

    @property
    def rolled_back(self) -> bool:
        """Return True if validation fell: the trainer may restore the earlier weights, too."""
        return self.next.source == "rollback"

    def summary(self) -> str:
        """The redesign in a line."""
        return self.line


class Engineer:
    """Redesigns what a policy is trained on, from what its answers earned. `state_dict` is JSON."""

    def __init__(
        self,
        environment: Environment,
        teacher: str | Teacher = "proportional",
        design: Design | None = None,
        *,
        held_out: Sequence[Problem] | None = None,
        settings: EngineerSettings = EngineerSettings(),  # noqa: B008 - it is frozen
        options: Mapping[str, Any] | None = None,
        tools: Tools | None = None,
        roll_out: RollOut | None = None,
        rounds: int | None = None,
        seed: int = 0,
    ) -> None:
        """Makes an engineer.

        Args:
            environment: draws problems and judges answers.
            teacher: the name of a teacher, `module:Class`, `FILE.py:Class`, or an object.
            design: what to begin with; by default equal shares and middle values.
            held_out: the problems that the policy is judged on, so which cells matter and how much; by default all
                alike.
            settings: how it works.
            options: keyword arguments of a teacher that is given by name.
            tools: how a teacher that is a model is asked.
            roll_out: rolls the present policy out, for trials; without it none is held.
            rounds: how many redesigns there will be, for teachers with a schedule.
            seed: of problems and of the teacher's chance.

        Raises InputError where teacher, options or design are not usable, or do not suit the space.
        """
        check_environment_type(environment, "engineer")
        if not isinstance(settings, EngineerSettings):
            raise InputError(f"engineer: settings are {settings!r:.60}; give EngineerSettings")
        whole = isinstance(seed, int) and (rounds is None or isinstance(rounds, int))
        if not whole or abs(seed) >= 2**63 or (rounds is not None and rounds < 1):
            raise InputError(f"engineer: seed {seed!r:.30}, rounds {rounds!r:.20}; give whole numbers, rounds from 1")
        self.environment, self.settings, self.rounds, self.seed = environment, settings, rounds, seed
        self.space: DesignSpace = environment.space
        self.held_out = None if held_out is None else list(list_parts("engineer: held_out", held_out))
        if self.held_out == []:
            raise InputError("engineer: held_out is empty; give problems, or leave it out")
        for problem in self.held_out or ():
            check_cell_of(problem, Problem, self.space, "held_out")
        self.roll_out = roll_out
        tools = tools or Tools(settings.evidence, proposals=settings.proposals)
        self.teacher = make_teacher(teacher, tools, options) if isinstance(teacher, str) else teacher
        if missing := [method for method in METHODS if not hasattr(self.teacher, method)]:
            raise InputError(f"engineer: teacher {teacher!r:.60} has no {missing[0]}; give a Teacher or its name")
        check_space(self.teacher, self.space)
        begin = environment.start() if design is None else design
        check_design(begin, self.space)
        self._state = State(STATE, self.space.signature(), {}, begin)

    @property
    def design(self) -> Design:
        """The design that the next problems are drawn from."""
        return self._state.design

    @property
    def forecast(self) -> Forecast | None:
        """The forecast of the difficulty model at the last redesign."""
        return self._state.forecast

    @property
    def history(self) -> list[Round]:
        """The rounds so far, oldest first."""
        return list(self._state.history)

    def draw(self, count: int) -> list[Problem]:
        """The next problems of the design; no problem is drawn twice."""
        problems = self.environment.draw(self.design, count, self.seed, first=self._state.drawn)
        self._state.drawn += count
        return problems

    def observe(self, groups: Iterable[Group]) -> None:
        """Notes groups of answers to problems, of this design or of an earlier one.

        Raises InputError on a group of another space or of a later design; none of the groups is noted then.
        """
        noted = []
        for group in list_parts("observe: groups", groups):
            check_cell_of(group, Group, self.space, "group")
            if group.version > self.design.version or not math.isfinite(group.reward):
                found = f"group {group.board!r:.60}: version {group.version}, reward {group.reward:g}"
                last = self.design.version
                raise InputError(f"{found}; give groups of designs up to version {last}, with finite rewards")
            plain = {name: getattr(group, name) for name in results.Group.__struct_fields__}
            noted.append(Seen(group.cell, results.Group(**plain)))
        self._state.seen += noted

    def redesign(
        self,
        outcomes: Mapping[Stratum, Tally] | None = None,
        *,
        cases: Sequence[Case] = (),
        training: Mapping[str, float | str] | None = None,
        statistics: Mapping[Stratum, Drawn] | None = None,
    ) -> Decision:
        """One round: forecast, rollback, evidence, proposal, guard, trial. Sets `design`.

        Args:
            outcomes: tallies of the held-out problems, as `Environment.tallies` gives them; by default the tallies of
                the training groups. With the answers of every problem (`Outcomes`), validation of successive rounds is
                compared, and a design that lowered it is given up.
            cases: held-out problems whose answers failed, for evidence as text.
            training, statistics: further evidence: figures of the training, and what was really drawn.
        """
        state, design = self._state, self.design
        groups = [(seen.cell, seen.group) for seen in state.seen]
        found = outcomes
        if found is None:
            found = tally_by_stratum(((cell, self._count_answers(group)) for cell, group in groups), self.space)
        self._check_tables(found, statistics or {})
        now = observe_groups(groups)
        older = [msgspec.structs.replace(one, age=one.age + 1) for one in state.observations]
        forecast = self.fit_forecast([*now, *older], before=state.forecast)
        valid, before = getattr(outcomes, "valid", ""), state.standing_valid
        comparable = self.settings.rollback.enabled and valid and len(before) == len(valid)
        answers = ([one == "1" for one in text] for text in (before, valid))
        comparison = compare_answers(*answers) if comparable else None
        evidence = Evidence(
            design=design,
            outcomes=dict(found),
            by_trait={stratum: dict(tally.traits) for stratum, tally in found.items()},
            guideline=self.space.words.guide(),
            history=state.history,
            summary=state.summary,
            round=state.round,
            rounds=self.rounds or state.round + 1,
            problems=len(groups),
            groups=group_by_cell(groups),
            training=convert(training or {}, dict[str, float | str], "redesign: training"),
            statistics=dict(statistics or {}),
            forecast=forecast,
            cases=list(list_parts("redesign: cases", cases, Case)),
        )
        teacher_state = self.teacher.state_dict()
        try:
            following, attempts, trial = self._choose_next(evidence, forecast, comparison)
            line = self._describe_round(following, attempts)
        except BaseException:
            self.teacher.load_state_dict(teacher_state)  # the round may be tried again, as if it had not begun
            raise
        changed = msgspec.structs.replace(following.design, version=design.version + (following.design != design))
        following = msgspec.structs.replace(following, design=changed)
        decision = Decision(following, design, evidence, forecast, attempts, trial, comparison, line)
        self._advance_round(decision, [*now, *older], valid)
        return decision

    def fit_forecast(
        self, observations: Sequence[Observation], tested: Sequence[Observation] = (), before: Forecast | None = None
    ) -> Forecast:
        """The forecast for the held-out problems, of the present design. Arguments as of `make_forecast`."""
        held_out, how = self._held_out_cells(), self.settings.difficulty
        return make_forecast(self.design, observations, held_out, how, self.space, before, tested)

    def propose(self, evidence: Evidence, forecast: Forecast | None, key: Key) -> list[Attempt]:
        """The teacher's proposals with the verdicts of `judge_delta`, by `negotiate`; the last one counts.

        key: consumed.
        """
        guard = self._limit_changes(forecast)
        return negotiate(self.teacher, evidence, self.design, self.environment, key, guard, self.settings.proposals)

    def judge_delta(self, delta: Delta, forecast: Forecast | None) -> GuardVerdict:
        """The guard's verdict on a change of the present design; it allows the more, the more certain the forecast."""
        return project_delta(self.design, delta, self.environment, self._limit_changes(forecast))

    def try_proposal(
        self, verdict: GuardVerdict, others: Iterable[Delta], forecast: Forecast | None, work: TrialWork
    ) -> Trial | None:
        """The trial of a proposal against the present design; None where nothing would change.

        Args:
            verdict: on the proposal.
            others: further changes, which are tried beside it.
            forecast: what is known of the cells.
            work: rolls the policy out.
        """
        designs = [verdict.design, *(self.judge_delta(delta, forecast).design for delta in others)]
        rivals = [one for place, one in enumerate(designs) if one != self.design and one not in designs[:place]]
        return try_rivals(work, rivals, self.design, forecast, verdict.design) if rivals else None

    def _limit_changes(self, forecast: Forecast | None) -> GuardSettings:
        return widen_reach(self.settings.guard, self.space, forecast.certainty) if forecast else self.settings.guard

    def _check_tables(self, tallies: object, statistics: object) -> None:
        for name, table, kind in (("tallies", tallies, Tally), ("statistics", statistics, Drawn)):
            if not isinstance(table, Mapping) or not all(isinstance(part, kind) for part in table.values()):
                raise InputError(f"redesign: {table!r:.60} is not a dict of {name}; give those of Environment.{name}")
            if name == "tallies" and (strange := [stratum for stratum in table if stratum not in self.space.ranks]):
                raise InputError(f"outcomes: {strange[0]!r:.60} is no {self.space.words.stratum} of this environment")

    def _choose_next(
        self, evidence: Evidence, forecast: Forecast, comparison: Comparison | None
    ) -> tuple[Next, list[Attempt], Trial | None]:
        """The next design, whose version is not set, with the attempts and the trial that led to it."""
        design, standing = self.design, self._state.standing
        if comparison and comparison.p_value < self.settings.rollback.level and standing and standing != design:
            reason = f"validation fell: {comparison.lost} lost, {comparison.gained} gained, p {comparison.p_value:.2g}"
            return Next(standing, "rollback", [reason]), [], None
        attempts = self.propose(evidence, forecast, fold_key(make_key(self.seed), self._state.round))
        last, trial = attempts[-1], None
        if self.roll_out and self.settings.trial.enabled:
            objective, seed = forecast.model.objective, self.seed + self._state.round
            work = TrialWork(self.environment, self.roll_out, self.settings.trial, objective, seed)
            trial = self.try_proposal(last.verdict, last.proposal.candidates, forecast, work)
        return decide_next(last.verdict, design, trial), attempts, trial

    def _describe_round(self, following: Next, attempts: Sequence[Attempt]) -> str:
        delta = attempts[-1].proposal.delta if attempts else None
        proposed = describe_delta(delta, self.space) if delta else ""  # what is wrong with an answer is a reason
        # What an accepted proposal changes has been said; of all others it may differ from what was proposed.
        accepted = following.source == "proposal" and attempts[-1].verdict.status == "accepted"
        changes = "" if accepted else f"applied: {list_changes(self.design, following.design, self.space)}"
        return "; ".join(part for part in (proposed, *following.reasons, changes) if part)

    def _advance_round(self, decision: Decision, observations: list[Observation], valid: str) -> None:
        state = self._state
        delta, state.summary = None, ""
        if decision.attempts:
            proposal = decision.attempts[-1].proposal
            delta, state.summary = proposal.delta, proposal.summary
        note = "; ".join(decision.next.reasons)
        state.history.append(Round(state.design, decision.evidence.outcomes, delta, note, decision.rolled_back))
        state.observations, state.seen, state.forecast = observations, [], decision.forecast
        if not decision.rolled_back:
            state.standing, state.standing_valid = state.design, valid
        state.design = decision.design
        state.round += 1

    def _count_answers(self, group: results.Group) -> Tally:
        """The tally of a training group, each answer counting as a problem."""
        failures = {name: group.failures.get(name, 0) for name in self.space.failures}
        return Tally(group.completions, group.valid, failures)

    def _held_out_cells(self) -> list[HeldOutCell]:
        if self.held_out is not None:
            return count_held_out((problem.cell for problem in self.held_out), self.design)
        cells = [cell for cell in self.space.grid(self.design.strata) if self.environment.drawable(cell)]
        return [HeldOutCell(cell, 1 / len(cells)) for cell in cells]

    def state_dict(self) -> dict[str, Any]:
        """All that the engineer knows, as JSON values."""
        state = msgspec.structs.replace(self._state, teacher=self.teacher.state_dict())
        return msgspec.to_builtins(state, str_keys=True)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` gave.

        Raises InputError, and changes nothing, where it is of another environment's space or of another form.
        """
        restored = read_state(state, self.space)
        before = self.teacher.state_dict()
        try:
            self.teacher.load_state_dict(restored.teacher)
        except Exception as error:
            self.teacher.load_state_dict(before)
            said = one_line(f"{type(error).__name__}: {error}")
            raise InputError(f"state: teacher does not fit ({said:.80}); load the state of the same teacher") from error
        self._state = restored
