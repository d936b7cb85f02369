"""The teachers by name."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from core_jax.errors import InputError
from engineer.modules import EvidenceSettings
from engineer.teachers.base import Teacher
from engineer.teachers.fixed import FixedTeacher
from engineer.teachers.random import RandomTeacher
from engineer.teachers.rules import RulesTeacher
from engineer.teachers.self import Decode, SelfTeacher


@dataclasses.dataclass(frozen=True)
class Tools:
    """What teachers may need of the run: its evidence settings, and `decode`, by which the checkpoint is asked."""

    evidence: EvidenceSettings = dataclasses.field(default_factory=EvidenceSettings)
    decode: Decode | None = None


_UNPROMPTED: dict[str, Callable[..., Teacher]] = {"fixed": FixedTeacher, "random": RandomTeacher, "rules": RulesTeacher}
TEACHERS = (*_UNPROMPTED, "self")


def make_teacher(name: str, tools: Tools | None = None, options: Mapping[str, Any] | None = None) -> Teacher:
    """The teacher of that name, its `options` being keyword arguments of its class.

    Raises InputError on an unknown name or option, naming the choices, and where a tool is missing.
    """
    check_teacher(name, options or {})
    if name in _UNPROMPTED:
        return _UNPROMPTED[name](**(options or {}))
    return _self(tools or Tools())


def check_teacher(name: str, options: Mapping[str, Any]) -> None:
    """Raises InputError where there is no teacher of that name, or it knows no such option."""
    if name not in TEACHERS:
        raise InputError(f"teacher: {name!r:.60} is unknown; choose from {', '.join(TEACHERS)}")
    known = list(inspect.signature(_UNPROMPTED[name]).parameters) if name in _UNPROMPTED else []
    if unknown := [option for option in options if option not in known]:
        raise InputError(
            f"teacher_options: {unknown[0]!r:.60} is unknown to {name}; choose from {', '.join(known) or 'none'}"
        )


def _self(tools: Tools) -> Teacher:
    if tools.decode is None:
        raise InputError("teacher: self has no model to ask; give a decode function")
    return SelfTeacher(tools.decode, tools.evidence)
