"""The limits of a redesign: the legal region, and how far one round may go."""

import msgspec

from lakewright.core_jax.config import MAX_HOLE_RATIO
from lakewright.core_jax.errors import InputError


class GuardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The legal region, and how far one round may go. Raises InputError on a value outside its range."""

    floor: float = 0.05
    """Least data_ratio of a size, 0 to 1."""
    max_data_change: float = 0.15
    """Largest change of a data_ratio in one round, 0 to 1."""
    max_hole_change: float = 0.1
    """Largest change of a hole_ratio in one round, 0 to 1."""
    max_wait_change: float = 0.25
    """Largest change of a wait_ratio in one round, 0 to 1."""
    max_hole_ratio: float = MAX_HOLE_RATIO
    """Upper limit of every hole_ratio, 0 to 0.5."""
    max_wait_ratio: float = 1.0
    """Upper limit of every wait_ratio, 0 to 1."""
    widen: float = 0.0
    """How many times further a round may go where the difficulty model is certain, at least 0."""
    tries: int = 3
    """How often the engineer is asked before a refusal stands, at least 1."""

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise InputError(f"guard: tries is {self.tries}; choose at least 1")
        if not 0 <= self.widen <= 100:
            raise InputError(f"guard: widen is {self.widen:g}; choose 0 to 100")
        for name in self.__struct_fields__[:-2]:
            top = MAX_HOLE_RATIO if name == "max_hole_ratio" else 1.0
            if not 0 <= getattr(self, name) <= top:
                raise InputError(f"guard: {name} is {getattr(self, name):g}; choose 0 to {top:g}")


def widened(settings: GuardSettings, certainty: float) -> GuardSettings:
    """The settings with each largest change 1 + widen x certainty times as large, at most 1; certainty is 0 .. 1."""
    factor = 1 + settings.widen * certainty
    names = [name for name in settings.__struct_fields__ if name.endswith("_change")]
    return msgspec.structs.replace(settings, **{name: min(1.0, factor * getattr(settings, name)) for name in names})
