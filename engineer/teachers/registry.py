"""The teachers by name."""

from collections.abc import Callable

from core_jax.errors import InputError
from engineer.teachers.base import Teacher
from engineer.teachers.fixed import FixedTeacher
from engineer.teachers.random import RandomTeacher
from engineer.teachers.rules import RulesTeacher
from engineer.teachers.self import Decode, SelfTeacher

_UNPROMPTED: dict[str, Callable[[], Teacher]] = {"fixed": FixedTeacher, "random": RandomTeacher, "rules": RulesTeacher}
TEACHERS = (*_UNPROMPTED, "self")


def make_teacher(name: str, decode: Decode | None = None) -> Teacher:
    """The teacher of that name; `self` needs `decode`. Raises InputError on an unknown name or a missing decode."""
    if name in _UNPROMPTED:
        return _UNPROMPTED[name]()
    if name != "self":
        raise InputError(f"teacher: {name!r:.60} is unknown; choose from {', '.join(TEACHERS)}")
    if decode is None:
        raise InputError("teacher: self has no model to ask; give a decode function")
    return SelfTeacher(decode)
