"""The state of an engineer, as `Engineer.state_dict` gives it, and the checks of restored or observed values."""

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import Natural, convert
from lakewright.engineer.cells import MOST_REWARD, Stratum, is_finite, is_reward, is_spread, is_whole_number, list_parts
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty.abilities import check_abilities
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import Observation, count_features
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence.evidence import Evidence, Round
from lakewright.engineer.problems import Group, Problem
from lakewright.engineer.proposal import Teacher, save_state
from lakewright.engineer.samplers.supply import Sampling
from lakewright.engineer.seen import Seen, SeenCells
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import check_cell_of, check_design
from lakewright.engineer.steps import Decision
from lakewright.engineer.tally import Case, Drawn, Tally

STATE = 1  # the form of a state
REMEDY = "load the state of this environment, or restore the settings of its space, such as ranked=True"
FIRST = 32  # problems that are compared with those held out
SAME = 8  # distinct ones that are equal; fewer may be chance


class State(msgspec.Struct, forbid_unknown_fields=True):
    """All that an engineer knows.

    seen, seen_cells: the groups of this round, and those before them. observations, tested: for all rounds, with their
    ages: groups of training and of trials, and answers to held-out problems. standing: the design of the last round
    that stands and had an answer to each held-out problem. standing_valid: these answers, by the policy that training
    continues with; standing_problems: to which problems, as `order_answers` says, in earlier states often empty.
    teacher_type: the name of the teacher's class; directions: in which problems get harder; both are empty in states of
    older versions. sampling: what the sampler did so far.
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
    standing_valid: str = ""
    standing_problems: str = ""
    teacher_type: str = ""
    directions: str = ""
    sampling: Sampling = Sampling()


def advance_round(
    state: State, decision: Decision, delta: Delta | None, tested: tuple[str, str], *, weights: bool
) -> None:
    """Notes a decision in a state.

    Args:
        state: the state to change: it gets another design, and one more round.
        decision: the decision of this round.
        delta: the delta that was proposed, or preferred by the trial.
        tested: the held-out answers, from `order_answers`.
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
    if tested[0]:
        state.standing = state.standing if rolled_back else state.design
        if not (rolled_back and weights):
            state.standing_valid, state.standing_problems = tested
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


def write_state(state: State, teacher: Teacher, space: DesignSpace) -> dict[str, Any]:
    """JSON values of a state and its teacher's. Raises InputError if the state of the teacher is no JSON."""
    own = {"teacher": save_state(teacher), "teacher_type": type(teacher).__name__}
    parts = {**own, "directions": _list_directions(space)}
    return msgspec.to_builtins(msgspec.structs.replace(state, **parts), str_keys=True)


def _list_directions(space: DesignSpace) -> str:
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


def read_state(state: Any, space: DesignSpace) -> State:
    """The state from JSON values. Raises InputError if it is of another space or of another form."""
    check_form(state)
    if state.get("space") != space.signature():
        other, own = state.get("space"), space.signature()
        raise InputError(f"state: belongs to the space {other!r:.40}, not {own!r}; load the state of this environment")
    # JSON of other writers may hold NaN, which range checks miss. The teacher checks its own state.
    _check_finite({name: part for name, part in state.items() if name != "teacher"}, "state")
    restored = convert(dict(state), State, "state")
    # The same strata with another order or direction fit the file's form, but its posterior means something else.
    if restored.directions not in ("", _list_directions(space)):
        said = f"state: problems got harder by {restored.directions:.80}, now by {_list_directions(space):.80}"
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
            raise InputError(f"state: history: {stratum!r:.60} is unknown; choose from {space.list_strata()}")
    if restored.forecast:
        check_forecast(restored.forecast, space)
    if set(restored.standing_valid) - set("01"):
        raise InputError(f"state: standing_valid is {restored.standing_valid!r:.60}; give a 0 or 1 for each problem")
    return restored


def _check_finite(value: Any, where: str) -> None:
    """Raises InputError if JSON values hold a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where} is {value}; give a finite number")
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, part in parts:
        _check_finite(part, f"{where}: {name!s:.60}")


def check_forecast(forecast: Forecast, space: DesignSpace) -> None:
    """Raises InputError if a forecast is of another space, such as of the same strata with an order."""
    model, count = forecast.model, count_features(space, forecast.model.by_size)
    if model.abilities:
        check_abilities(model.abilities, space)
    elif len(model.weights) != count or [len(row) for row in model.covariance] != [count] * count:
        raise InputError(f"state: forecast: its model is not of {count} weights; {REMEDY}")
    for part in (*forecast.grid, *forecast.held_out):
        check_cell_of(part, type(part), space, "state: forecast")


def check_observations(observations: Iterable[Any], space: DesignSpace, where: str) -> None:
    """Raises InputError on anything but an `Observation` of a cell of the space, and on impossible numbers."""
    for one in observations:
        check_cell_of(one, Observation, space, f"{where}: observations")
        numbers = (one.success, one.variance or 0.0)
        check_tokens(one.tokens, f"{where}: observations")
        counts = isinstance(one.groups, int) and isinstance(one.age, int) and one.groups > 0 <= one.age
        if not counts or not all(map(is_finite, numbers)) or not -1e-6 <= one.success <= one.groups + 1e-6:
            raise InputError(f"{where}: {one!r:.200} is impossible; use the output of observe_groups")


def check_group(group: RolloutGroup, version: int, last: int, space: DesignSpace, where: str = "group") -> None:
    """Raises InputError on a group with impossible counts or rewards, or of a later design.

    Args:
        group: the group of answers.
        version: the version of its design.
        last: the latest version of the design.
        space: the design space, which names the failures.
        where: the place to name in messages.
    """
    if not isinstance(group.failures, Mapping) or not set(group.failures) <= set(space.failures):
        said = f"{where} {group.board!r:.60}: failures are {group.failures!r:.80}"
        raise InputError(f"{said}; give the number of each of {', '.join(space.failures)}")
    counts = (group.completions, group.valid, version, *group.failures.values())
    if not all(map(is_whole_number, counts)) or not 0 <= group.valid <= group.completions or not group.completions:
        found = f"{group.valid!r:.20} of {group.completions!r:.20} valid, version {version!r:.20}"
        raise InputError(f"{where} {group.board!r:.60}: {found}; give whole numbers, of at least one answer")
    if sum(group.failures.values()) > group.completions - group.valid:
        said = (
            f"{where} {group.board!r:.60}: {group.failures!r:.80} of {group.completions} answers, {group.valid} valid"
        )
        raise InputError(f"{said}; give at most one failure for each answer that is not valid")
    if version > last:
        said = f"{where} {group.board!r:.60}: version {version}, but the latest design here has version {last}"
        raise InputError(f"{said}; after a restart call load_state_dict first")
    if not (is_reward(group.reward) and is_spread(group.deviation) and is_spread(group.spread)):
        found = f"{where} {group.board!r:.60}: reward {group.reward!r:.20}"
        raise InputError(f"{found}; give groups with finite rewards of at most {MOST_REWARD:g}")


def note_groups(groups: Iterable[Group], design: Design, space: DesignSpace) -> list[Seen]:
    """Groups of a design or an earlier one as a state notes them. Raises InputError on an impossible group."""
    noted = []
    for group in list_parts("observe: groups", groups):
        if not isinstance(group, Group):
            raise InputError(f"observe: {group!r:.60} is not a Group; give environment.groups(problems, answers)")
        check_cell_of(group, Group, space, "group")
        check_group(group, group.version, design.version, space)
        check_tokens(group.tokens, f"group {group.board!r:.60}")
        plain = {name: getattr(group, name) for name in RolloutGroup.__struct_fields__ if name != "tokens"}
        noted.append(Seen(space.complete_cell(group.cell, design), RolloutGroup(**plain), group.tokens))
    return noted


def check_tokens(tokens: Any, where: str) -> None:
    """Raises InputError unless this is a length of answers, or unset."""
    if tokens is not msgspec.UNSET and not is_whole_number(tokens):
        raise InputError(f"{where}: tokens are {tokens!r:.20}; give a whole number, or leave it out")


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


def check_arguments(roll_out: Any, rounds: Any, seed: Any) -> None:
    """Raises InputError if an engineer cannot use these arguments."""
    if not (roll_out is None or callable(roll_out)):
        raise InputError(f"engineer: roll_out is {roll_out!r:.60}; give a function, see `RollOut`")
    if roll_out is not None:
        _check_arity(roll_out)
    whole = isinstance(seed, int) and (rounds is None or isinstance(rounds, int))
    if not whole or abs(seed) >= 2**63 or (rounds is not None and rounds < 1):
        raise InputError(f"engineer: seed {seed!r:.30}, rounds {rounds!r:.20}; give whole numbers, at least 1 round")


def _check_arity(roll_out: Any) -> None:
    try:
        signature = inspect.signature(roll_out)
    except ValueError:  # of a callable whose arguments nobody knows
        return
    try:
        signature.bind([], 1, 0)
    except TypeError as error:
        said = f"engineer: roll_out cannot be called with three arguments ({one_line(str(error))})"
        raise InputError(f"{said}; let it take (problems, samples, turn)") from error


def list_held_out(held_out: Sequence[Problem] | None, space: DesignSpace) -> list[Problem] | None:
    """The held-out problems, if any. Raises InputError if the list is empty, or one is of another space."""
    found = None if held_out is None else list(list_parts("engineer: held_out", held_out))
    if found == []:
        raise InputError("engineer: held_out is empty; give problems, or leave it out")
    for problem in found or ():
        check_cell_of(problem, Problem, space, "held_out")
    return found


def check_not_held_out(environment: Environment, design: Design, held_out: Sequence[Problem], seed: int) -> None:
    """Raises InputError if the seed reproduces the held-out problems: most of the first are equal, place by place.

    Args:
        environment, design: draw the problems.
        held_out: problems of another seed; may be empty.
        seed: seed of the problems.
    """
    problems = environment.draw(design, min(FIRST, len(held_out)), seed) if held_out else []
    same = {mine.key for mine, other in zip(problems, held_out, strict=False) if mine.key == other.key}
    if len(same) >= SAME and 2 * len(same) > len(problems):
        raise InputError(f"engineer: seed is {seed}, the seed of the held-out problems; choose another")


def check_kind(where: str, value: object, kind: type, *, needed: bool = False) -> None:
    """Raises InputError, naming `where`, if a value is not of type `kind`; needed: None is refused, too."""
    if not isinstance(value, kind) and (needed or value is not None):
        raise InputError(f"{where} is {value!r:.60}; give {kind.__name__}")


def check_tables(tallies: object, statistics: object, space: DesignSpace) -> None:
    """Raises InputError on anything but tables by stratum of tallies and of statistics."""
    for name, table, kind in (("tallies", tallies, Tally), ("statistics", statistics, Drawn)):
        if not isinstance(table, Mapping) or not all(isinstance(part, kind) for part in table.values()):
            raise InputError(f"redesign: {table!r:.60} is not a dict of {name}; give the result of Environment.{name}")
        if strange := [stratum for stratum in table if not space.has_stratum(stratum)]:
            what = "outcomes" if name == "tallies" else name
            raise InputError(f"{what}: {strange[0]!r:.60} is not a {space.words.stratum} of this environment")
        if name == "tallies" and (strange := [tally for tally in table.values() if not _can_be(tally)]):
            raise InputError(
                f"outcomes: {strange[0]!r:.80} is impossible; give whole numbers, at most one for each problem"
            )


def _can_be(tally: Tally) -> bool:
    """Return True if the counts of a tally are whole and not more than its problems."""
    counts = (tally.problems, tally.valid, *tally.failures.values(), *tally.grades.values())
    whole = all(type(count) is int and 0 <= count <= tally.problems for count in counts)
    return whole and all(map(_can_be, tally.traits.values()))
