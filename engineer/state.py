"""The state of an engineer, as `Engineer.state_dict` gives it, and the checks of what is restored or observed."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from lakewright.core_jax import results
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import Observation
from lakewright.engineer.evidence.evidence import Round
from lakewright.engineer.space import DesignSpace, check_design

STATE = 1  # the form of a state

Number = Annotated[int, msgspec.Meta(ge=0)]


class Seen(msgspec.Struct, frozen=True):
    """A group that was observed, without its single rewards."""

    cell: Cell
    group: results.Group


class State(msgspec.Struct, forbid_unknown_fields=True):
    """All that an engineer knows. standing: the design and the held-out answers of the last round that stands."""

    format: int
    space: str
    teacher: dict[str, Any]
    design: Design
    round: Number = 0
    drawn: Number = 0
    seen: list[Seen] = []
    observations: list[Observation] = []
    history: list[Round] = []
    forecast: Forecast | None = None
    summary: str = ""
    standing: Design | None = None
    standing_valid: str = ""


def read_state(state: Any, space: DesignSpace) -> State:
    """The state from JSON values. Raises InputError where it is of another space or of another form."""
    form = state.get("format") if isinstance(state, Mapping) else state
    if not isinstance(state, Mapping) or form != STATE:
        raise InputError(f"state: format is {form!r:.20}, this version reads {STATE}; use the version that wrote it")
    if state.get("space") != space.signature():
        other, own = state.get("space"), space.signature()
        raise InputError(f"state: is of the space {other!r:.40}, not {own!r}; load the state of this environment")
    restored = convert(dict(state), State, "state")
    for design in (restored.design, restored.standing or restored.design):
        check_design(design, space, "state: design")
    for seen in restored.seen:
        check_cell_of(seen, Seen, space, "state: seen")
    return restored


def check_cell_of(one: Any, kind: type[Any], space: DesignSpace, where: str) -> None:
    """Raises InputError where something is not of its kind, or not of a cell of the space.

    Args:
        one: a problem, a group, or what was seen.
        kind: what it must be.
        space: of the cell.
        where: for messages.
    """
    if not isinstance(one, kind):
        raise InputError(f"{where}: {one!r:.60} is no {kind.__name__}; leave it out")
    stratum, values, _ = one.cell
    numbers = all(isinstance(value, int | float) and math.isfinite(value) for value in values)
    if stratum not in space.ranks or len(values) != len(space.knobs) or not numbers:
        raise InputError(f"{where}: cell {tuple(one.cell)!r:.60} is none of this environment; leave it out")
