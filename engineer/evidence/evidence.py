"""The evidence of one round: all that is known, and what of it the context modules show the engineer."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import GroupStatistics, Outcomes
from lakewright.core_jax.support import convert
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.evidence.context_modules import Modules
from lakewright.engineer.random_generators import Key, numpy_rng

VERSION = 2
GUIDELINE = (
    "Edit locally: change a few ratios by a little and keep what works. Act on the failures you see. "
    "Put the data just below the frontier of competence, where some plans are valid and some are not. "
    "Do not maximise difficulty: a size on which nearly every plan fails, or nearly none, gives little signal and gets "
    "less data, but never abandon a size, least of all a large one. Where an earlier edit went too far, take some back."
)


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A config, and per map size the outcomes on the held-out set of the policy trained on it.

    delta: what was then proposed. note: one line on its result, such as a projection, a refusal or a rollback.
    undone: whether the round was taken back, as validation fell.
    """

    config: EnvConfig
    outcomes: dict[int, Outcomes]
    delta: ConfigDelta | None = None
    note: str = ""
    undone: bool = False


class CellGroups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The training rollouts on the boards of one size and hole ratio that force a wait, or that do not."""

    size: int
    hole_ratio: float
    forced: bool
    groups: GroupStatistics


class SizeStatistics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was really sampled for one size: means over its boards.

    acceptance: the share of attempts that gave a board; None where no fresh board was drawn.
    """

    boards: int
    hole_ratio: float
    wait_ratio: float
    makespan: float
    sum_of_costs: float
    acceptance: float | None


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A held-out board on which the plan failed: by which `Failure`, of which agent, at which step."""

    size: int
    grid: list[str]
    starts: list[tuple[int, int]]
    goals: list[tuple[int, int]]
    plan: list[str]
    failure: str
    agent: int
    step: int


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known after one round; what `shown` leaves out is empty or None.

    teams: numbers of agents that boards have in turn; without any, that of the config. outcomes: per map size, on the
    held-out set; forced: of those, on the boards that force a wait. history: earlier rounds, oldest first; the first of
    all is round 0, the default config. summary: the teacher's own, of the round before. boards: how many the
    round trained on. groups, training: the round's rollouts by cell, and its settings and figures. forecast: what the
    difficulty model expects of cells, drawn or not. refusals: why earlier answers to this very evidence were refused,
    oldest first.
    """

    version: int = VERSION
    config: EnvConfig
    teams: tuple[int, ...] = ()
    outcomes: dict[int, Outcomes]
    forced: dict[int, Outcomes] = {}
    guideline: str = GUIDELINE
    history: list[Round] = []
    summary: str = ""
    round: int | None
    rounds: int | None
    boards: int | None = None
    groups: list[CellGroups] = []
    training: dict[str, float | str] = {}
    statistics: dict[int, SizeStatistics] = {}
    cases: list[Case] = []
    forecast: Forecast | None = None
    refusals: list[str] = []


def read_evidence(raw: Any, where: str) -> Evidence:
    """Evidence from plain JSON values. Raises InputError naming `where`, also on that of another version."""
    found = raw.get("version") if isinstance(raw, dict) else None
    if found != VERSION:
        raise InputError(
            f"{where}: evidence of version {found!r:.20}, this version reads {VERSION}; "
            "use the version that wrote it, or run the stage again"
        )
    return convert(raw, Evidence, where)


def shown(evidence: Evidence, modules: Modules, key: Key) -> Evidence:
    """What `modules` switch on, and the rest empty or None. The key, consumed, shuffles where that is asked for.

    With `failures` off no outcome is shown anywhere, and the history holds configs and edits alone. Refusals are always
    shown. Raises InputError where there is one size alone and its outcomes are to be shuffled.
    """
    if modules.shuffled:
        evidence = _shuffled(evidence, key)
    return msgspec.structs.replace(
        evidence,
        outcomes=evidence.outcomes if modules.failures else {},
        forced=evidence.forced if modules.failures else {},
        guideline=evidence.guideline if modules.guideline else "",
        history=_history(evidence.history, modules),
        summary=evidence.summary if modules.self_summary else "",
        round=evidence.round if modules.bookkeeping else None,
        rounds=evidence.rounds if modules.bookkeeping else None,
        boards=evidence.boards if modules.bookkeeping else None,
        groups=evidence.groups if modules.rl_details else [],
        training=evidence.training if modules.rl_details else {},
        statistics=evidence.statistics if modules.statistics else {},
        cases=evidence.cases if modules.cases else [],
        forecast=evidence.forecast if modules.difficulty else None,
    )


def _history(past: Sequence[Round], modules: Modules) -> list[Round]:
    if not modules.history:
        return []
    chosen = past if modules.default_in_history else past[1:]
    return [
        old if modules.failures else msgspec.structs.replace(old, outcomes={}, undone=False, note="") for old in chosen
    ]


def _shuffled(evidence: Evidence, key: Key) -> Evidence:
    """Every size shows the figures of another: all are shifted by the same random number of places, in every round."""
    sizes = sorted(evidence.config.sizes)
    if len(sizes) < 2:
        raise InputError(f"evidence: only size {sizes[0]}, nothing to shuffle; take a config of two sizes or more")
    shift = int(numpy_rng(key).integers(1, len(sizes)))
    other = dict(zip(sizes, sizes[shift:] + sizes[:shift], strict=True))

    def moved(of: Mapping[int, Any]) -> dict[int, Any]:
        return {other.get(size, size): value for size, value in of.items()}

    def renamed(record: Any) -> Any:
        return msgspec.structs.replace(record, size=other.get(record.size, record.size))

    return msgspec.structs.replace(
        evidence,
        outcomes=moved(evidence.outcomes),
        forced=moved(evidence.forced),
        history=[msgspec.structs.replace(old, outcomes=moved(old.outcomes)) for old in evidence.history],
        groups=[renamed(cell) for cell in evidence.groups],
        statistics=moved(evidence.statistics),
        cases=[],  # a board shows its own size
        forecast=evidence.forecast and _elsewhere(evidence.forecast, other),
    )


def _elsewhere(forecast: Forecast, other: Mapping[int, int]) -> Forecast:
    """The forecast with the cells of every size shown for another."""
    grid = [
        msgspec.structs.replace(found, cell=found.cell._replace(size=other.get(found.cell.size, found.cell.size)))
        for found in forecast.grid
    ]
    return msgspec.structs.replace(forecast, grid=grid)
