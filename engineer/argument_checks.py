"""Checks of an engineer's input: arguments, groups, observations, tables and forecasts."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.results import RolloutGroup
from lakewright.engineer.cells import is_finite, list_parts
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.abilities import check_abilities
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import Observation
from lakewright.engineer.difficulty.regression import count_features
from lakewright.engineer.environment import Environment
from lakewright.engineer.number_limits import MOST_REWARD, is_reward, is_spread, is_whole_number
from lakewright.engineer.problems import Problem
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import check_cell_of
from lakewright.engineer.tally import Drawn, Tally

REMEDY = "load the state of this environment, or restore the settings of its space, such as ranked=True"
FIRST = 32  # problems that are compared with those held out
SAME = 8  # distinct ones that are equal; fewer may be chance


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
        said = f"{where} {group.key!r:.60}: failures are {group.failures!r:.80}"
        raise InputError(f"{said}; give the number of each of {', '.join(space.failures)}")
    counts = (group.completions, group.valid, version, *group.failures.values())
    if not all(map(is_whole_number, counts)) or not 0 <= group.valid <= group.completions or not group.completions:
        fault = f"{group.valid!r:.20} of {group.completions!r:.20} valid, version {version!r:.20}"
        raise InputError(f"{where} {group.key!r:.60}: {fault}; give whole numbers, of at least one answer")
    if sum(group.failures.values()) > group.completions - group.valid:
        said = f"{where} {group.key!r:.60}: {group.failures!r:.80} of {group.completions} answers, {group.valid} valid"
        raise InputError(f"{said}; give at most one failure for each answer that is not valid")
    if version > last:
        said = f"{where} {group.key!r:.60}: version {version}, but the latest design here has version {last}"
        raise InputError(f"{said}; after a restart call load_state_dict first")
    if not (is_reward(group.reward) and is_spread(group.deviation) and is_spread(group.spread)):
        fault = f"{where} {group.key!r:.60}: reward {group.reward!r:.20}"
        raise InputError(f"{fault}; give groups with finite rewards of at most {MOST_REWARD:g}")


def check_tokens(tokens: Any, where: str) -> None:
    """Raises InputError unless this is a length of answers, or unset."""
    if tokens is not msgspec.UNSET and not is_whole_number(tokens):
        raise InputError(f"{where}: tokens are {tokens!r:.20}; give a whole number, or leave it out")
