"""Numbers with a range and names from a registry, for fields of msgspec types that are read from external data."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from lakewright.core_jax.config import MAX_AGENTS, MAX_HOLE_RATIO

Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Weight = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Team = Annotated[int, Meta(ge=2, le=MAX_AGENTS)]  # agents of one board; one alone never has to wait
HoleRatio = Annotated[float, Meta(ge=0, le=MAX_HOLE_RATIO)]


def one_of(names: Iterable[str]) -> Meta:
    """Records which names a text may be, so that settings can be listed; it refuses none by itself."""
    return Meta(extra_json_schema={"enum": list(names)})
