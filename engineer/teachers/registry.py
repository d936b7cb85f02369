"""The teachers by name."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakewright.core_jax.errors import InputError
from lakewright.engineer.plugins import check_options, load_class

if TYPE_CHECKING:  # names are read without what teachers need
    from lakewright.engineer.difficulty.model import DifficultySettings
    from lakewright.engineer.proposal import Teacher
    from lakewright.engineer.space import DesignSpace
    from lakewright.engineer.teachers.models import Tools

ROOM = "lakewright.engineer.teachers"
TEACHERS = {
    "fixed": f"{ROOM}.controls:FixedTeacher",
    "static": f"{ROOM}.controls:StaticTeacher",
    "domain_randomisation": f"{ROOM}.controls:DomainRandomisationTeacher",
    "random": f"{ROOM}.controls:RandomTeacher",
    "rules": f"{ROOM}.rules:RulesTeacher",
    "proportional": f"{ROOM}.rules:ProportionalTeacher",
    "e2h_cosine": f"{ROOM}.e2h:CosineTeacher",
    "e2h_gaussian": f"{ROOM}.e2h:GaussianTeacher",
    "adarft": f"{ROOM}.success_levels:AdaRFTTeacher",
    "sec": f"{ROOM}.bandits:SecTeacher",
    "thompson": f"{ROOM}.bandits:ThompsonTeacher",
    "alp_gmm": f"{ROOM}.learning_progress:AlpGmmTeacher",
    "sfl": f"{ROOM}.bandits:SflTeacher",
    "rlve": f"{ROOM}.success_levels:RlveTeacher",
    "coaching": f"{ROOM}.success_levels:CoachingTeacher",
    "difficulty_pools": f"{ROOM}.difficulty_pools:DifficultyPoolsTeacher",
    "learning_progress": f"{ROOM}.learning_progress:LearningProgressTeacher",
    "dump": f"{ROOM}.bandits:DumpTeacher",
    "gain": f"{ROOM}.gain:GainTeacher",
    "difficulty": f"{ROOM}.difficulty:DifficultyTeacher",
    "forecast": f"{ROOM}.difficulty:ForecastTeacher",
    "saboteur": f"{ROOM}.controls:SaboteurTeacher",
    "matched_random": f"{ROOM}.models:match_random",
    "self": f"{ROOM}.models:ask_model",
    "self_trained": f"{ROOM}.models:sample_model",
    "base": f"{ROOM}.models:ask_model",
    "endpoint": f"{ROOM}.models:ask_model",
}
"""A new teacher is a file and a line here; other teachers are named `module:Class` or `FILE.py:Class`."""
DEFAULT_TEACHER = "gain"
"""Of an `Engineer` and a folder; a run has the teacher of its preset."""
MODELS = ("self", "self_trained", "base", "endpoint")
"""The current checkpoint, the same trained on its proposals, the warm-up's checkpoint, and a model behind a server."""
METHODS = ("propose", "state_dict", "load_state_dict")


def make_teacher(name: str, tools: "Tools | None" = None, options: Mapping[str, Any] | None = None) -> "Teacher":
    """The teacher of that name, its `options` being keyword arguments of its class.

    Raises InputError on an unknown name or option, naming the choices, and if a tool is missing.
    """
    checked = check_teacher(name, options or {})
    make = load_class(name, TEACHERS, "teacher", METHODS)
    if not _needs_tools(make):
        return make(**checked)
    from lakewright.engineer.teachers.models import Tools

    return make(tools or Tools(), **checked)


def choose_teacher(
    teacher: "str | Teacher",
    tools: "Tools",
    options: Mapping[str, Any] | None,
    space: "DesignSpace",
    rounds: int | None,
    difficulty: "DifficultySettings | None" = None,
) -> "Teacher":
    """A teacher, or the one of a name, that can work with a space.

    Args:
        teacher, space: the teacher or its name, and the design space.
        tools, options: arguments of a teacher that is given by name.
        rounds: how many redesigns there will be, if that is known.
        difficulty: settings of the difficulty model.

    Raises InputError as `make_teacher`, and if the object lacks a method, cannot work with the space or the model, or
    follows a schedule of unknown length.
    """
    from lakewright.engineer.proposal import check_space, save_state

    if isinstance(teacher, type):
        raise InputError(f"engineer: teacher is the class {teacher.__name__}; give an object, {teacher.__name__}()")
    if options and not isinstance(teacher, str):
        raise InputError(f"engineer: options {options!r:.60} are for a teacher given by name; pass them to its class")
    chosen = make_teacher(teacher, tools, options) if isinstance(teacher, str) else teacher
    if missing := [method for method in METHODS if not hasattr(chosen, method)]:
        raise InputError(f"engineer: teacher {teacher!r:.60} has no {missing[0]}; give a Teacher or its name")
    save_state(chosen)
    check_space(chosen, space)
    _check_model(teacher if isinstance(teacher, str) else type(chosen).__name__, chosen, difficulty)
    if rounds is None and getattr(chosen, "follows_schedule", False):
        raise InputError(f"engineer: teacher {teacher!r:.60} follows a schedule; give rounds, the number of redesigns")
    return chosen


def check_teacher(
    name: str,
    options: Mapping[str, Any],
    space: "DesignSpace | None" = None,
    difficulty: "DifficultySettings | None" = None,
) -> dict[str, Any]:
    """The options as the teacher takes them.

    Args:
        name, options: the teacher's name, and its options.
        space, difficulty: the design space and the settings of the difficulty model, if they are known.

    Raises InputError on an unknown teacher or option, and if the value is out of range, or if it cannot work with the
    space or the model.
    """
    make = load_class(name, TEACHERS, "teacher", METHODS)
    checked = check_options("teacher_options", name, make, options)
    _check_model(name, make, difficulty)
    if not _needs_tools(make):
        teacher = make(**checked)  # which knows what options go together
        if space is not None:
            from lakewright.engineer.proposal import check_space

            check_space(teacher, space)
    if name == "matched_random":
        match = checked.get("match", "rules")
        if match == name:
            raise InputError("teacher_options: match is matched_random; name another teacher")
        check_teacher(match, {}, space, difficulty)
    return checked


def _check_model(name: str, teacher: Any, difficulty: "DifficultySettings | None") -> None:
    """Raises InputError if a teacher, or its class, needs learning rates and the model has no rates."""
    if difficulty and difficulty.model == "regression" and getattr(teacher, "needs_rates", False):
        said = f"difficulty: model is regression, which has no learning rates for the teacher {name:.60}"
        raise InputError(f"{said}; choose abilities, or another teacher, such as difficulty")


def asks_model(name: str) -> bool:
    """Return True if a teacher may ask a model. Raises InputError on an unknown teacher."""
    return _needs_tools(load_class(name, TEACHERS, "teacher", METHODS))


def follows_schedule(name: str, options: Mapping[str, Any]) -> bool:
    """Return True if a teacher has to know how many redesigns there will be, because its class or the one says so
    that it is matched with.
    """
    names = [name, *([options.get("match", "rules")] if name == "matched_random" else [])]
    return any(getattr(load_class(one, TEACHERS, "teacher", METHODS), "follows_schedule", False) for one in names)


def _needs_tools(make: Any) -> bool:
    return "tools" in inspect.signature(make).parameters
