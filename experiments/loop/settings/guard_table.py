"""The guard of a run as its settings have it, with the names that the lake's knobs have always had there."""

import msgspec

from lakewright.core_jax.config import MAX_HOLE_RATIO
from lakewright.core_jax.errors import InputError
from lakewright.engineer.guard import GuardSettings


class GuardTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The legal region, and how far one round may go. Raises InputError on a value outside its range."""

    floor: float = 0.05
    """Least share of a stratum, of the lake the data_ratio of a size, 0 to 1."""
    max_data_change: float = 0.15
    """Largest change of a share in one round, 0 to 1."""
    max_hole_change: float = 0.1
    """Of the lake: largest change of a hole_ratio in one round, 0 to 1."""
    max_wait_change: float = 0.25
    """Of the lake: largest change of a wait_ratio in one round, 0 to 1."""
    max_hole_ratio: float = MAX_HOLE_RATIO
    """Of the lake: upper limit of every hole_ratio, 0 to 0.5."""
    max_wait_ratio: float = 1.0
    """Of the lake: upper limit of every wait_ratio, 0 to 1."""
    widen: float = 0.0
    """How many times further a round may go where the difficulty model is certain, at least 0."""
    tries: int = 3
    """How often the engineer is asked before a refusal stands, at least 1."""
    reach: dict[str, float] = {}
    """Of other environments: largest change of a knob in one round, by name; else that of the environment."""
    most: dict[str, float] = {}
    """Of other environments: upper limits of knobs, by name."""

    def __post_init__(self) -> None:
        for name in ("max_data_change", "max_hole_change", "max_wait_change", "max_hole_ratio", "max_wait_ratio"):
            top = MAX_HOLE_RATIO if name == "max_hole_ratio" else 1.0
            if not 0 <= getattr(self, name) <= top:
                raise InputError(f"guard: {name} is {getattr(self, name):g}; choose 0 to {top:g}")
        self.limits(lake=True)

    def limits(self, *, lake: bool) -> GuardSettings:
        """The settings of the guard. lake: whether the run is of the lake."""
        reach = {"data_ratio" if lake else "share": self.max_data_change, **self.reach}
        most = dict(self.most)
        if lake:
            reach |= {"hole_ratio": self.max_hole_change, "wait_ratio": self.max_wait_change}
            most |= {"hole_ratio": self.max_hole_ratio, "wait_ratio": self.max_wait_ratio}
        return GuardSettings(self.floor, reach, most, self.widen, self.tries)
