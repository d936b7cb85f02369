"""What the warm-up teaches a model of tokens of the engineer's part: which evidence it reads, and whose answers."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from core_jax.support import one_of
from engineer.difficulty import Objective
from engineer.evidence import PRESETS, EvidenceSettings, Modules
from engineer.teachers import ProportionalTeacher, RulesTeacher

Rule = RulesTeacher | ProportionalTeacher


@dataclasses.dataclass(frozen=True)
class Lessons:
    """The rule whose answers are taught, and what the evidence of the examples shows."""

    rule: Rule
    kinds: Sequence[Modules]

    def include(self, shown: EvidenceSettings) -> bool:
        """Whether such evidence is among them; shuffled evidence looks like any other."""
        return _unshuffled(shown.chosen()) in map(_unshuffled, self.kinds)


class LessonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the warm-up teaches a model of tokens of the engineer's part."""

    rule: Literal["proportional", "rules"] = "proportional"
    """The teacher whose answers are taught, as it is where it seeks what boards are worth in this run."""
    presets: tuple[Annotated[str, one_of(PRESETS)], ...] = ()
    """The evidence presets that it learns to read; without any, the evidence of this run, which it learns sooner."""

    def __post_init__(self) -> None:
        self._kinds()

    def lessons(self, objective: Objective, shown: EvidenceSettings) -> Lessons:
        """Those of a run in which boards are worth what `objective` says and the engineer is shown `shown`."""
        rule = ProportionalTeacher(objective) if self.rule == "proportional" else RulesTeacher.seeking(objective)
        return Lessons(rule, self._kinds() or [shown.chosen()])

    def _kinds(self) -> list[Modules]:
        return [EvidenceSettings(name).chosen() for name in self.presets]


def _unshuffled(modules: Modules) -> Modules:
    return msgspec.structs.replace(modules, shuffled=False)
