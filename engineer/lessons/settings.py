"""What the warm-up teaches a model of tokens of the engineer's part: which evidence it reads, and whose answers."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import one_of
from lakewright.engineer.difficulty import DifficultySettings, Objective
from lakewright.engineer.evidence import PRESETS, EvidenceSettings, Modules
from lakewright.engineer.options import Power
from lakewright.engineer.teachers import ForecastTeacher, ProportionalTeacher, RulesTeacher

Rule = RulesTeacher | ProportionalTeacher | ForecastTeacher


@dataclasses.dataclass(frozen=True)
class Lessons:
    """The rule whose answers are taught, what the evidence of the examples shows, and how its forecasts are fitted."""

    rule: Rule
    kinds: Sequence[Modules]
    difficulty: DifficultySettings

    def include(self, shown: EvidenceSettings) -> bool:
        """Whether such evidence is among them; shuffled evidence looks like any other."""
        return _unshuffled(shown.chosen()) in map(_unshuffled, self.kinds)


class LessonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the warm-up teaches a model of tokens of the engineer's part."""

    rule: Literal["proportional", "rules", "forecast"] = "proportional"
    """The teacher whose answers are taught, as it is where it seeks what boards are worth in this run."""
    power: Power = 1.0
    """The power of that teacher, where it is proportional or forecast."""
    presets: tuple[Annotated[str, one_of(PRESETS)], ...] = ()
    """The evidence presets that it learns to read; without any, the evidence of this run, which it learns sooner."""

    def __post_init__(self) -> None:
        self._kinds()
        if self.rule == "rules" and self.power != 1:
            raise InputError(f"lessons: power is {self.power:g}, but the rule rules has none; drop it")

    def lessons(
        self, objective: Objective, shown: EvidenceSettings, difficulty: DifficultySettings | None = None
    ) -> Lessons:
        """Those of a run in which problems are worth what `objective` says and the engineer is shown `shown`.

        difficulty: how the run's forecasts are fitted.
        """
        how = msgspec.structs.replace(difficulty or DifficultySettings(), objective=objective)
        return Lessons(self._rule(objective), self._kinds() or [shown.chosen()], how)

    def check(self, shown: EvidenceSettings) -> None:
        """Raises InputError where the evidence of the examples shows something, but not what the rule follows."""
        kinds = self._kinds() or [shown.chosen()]
        outcomes, forecast = any(kind.failures for kind in kinds), any(kind.difficulty for kind in kinds)
        if self.rule == "forecast" and not forecast:
            raise InputError(
                "lessons: rule is forecast, but the evidence shows no forecast; give evidence.preset=forecast, or have "
                "it among lessons.presets"
            )
        if self.rule != "forecast" and forecast and not outcomes:
            raise InputError(
                f"lessons: rule is {self.rule}, but the evidence shows a forecast and no outcomes; give "
                "lessons.rule=forecast"
            )

    def _rule(self, objective: Objective) -> Rule:
        if self.rule == "rules":
            return RulesTeacher.seeking(objective)
        if self.rule == "proportional":
            return ProportionalTeacher(objective, self.power)
        return ForecastTeacher(self.power)

    def _kinds(self) -> list[Modules]:
        return [EvidenceSettings(name).chosen() for name in self.presets]


def _unshuffled(modules: Modules) -> Modules:
    return msgspec.structs.replace(modules, shuffled=False)
