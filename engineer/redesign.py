"""The engineer: observes the outcomes of answers, and redesigns the distribution of the next problems.

    engineer = Engineer(environment, teacher="difficulty", held_out=held_out)
    problems = engineer.draw(64)
    engineer.observe(environment.groups(problems, answers))
    decision = engineer.redesign(environment.tallies(held_out, greedy))

All state is in memory. The steps of `redesign`, some of them methods, first look for their result in a journal.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.argument_checks import (
    check_arguments,
    check_kind,
    check_not_held_out,
    check_observations,
    check_tables,
    list_held_out,
)
from lakewright.engineer.cells import Stratum, list_parts
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty.forecasting import Forecast, make_forecast
from lakewright.engineer.difficulty.graded_rewards import find_graded
from lakewright.engineer.difficulty.model import Observation
from lakewright.engineer.environment import Environment, check_environment_type
from lakewright.engineer.evidence.evidence import Evidence, Round
from lakewright.engineer.explanation import add_texts
from lakewright.engineer.guard import GuardSettings, GuardVerdict, check_draws, check_guard, limit_round, project_delta
from lakewright.engineer.journal import Journal, Keys, TeacherAnswer, derive_keys
from lakewright.engineer.outcomes import Outcomes, order_answers
from lakewright.engineer.problems import Group, Problem
from lakewright.engineer.proposal import Teacher, save_state
from lakewright.engineer.random_generators import Key, check_key
from lakewright.engineer.rollback import compare_rounds, has_fallen
from lakewright.engineer.samplers.supply import Sampling, Supply, choose_problems, choose_sampler, list_places
from lakewright.engineer.seen import add_groups, fold_groups
from lakewright.engineer.settings import EngineerSettings, read_used_settings
from lakewright.engineer.signal import Doubt, find_doubts
from lakewright.engineer.space_checks import check_design
from lakewright.engineer.start import find_start
from lakewright.engineer.state import (
    STATE,
    State,
    add_observations,
    advance_round,
    gather_known,
    make_evidence,
    note_groups,
    read_state,
    restore_teacher,
    write_state,
)
from lakewright.engineer.steps import (
    Attempt,
    Decision,
    Next,
    count_held_out,
    decide_again,
    decide_next,
    decide_nothing,
    find_delta,
    list_held,
    negotiate,
    observe_answers,
    tally_seen,
    try_rivals,
    warn_of_graders,
)
from lakewright.engineer.tally import Case, Drawn, Tally
from lakewright.engineer.teachers.models import Tools
from lakewright.engineer.teachers.registry import DEFAULT_TEACHER, choose_teacher
from lakewright.engineer.trial.trial import RollOut, Trial, TrialWork


class Engineer:
    """Redesigns a policy's training problems from its rewards. `state_dict` is JSON.

    engineer = Engineer(environment, held_out=environment.draw(environment.space.uniform(), 200, seed=1))
    problems = engineer.draw(64)  # To be answered, and trained on.
    engineer.observe(environment.groups(problems, answers))  # A list of texts for each problem.
    print(engineer.redesign().summary())  # The next problems are drawn from engineer.design.
    """

    def __init__(
        self,
        environment: Environment,
        teacher: str | Teacher = DEFAULT_TEACHER,
        design: Design | None = None,
        *,
        held_out: Sequence[Problem] | None = None,
        settings: EngineerSettings | Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        tools: Tools | None = None,
        roll_out: RollOut | None = None,
        rounds: int | None = None,
        seed: int = 0,
        sampler: str = "",
    ) -> None:
        """Makes an engineer.

        Args:
            environment: draws problems and judges answers.
            teacher: the name of a teacher, `module:Class`, `FILE.py:Class`, or an object.
            design: the first design; by default equal shares and middle values.
            held_out: the problems that the policy is judged on; they decide which cells matter and how much; by default
                all cells matter equally.
            settings: settings of the engineer, or a table of some that have an effect, such as `{"guard.floor": 0.1}`.
            options: keyword arguments of a teacher that is given by name.
            tools: ask a teacher that is a model, see `Tools` of `lakewright.engineer.teachers`.
            roll_out: samples the current policy, for trials and samplers; trials need it.
            rounds: the number of redesigns; teachers with a schedule need it, and `gain` looks no further ahead.
            seed: seed for problems and for the teacher's randomness.
            sampler: `fresh`, `signal` or `redraw`; by default the sampler of the settings, which have its options.

        Raises InputError if one of these or the guard's limits are not usable, or do not suit the space.
        """
        check_environment_type(environment, "engineer")
        check_kind("engineer: tools", tools, Tools)
        check_arguments(roll_out, rounds, seed)
        self.environment, self.rounds, self.seed = environment, rounds, seed
        self.settings = settings = read_used_settings(settings, teacher, roll_out)
        self.space, self.roll_out = environment.space, roll_out
        self.sampler = choose_sampler(settings.sampler, sampler, self.space, roll_out=roll_out)
        self.held_out = list_held_out(held_out, self.space)
        usual = Tools(settings.evidence, proposals=settings.proposals)
        self.teacher = choose_teacher(teacher, tools or usual, options, self.space, rounds, settings.difficulty)
        begin = find_start(environment) if design is None else design
        check_design(begin, self.space)
        check_guard(settings.guard, len(begin.strata), self.space)
        self._state = State(STATE, self.space.signature(), {}, begin.copy())

    def __repr__(self) -> str:
        version, teacher = self._state.design.version, type(self.teacher).__name__
        return f"Engineer(version {version}, teacher {teacher}, environment {type(self.environment).__name__})"

    @property
    def design(self) -> Design:
        """A copy of the design that the next problems are drawn from.

        Set it to replace the engineer's own. If it differs, it gets the next version, or its own if that is later.
        """
        return self._state.design.copy()

    @design.setter
    def design(self, design: Design) -> None:
        check_design(design, self.space)
        current = self._state.design
        # Versions only grow, so that answers which are still to come are of an earlier one.
        version = max(current.version + (design != current), design.version)
        self._state.design = msgspec.structs.replace(design, version=version)

    @property
    def forecast(self) -> Forecast | None:
        """The forecast of the difficulty model at the last redesign."""
        return self._state.forecast

    @property
    def history(self) -> list[Round]:
        """The rounds so far, oldest first."""
        return list(self._state.history)

    @property
    def sampling(self) -> Sampling:
        """The work of the sampler so far, and the tokens that it took."""
        return self._state.sampling

    def draw(self, count: int) -> list[Problem]:
        """The next problems of the design, as the sampler chooses them; no place is drawn twice.

        Problems of two places may be equal, if a cell has few.

        Raises InputError if these cannot be drawn or chosen, or the seed is also the held-out problems'.
        """
        if not self._state.drawn:
            check_draws(self.design, self.environment, "engineer: design")
            check_not_held_out(self.environment, self.design, self.held_out or [], self.seed)
        places = list_places(self._state.drawn, count)
        supply = Supply(self.environment, self.design, self.seed, places, self._state.forecast)
        drawn, done = choose_problems(self.sampler, supply, self.roll_out)
        self._state.drawn, self._state.sampling = places.stop, self._state.sampling.add(done)
        return drawn.problems

    def observe(self, groups: Iterable[Group]) -> None:
        """Notes groups of answers to problems, of this design or of an earlier one.

        A group that is given twice counts twice. Raises InputError, and notes nothing, on a group of another space, a
        later design, or with impossible numbers.
        """
        state, noted = self._state, note_groups(groups, self.design, self.space)
        state.seen, state.seen_cells = fold_groups([*state.seen, *noted], state.seen_cells, self.space)

    def redesign(
        self,
        outcomes: Mapping[Stratum, Tally] | None = None,
        *,
        given: Mapping[str, tuple[int | float, ...]] | None = None,
        cases: Sequence[Case] = (),
        training: Mapping[str, float | str] | None = None,
        statistics: Mapping[Stratum, Drawn] | None = None,
        journal: Journal | None = None,
        keys: Keys | None = None,
    ) -> Decision:
        """One round: rollback, forecast, evidence, proposal, guard, trial. Sets `design`.

        Args:
            outcomes: tallies of the held-out problems, as `Environment.tallies` gives them; by default the tallies of
                the training groups. With the answers of every problem (`Outcomes`), the difficulty model is fitted to
                them, too, validation of successive rounds is compared, and a design that lowered it is given up. Before
                any group was observed, the first stage is redesigned from them.
            cases: held-out problems whose answers failed, for evidence as text.
            given, training, statistics: further evidence: values of givens, training figures, what was really drawn.
            journal: holds the results of earlier calls, so that steps are not repeated; by default each step is run.
            keys: the sources of randomness; by default derived from the seed and the round.
        """
        state, design, journal = self._state, self.design, journal or Journal()
        seen = add_groups(state.seen_cells, state.seen, self.space)
        found = tally_seen(seen, self.space) if outcomes is None else outcomes
        check_tables(found, statistics or {}, self.space)
        known = gather_known(given, cases, training, statistics) | {"space": self.space, "rounds": self.rounds}
        if not found and not seen.count and getattr(self.teacher, "reads_outcomes", False):
            forecast = state.forecast or self.fit_forecast(())
            return decide_nothing(make_evidence(state, found, seen, forecast, **known), forecast)
        answers, rollback = order_answers(outcomes, self.held_out), self.settings.rollback
        before = state.find_digits_before(answers) if rollback.enabled else ""
        teacher_state = save_state(self.teacher)
        try:
            comparison = journal.note("comparison", lambda: compare_rounds(before, answers.digits))
            fallen = [comparison.summary()] if comparison and has_fallen(comparison, rollback) else []
            tested, undone = observe_answers(outcomes, design, self.space), bool(fallen) and rollback.weights
            observations, tested = add_observations(state, seen, tested, self.settings.difficulty, undone=undone)
            doubts = find_doubts([*state.outcomes, found], self.space, find_graded(observations))
            forecast = journal.note("forecast", lambda: self.fit_forecast(observations, tested, state.forecast, doubts))
            evidence = journal.note("evidence", lambda: make_evidence(state, found, seen, forecast, **known))
            following, attempts, trial = self._choose_next(evidence, forecast, fallen, journal, keys)
            decision = Decision(
                next=following,
                before=design,
                evidence=evidence,
                forecast=forecast,
                attempts=attempts,
                trial=trial,
                comparison=comparison,
                rolled_back=bool(fallen),
            )
            decision = add_texts(decision, self.environment, outcomes or {})
        except BaseException:
            self.teacher.load_state_dict(teacher_state)  # the rest of the state changes below, once nothing can fail
            raise
        state.observations, state.tested = [*observations, *(trial.observe() if trial else ())], tested
        advance_round(state, decision, find_delta(decision, self.space), answers, weights=rollback.weights)
        return decision

    def observe_start(self, outcomes: Outcomes) -> None:
        """Notes answers to held-out problems of the policy before its first stage, if nothing is redesigned from them.

        Raises InputError after the first round, or if they are of another space.
        """
        check_kind("observe_start: outcomes", outcomes, Outcomes, needed=True)
        check_tables(outcomes, {}, self.space)
        if self._state.round:
            raise InputError(f"observe_start: {self._state.round} rounds are over; pass the outcomes to redesign")
        self._state.tested = observe_answers(outcomes, self.design, self.space)
        self._state.standing_answers = order_answers(outcomes, self.held_out)

    def fit_forecast(
        self,
        observations: Sequence[Observation],
        tested: Sequence[Observation] = (),
        before: Forecast | None = None,
        doubts: Sequence[Doubt] = (),
    ) -> Forecast:
        """The forecast for the held-out problems, of the present design.

        Args:
            observations: all groups so far, from `lakewright.engineer.difficulty.observe_groups`; age 0 since `before`.
            tested: outcomes on held-out problems, from `observe_held_out`; the model is fitted to them, too.
            before: the forecast one round earlier, whose calibration is measured.
            doubts: from `find_doubts`: strata with doubted graders say nothing of others, and get the floor at most.

        Raises InputError if an observation is not of this space, or if `drawable` fails.
        """
        check_observations(list_parts("fit_forecast: observations", observations), self.space, "fit_forecast")
        check_observations(list_parts("fit_forecast: tested", tested), self.space, "fit_forecast: tested")
        check_kind("fit_forecast: before", before, Forecast)
        cells, settings = count_held_out(self.held_out, self.design, self.environment), self.settings.difficulty
        return make_forecast(self.design, observations, cells, settings, self.space, before, tested, doubts)

    def propose(self, evidence: Evidence, forecast: Forecast | None, key: Key) -> list[Attempt]:
        """The teacher's proposals with the verdicts of `judge_delta`, by `negotiate`; the last one counts.

        Args:
            evidence: what is known, an `Evidence` of `lakewright.engineer.evidence`, such as `Decision.evidence`.
            forecast: from `fit_forecast`; the more certain, the more the guard allows. None for the narrowest limits.
            key: `make_key(seed)` of `lakewright.engineer.random_generators`, or a typed key of JAX; consumed.

        The teacher's state has what led to the last proposal. Raises InputError if an argument is of another
        kind, or if `drawable` fails.
        """
        check_kind("propose: evidence", evidence, Evidence, needed=True)
        check_kind("propose: forecast", forecast, Forecast)
        check_key(key, "propose")
        guard, held, count = self._limit_round(forecast), list_held(forecast), self.settings.proposals
        return negotiate(self.teacher, evidence, self.design, self.environment, key, guard, count, held)

    def judge_delta(self, delta: Delta, forecast: Forecast | None) -> GuardVerdict:
        """The guard's verdict on a change of the present design; a more certain forecast allows larger changes.

        Args:
            delta: the changes, such as `Delta({stratum: Edit({"share": 0.05, "digits": 1}, "why")})`.
            forecast: from `fit_forecast`; None for the narrowest limits.

        A delta that names an unknown stratum or knob, or has a change that is not finite, is refused by the verdict.
        Raises InputError if an argument is of another kind, or if `drawable` fails.
        """
        check_kind("judge_delta: delta", delta, Delta, needed=True)
        check_kind("judge_delta: forecast", forecast, Forecast)
        return project_delta(self.design, delta, self.environment, self._limit_round(forecast), list_held(forecast))

    def _limit_round(self, forecast: Forecast | None) -> GuardSettings:
        """The guard of a round: the more certain the forecast, the wider."""
        return limit_round(self.settings.guard, self.space, forecast.certainty if forecast else 0.0)

    def try_proposal(
        self, verdict: GuardVerdict, others: Iterable[Delta], forecast: Forecast | None, work: TrialWork
    ) -> Trial | None:
        """The trial of a proposal against the present design; None if nothing would change, or `work.unheld` says why.

        Args:
            verdict: the guard's verdict on the proposal, from `judge_delta` or from the last attempt of `propose`.
            others: further changes to try beside it, such as `Proposal.candidates`.
            forecast: from `fit_forecast`, what is known of the cells; None if nothing is.
            work: a new `TrialWork` (of `lakewright.engineer.trial`), whose `roll_out` runs the policy.

        Raises InputError on an argument of another kind, a wrong result of `roll_out`, or an environment that fails.
        """
        check_kind("try_proposal: verdict", verdict, GuardVerdict, needed=True)
        check_kind("try_proposal: work", work, TrialWork, needed=True)
        designs = [verdict.design, *(self.judge_delta(delta, forecast).design for delta in others)]
        # Each different design once: rollouts on the same design twice would only cost tokens.
        rivals = [one for place, one in enumerate(designs) if one != self.design and one not in designs[:place]]
        return try_rivals(work, rivals, self.design, forecast, verdict.design) if rivals else None

    def _choose_next(
        self, evidence: Evidence, forecast: Forecast, fallen: list[str], journal: Journal, keys: Keys | None
    ) -> tuple[Next, list[Attempt], Trial | None]:
        """The next design, with the attempts and the trial that led to it. fallen: the line of a stage that fell."""
        standing, keys = self._state.standing, keys or derive_keys(self.seed, self._state.round)
        if fallen and standing and standing != self.design:
            return journal.note_next(self.design, lambda: Next(standing, "rollback", fallen)), [], None
        attempts, known = journal.note(
            "proposal", lambda: TeacherAnswer(self.propose(evidence, forecast, keys.teacher), save_state(self.teacher))
        )
        # The proposal came from the journal, so the teacher has not seen this round yet.
        if known != save_state(self.teacher):
            self.teacher.load_state_dict(known)
        if not attempts:  # of an earlier version, which asked nobody after a first stage that was rolled back
            return journal.note_next(self.design, lambda: Next(self.design, "rollback", fallen)), [], None
        again = journal.reconsider(attempts)
        last, work = attempts[-1], self._start_trial(forecast, evidence, keys.trial)
        others = again.rivals if again else last.proposal.candidates
        trial = journal.note("trial", lambda: self.try_proposal(last.verdict, others, forecast, work) if work else None)

        def decide() -> Next:
            following = decide_next(last.verdict, self.design, trial, work.unheld if work else "")
            if again and again.instead is not None and trial is None:
                verdicts = (self.judge_delta(delta, forecast) for delta in again.instead)
                following = decide_again(verdicts, self.design, following)
            warned = warn_of_graders(evidence, forecast, following.design, self._limit_round(forecast), self.space)
            return msgspec.structs.replace(following, reasons=[*fallen, *warned, *following.reasons])

        return journal.note_next(self.design, decide), attempts, trial

    def _start_trial(self, forecast: Forecast, evidence: Evidence, seed: int) -> TrialWork | None:
        """The work of a trial, if the policy can be rolled out. seed: the seed of its problems."""
        if not self.roll_out or not self.settings.trial.enabled:
            return None
        trained, objective = sum(part.groups.completions for part in evidence.groups), forecast.model.objective
        return TrialWork(self.environment, self.roll_out, self.settings.trial, objective, seed, trained)

    def state_dict(self) -> dict[str, Any]:
        """The state as JSON values, without the arguments of the engineer. Raises InputError if it is not JSON."""
        return write_state(self._state, self.teacher, self.space, self.seed)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` of an engineer with equal arguments gave.

        Held-out problems may be others than before: what was learned counts, and answers to them are first compared
        when there are two rounds of them. Raises InputError, and changes nothing, on a state of another space, form or
        seed.
        """
        restored = read_state(state, self.space, self.seed)
        restore_teacher(self.teacher, restored)
        self._state = restored
