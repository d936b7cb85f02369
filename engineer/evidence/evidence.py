"""The evidence of one round: all that is known, and the parts that the context modules show the engineer."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import GroupStatistics
from lakewright.core_jax.support import convert
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Delta, Design, by_stratum
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.evidence.modules import FIELDS, Modules
from lakewright.engineer.random_generators import Key, numpy_rng
from lakewright.engineer.tally import Case, Drawn, Tally

VERSION = 3


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A design, and the outcomes by stratum on the held-out set of the policy trained on it.

    delta: what was then proposed. note: one line on its result, such as a projection, a refusal or a rollback.
    rolled_back: whether the round was rolled back because validation fell.
    """

    design: Design
    outcomes: dict[int | str, Tally]
    delta: Delta | None = None
    note: str = ""
    rolled_back: bool = msgspec.field(default=False, name="undone")

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "outcomes", by_stratum(self.outcomes))


class CellGroups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The training rollouts on the problems of one cell."""

    cell: Cell
    groups: GroupStatistics


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that is known after one round; what `show_evidence` leaves out is empty or None.

    given: values of givens that take turns in problems; empty means the design's. outcomes: by stratum, on the held-out
    set, or of the training answers if no others were given; by_trait: the same, by knob, on the problems that have the
    trait. history: earlier rounds, oldest first; the first of all is round 0, the design to begin with. summary: the
    teacher's own, of the round before. problems: how many the round trained on. groups, training: the round's rollouts
    by cell, and its settings and figures. forecast: what the difficulty model expects of cells, drawn or not. refusals:
    why earlier answers to this very evidence were refused, oldest first. weighed: whether tokens tell the worth of the
    forecast's cells, in a view.
    """

    version: int = VERSION
    design: Design
    given: dict[str, tuple[int | float, ...]] = {}
    outcomes: dict[int | str, Tally]
    by_trait: dict[int | str, dict[str, Tally]] = {}
    guideline: str = ""
    history: list[Round] = []
    summary: str = ""
    round: int | None
    rounds: int | None
    problems: int | None = None
    groups: list[CellGroups] = []
    training: dict[str, float | str] = {}
    statistics: dict[int | str, Drawn] = {}
    cases: list[Case] = []
    forecast: Forecast | None = None
    refusals: list[str] = []
    weighed: bool | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        for name in ("outcomes", "by_trait", "statistics"):
            msgspec.structs.force_setattr(self, name, by_stratum(getattr(self, name)))


def read_evidence(raw: Any, where: str, forms: Mapping[int, Callable[[Any], Any]] = MappingProxyType({})) -> Evidence:
    """Evidence from plain JSON values. forms: functions by version that convert earlier forms to the current one.

    Raises InputError naming `where`, also on evidence of a version that is not read.
    """
    found = raw.get("version") if isinstance(raw, dict) else None
    if found == VERSION:
        return convert(raw, Evidence, where)
    if isinstance(found, int) and found in forms:
        return convert(forms[found](raw), Evidence, where)
    read = " and ".join(map(str, (*forms, VERSION)))
    said = f"{where}: evidence of version {found!r:.20}, this version reads {read}"
    raise InputError(f"{said}; use the version that wrote it, or run the stage again")


def show_evidence(evidence: Evidence, modules: Modules, key: Key) -> Evidence:
    """The evidence that `modules` switch on, the rest being empty or None. The key, consumed, shuffles if asked for.

    With `failures` off no outcome is shown anywhere, and the history holds designs and edits alone. Refusals are always
    shown. Raises InputError if there is one stratum alone and its outcomes are to be shuffled.
    """
    if modules.shuffled:
        evidence = _shuffle_strata(evidence, key)
    shown: dict[str, Any] = {"history": evidence.history if modules.default_in_history else evidence.history[1:]}
    if not modules.failures:
        hidden = {"outcomes": {}, "rolled_back": False, "note": ""}
        shown["history"] = [msgspec.structs.replace(old, **hidden) for old in shown["history"]]
    shown["weighed"] = modules.worth or msgspec.UNSET
    for module, without in FIELDS.items():
        shown |= {} if getattr(modules, module) else without
    return msgspec.structs.replace(evidence, **shown)


def _shuffle_strata(evidence: Evidence, key: Key) -> Evidence:
    """Every stratum shows the figures of another: all shifted by the same random number of places, in all rounds."""
    strata = sorted(evidence.design.strata, key=lambda stratum: (isinstance(stratum, str), stratum))
    if len(strata) < 2:
        raise InputError(f"evidence: {strata[0]} alone cannot be shuffled; use a design with at least two strata")
    shift = int(numpy_rng(key).integers(1, len(strata)))
    return exchange_strata(evidence, dict(zip(strata, strata[shift:] + strata[:shift], strict=True)))


def exchange_strata(evidence: Evidence, other: Mapping[Stratum, Stratum]) -> Evidence:
    """The evidence in which all figures of a stratum, in all rounds, appear under `other[stratum]`.

    other: a permutation of some strata. Designs stay, and cases are left out, as a problem shows its own stratum.
    """

    def move_strata(of: Mapping[Stratum, Any]) -> dict[Stratum, Any]:
        return {other.get(stratum, stratum): value for stratum, value in of.items()}

    def move_record(record: Any) -> Any:
        cell = record.cell._replace(stratum=other.get(record.cell.stratum, record.cell.stratum))
        return msgspec.structs.replace(record, cell=cell)

    forecast = evidence.forecast
    return msgspec.structs.replace(
        evidence,
        outcomes=move_strata(evidence.outcomes),
        by_trait=move_strata(evidence.by_trait),
        history=[msgspec.structs.replace(old, outcomes=move_strata(old.outcomes)) for old in evidence.history],
        groups=[move_record(cell) for cell in evidence.groups],
        statistics=move_strata(evidence.statistics),
        cases=[],
        forecast=forecast and msgspec.structs.replace(forecast, grid=[move_record(part) for part in forecast.grid]),
    )
