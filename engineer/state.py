"""The state of an engineer, as `Engineer.state_dict` gives it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import Natural, convert
from lakewright.engineer.argument_checks import (
    REMEDY,
    check_forecast,
    check_group,
    check_observations,
    check_tokens,
)
from lakewright.engineer.cells import Stratum, list_parts
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import DifficultySettings, Observation
from lakewright.engineer.evidence.evidence import Evidence, Round
from lakewright.engineer.outcomes import HeldOutAnswers
from lakewright.engineer.problems import Group
from lakewright.engineer.proposal import Teacher, save_state
from lakewright.engineer.samplers.supply import Sampling
from lakewright.engineer.seen import Seen, SeenCells
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import check_cell_of, check_design
from lakewright.engineer.steps import Decision, grow_older
from lakewright.engineer.tally import Case, Drawn, Tally

STATE = 1  # the form of a state


class State(msgspec.Struct, forbid_unknown_fields=True):
    """All that an engineer knows.

    seen, seen_cells: the groups of this round, and those before them. observations, tested: for all rounds, with their
    ages: groups of training and of trials, and answers to held-out problems. standing: the design of the last round
    that stands and had an answer to each held-out problem. standing_digits: these answers, by the policy that training
    continues with; standing_digest: the problems' digest, see `order_answers`, in earlier states often empty.
    teacher_type: the name of the teacher's class; directions: in which problems get harder; both are empty in states of
    older versions. sampling: what the sampler did so far. seed: the engineer's; None in states of older versions.
    """

    format: int
    space: str
    teacher: dict[str, Any]
    design: Design
    round: Natural = 0
    drawn: Natural = 0
    seen: list[Seen] = []
    seen_cells: SeenCells = SeenCells()
    observations: list[Observation] = []
    tested: list[Observation] = []
    history: list[Round] = []
    forecast: Forecast | None = None
    summary: str = ""
    standing: Design | None = None
    standing_digits: str = msgspec.field(default="", name="standing_valid")
    standing_digest: str = msgspec.field(default="", name="standing_problems")
    teacher_type: str = ""
    directions: str = ""
    sampling: Sampling = Sampling()
    seed: int | None = None

    @property
    def standing_answers(self) -> HeldOutAnswers:
        """The held-out answers of the policy that training continues with."""
        return HeldOutAnswers(self.standing_digits, self.standing_digest)

    @standing_answers.setter
    def standing_answers(self, answers: HeldOutAnswers) -> None:
        self.standing_digits, self.standing_digest = answers

    @property
    def outcomes(self) -> list[Mapping[Stratum, Tally]]:
        """The outcomes of each round."""
        return [one.outcomes for one in self.history]

    def find_digits_before(self, answers: HeldOutAnswers) -> str:
        """The digits to compare answers with; empty if they are to other problems. Old states do not say which."""
        return self.standing_digits if len({answers.digest, self.standing_digest} - {""}) < 2 else ""


def add_observations(
    state: State,
    seen: SeenCells,
    tested: Sequence[Observation],
    settings: DifficultySettings,
    *,
    undone: bool,
) -> tuple[list[Observation], list[Observation]]:
    """The observations of groups and of held-out answers of all rounds, the earlier ones a round older.

    Args:
        state: has the earlier ones.
        seen: the groups of the round.
        tested: the answers to held-out problems after its training.
        settings: the settings of the difficulty model.
        undone: whether that training is undone, because the weights from before it were restored.
    """
    groups = seen.observations
    if undone:
        # The policy is the one from before the round. Its answers remain evidence, but no training followed them.
        groups, tested = [msgspec.structs.replace(one, tried=True) for one in groups], []
    return [*groups, *grow_older(state.observations, settings)], [*tested, *grow_older(state.tested, settings)]


def advance_round(
    state: State, decision: Decision, delta: Delta | None, answers: HeldOutAnswers, *, weights: bool
) -> None:
    """Notes a decision in a state.

    Args:
        state: the state to change: it gets another design, and one more round.
        decision: the decision of this round.
        delta: the delta that was proposed, or preferred by the trial.
        answers: the held-out answers, from `order_answers`.
        weights: whether the trainer restores the weights from before, if validation fell.
    """
    note, rolled_back = "; ".join(decision.next.reasons), decision.rolled_back
    # What loops and teachers see are copies: an edit in place would be a change that no guard has seen.
    state.history.append(Round(state.design.copy(), decision.evidence.outcomes, delta, note, rolled_back))
    state.summary = decision.attempts[-1].proposal.summary if decision.attempts else ""
    state.seen, state.seen_cells, state.forecast = [], SeenCells(), decision.forecast
    # A design that is rolled back never becomes the one to return to. If the trainer keeps its weights, though, the
    # next comparison must be with their answers. A round without an answer to each problem is not compared, so a fall
    # since the last comparison leads back to the design of then.
    if answers.digits:
        state.standing = state.standing if rolled_back else state.design
        if not (rolled_back and weights):
            state.standing_answers = answers
    state.design = decision.design.copy()
    state.round += 1


def gather_known(
    given: Mapping[str, tuple[int | float, ...]] | None,
    cases: Sequence[Case],
    training: Mapping[str, float | str] | None,
    statistics: Mapping[Stratum, Drawn] | None,
) -> dict[str, Any]:
    """The fields of `Evidence` that come from elsewhere.

    given, cases, training, statistics: as in `Engineer.redesign`. Raises InputError if one is of another form.
    """
    convert(training or {}, dict[str, float | str], "redesign: training")  # a check: whole numbers stay what they are
    return {
        "given": dict(given or {}),
        "training": dict(training or {}),
        "statistics": dict(statistics or {}),
        "cases": list(list_parts("redesign: cases", cases, Case)),
    }


def make_evidence(
    state: State,
    found: Mapping[Stratum, Tally],
    seen: SeenCells,
    forecast: Forecast,
    *,
    space: DesignSpace,
    rounds: int | None,
    **known: Any,
) -> Evidence:
    """All that is known of a round.

    Args:
        state: the engineer's state.
        found: the round's outcomes.
        seen: the groups that were observed.
        forecast, space: the round's forecast, and the design space.
        rounds: how many there will be, if that is known.
        known: evidence fields from elsewhere.
    """
    return Evidence(
        design=state.design.copy(),
        outcomes=dict(found),
        by_trait={stratum: dict(tally.traits) for stratum, tally in found.items()},
        guideline=space.words.guide(),
        history=list(state.history),
        summary=state.summary,
        round=state.round,
        rounds=rounds,
        problems=sum(part.problems for part in known["statistics"].values()) or seen.count or None,
        groups=seen.groups,
        forecast=forecast,
        **known,
    )


def write_state(state: State, teacher: Teacher, space: DesignSpace, seed: int) -> dict[str, Any]:
    """JSON values of a state and its teacher's.

    Args:
        state, teacher: the state, and the teacher, whose own state it gets.
        space: the design space.
        seed: the engineer's seed.

    Raises InputError if the state of the teacher is no JSON.
    """
    own = {"teacher": save_state(teacher), "teacher_type": type(teacher).__name__}
    parts = {**own, "seed": seed, "directions": _describe_directions(space)}
    return msgspec.to_builtins(msgspec.structs.replace(state, **parts), str_keys=True)


def _describe_directions(space: DesignSpace) -> str:
    """The directions in which problems get harder, which the difficulty model is fitted by."""
    knobs = [f"{knob.name} {knob.harder}" for knob in space.knobs]
    return ", ".join(["ranked" if space.ranked else "not ranked", *knobs])


def check_form(state: Any) -> None:
    """Raises InputError if a state is of another form; the values in it are not checked."""
    if isinstance(state, str | bytes):
        raise InputError(f"state: is the text {state!r:.30}; give the dict in it, such as json.loads(text)")
    form = state.get("format") if isinstance(state, Mapping) else state
    if not isinstance(state, Mapping) or form != STATE:
        raise InputError(f"state: format is {form!r:.20}, this version reads {STATE}; use the version that wrote it")


def read_state(state: Any, space: DesignSpace, seed: int) -> State:
    """The state from JSON values. Raises InputError if it is of another space, form or seed."""
    check_form(state)
    if state.get("space") != space.signature():
        other, own = state.get("space"), space.signature()
        raise InputError(f"state: belongs to the space {other!r:.40}, not {own!r}; load the state of this environment")
    # JSON of other writers may hold NaN, which range checks miss. The teacher checks its own state.
    _check_finite({name: part for name, part in state.items() if name != "teacher"}, "state")
    restored = convert(dict(state), State, "state")
    # The same strata with another order or direction fit the file's form, but its posterior means something else.
    if restored.directions not in ("", _describe_directions(space)):
        said = f"state: problems got harder by {restored.directions:.80}, now by {_describe_directions(space):.80}"
        raise InputError(f"{said}; {REMEDY}")
    designs = [restored.design, *(one.design for one in restored.history), restored.standing or restored.design]
    for design in designs:
        check_design(design, space, "state: design")
        if design.version < 0:
            raise InputError(f"state: design: version is {design.version}; give a whole number, at least 0")
    for seen in restored.seen:
        check_cell_of(seen, Seen, space, "state: seen")
        check_group(seen.group, 0, 0, space, "state: seen: group")
        check_tokens(seen.tokens, "state: seen: group")
    for part in (*restored.seen_cells.groups, *restored.seen_cells.tallies):
        check_cell_of(part, type(part), space, "state: seen_cells")
    check_observations(restored.seen_cells.observations, space, "state: seen_cells")
    check_observations([*restored.observations, *restored.tested], space, "state")
    for stratum in (
        stratum for one in restored.history for stratum in (*one.outcomes, *(one.delta or Delta({})).edits)
    ):
        if stratum not in space.ranks:
            raise InputError(f"state: history: {stratum!r:.60} is unknown; choose from {space.show_strata()}")
    if restored.forecast:
        check_forecast(restored.forecast, space)
    if set(restored.standing_digits) - set("01"):
        raise InputError(f"state: standing_valid is {restored.standing_digits!r:.60}; give a 0 or 1 for each problem")
    if restored.seed not in (None, seed):
        raise InputError(f"state: seed is {restored.seed}, but this engineer's is {seed}; make it with the same seed")
    return restored


def _check_finite(value: Any, where: str) -> None:
    """Raises InputError if JSON values hold a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where} is {value}; give a finite number")
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, part in parts:
        _check_finite(part, f"{where}: {name!s:.60}")


def note_groups(groups: Iterable[Group], design: Design, space: DesignSpace) -> list[Seen]:
    """Groups of a design or an earlier one as a state notes them. Raises InputError on an impossible group."""
    noted = []
    for group in list_parts("observe: groups", groups):
        if not isinstance(group, Group):
            raise InputError(f"observe: {group!r:.60} is not a Group; give environment.groups(problems, answers)")
        check_cell_of(group, Group, space, "group")
        check_group(group, group.version, design.version, space)
        check_tokens(group.tokens, f"group {group.key!r:.60}")
        plain = {name: getattr(group, name) for name in RolloutGroup.__struct_fields__ if name != "tokens"}
        noted.append(Seen(space.complete_cell(group.cell, design), RolloutGroup(**plain), group.tokens))
    return noted


def restore_teacher(teacher: Teacher, restored: State) -> None:
    """Restores a teacher. Raises InputError, and changes nothing, if the state belongs to another teacher."""
    kind, other = type(teacher).__name__, restored.teacher_type
    if other not in ("", kind):
        raise InputError(f"state: is of a {other:.60}, not a {kind}; load the state of the same teacher")
    before, state = teacher.state_dict(), restored.teacher
    try:
        teacher.load_state_dict(state)
        if state and not teacher.state_dict():
            raise ValueError(f"it has no {next(iter(state))}")
    except Exception as error:
        teacher.load_state_dict(before)
        said = one_line(f"{type(error).__name__}: {error}")
        raise InputError(f"state: teacher does not fit ({said:.80}); load the state of the same teacher") from error
