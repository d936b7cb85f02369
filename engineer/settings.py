"""The settings of an engineer, also as a table of some, nested or by dotted names, and as old versions wrote them."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, convert
from lakewright.engineer.difficulty.model import DifficultySettings
from lakewright.engineer.evidence.modules import EvidenceSettings
from lakewright.engineer.guard import GuardSettings
from lakewright.engineer.rollback import RollbackSettings
from lakewright.engineer.samplers.registry import SamplerSettings
from lakewright.engineer.teachers.registry import asks_model
from lakewright.engineer.trial.signals import TrialSettings


class EngineerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of an engineer: its evidence, difficulty model, guard, trial and rollback."""

    evidence: EvidenceSettings = EvidenceSettings()
    """The evidence that a language model sees."""
    difficulty: DifficultySettings = DifficultySettings()
    """How the difficulty model is fitted."""
    guard: GuardSettings = GuardSettings()
    """The limits of a redesign."""
    trial: TrialSettings = TrialSettings()
    """How proposals are tried, if the policy can be rolled out."""
    # A trainer that knows nothing of the engineer keeps its weights; the closed loop, which restores them, says so.
    rollback: RollbackSettings = RollbackSettings(weights=False)
    """When a design that lowered validation is rolled back."""
    proposals: Count = 1
    """How many changes a teacher proposes, to be tried side by side."""
    sampler: SamplerSettings = SamplerSettings()
    """How individual problems of the design are chosen, by a sampler that keeps the shares of the strata."""


T = TypeVar("T", bound=EngineerSettings)


def read_settings(settings: Any, kind: type[T]) -> T:
    """Settings of a kind from such, or from a table of some, nested or by dotted names; None for the usual ones.

    Raises InputError if they do not fit.
    """
    if settings is None:
        return kind()
    where = "engineer: settings"
    raw = msgspec.to_builtins(settings, str_keys=True, enc_hook=repr)
    if isinstance(settings, EngineerSettings):
        kind = type(settings) if isinstance(settings, kind) else kind
    elif isinstance(settings, Mapping):
        raw = _nest_names(raw)
    else:
        raise InputError(f"{where} is {settings!r:.60}; give {kind.__name__}, or a table of some of them")
    return convert(raw, kind, where)


def find_unused_evidence(settings: EngineerSettings, teacher: str) -> str:
    """The line on settings of evidence that no model reads; else empty."""
    if settings.evidence == type(settings)().evidence or asks_model(teacher):
        return ""
    return f"evidence is for models, but teacher {teacher} asks no model; leave it out"


def read_used_settings(settings: Any, teacher: object, roll_out: object) -> EngineerSettings:
    """The settings of an engineer, as `read_settings`.

    Args:
        settings: settings, or a table of some.
        teacher: its name, or the object itself, which may read any evidence.
        roll_out: samples the policy; None if nothing does.

    Raises InputError, too, on what has no effect, if a user gave it in a table; structs may be shared by engineers.
    """
    known = read_settings(settings, EngineerSettings)
    if isinstance(settings, Mapping):
        unused = find_unused_evidence(known, teacher) if isinstance(teacher, str) else ""
        tried = [name for name in ("trial", "proposals") if getattr(known, name) != getattr(type(known)(), name)]
        if tried and roll_out is None:
            unused = f"{tried[0]} is for trials of proposals, but roll_out is missing; give roll_out, or leave it out"
        if unused:
            raise InputError(f"engineer: settings: {unused}")
    return known


def _nest_names(table: dict[str, Any]) -> dict[str, Any]:
    """A table in which a dotted name is a path: {"a.b": 1} is {"a": {"b": 1}}."""
    nested: dict[str, Any] = {}
    for name, value in table.items():
        first, _, rest = name.partition(".")
        part, known = _nest_names({rest: value}) if rest else value, nested.get(first)
        nested[first] = {**known, **part} if isinstance(known, dict) and isinstance(part, dict) else part
    return nested


def complete_settings(recorded: Any) -> Any:
    """JSON values that earlier versions recorded, completed by the settings that then held without a name.

    The settings of a model name it, a regression as all were, and trials might take any share of the answers.
    """
    if not isinstance(recorded, dict):
        return [complete_settings(part) for part in recorded] if isinstance(recorded, list) else recorded
    found = {name: complete_settings(part) for name, part in recorded.items()}
    known = found.get("difficulty")
    if isinstance(known, dict) and "decay" in known and "model" not in known:
        found["difficulty"] = {**known, "model": "regression"}
    tried = found.get("trial")
    if isinstance(tried, dict) and {"boards", "samples"} <= tried.keys() and "share" not in tried:
        found["trial"] = {**tried, "share": 0.0}
    return found
