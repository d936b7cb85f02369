"""The steps of a redesign after the proposal: rivals, their trial, and what is next."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from lakewright.core_jax import results
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty import (
    Forecast,
    HeldOutCell,
    Worth,
    estimate_worth,
)
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import CellGroups
from lakewright.engineer.guard import Bounds, GuardSettings, GuardVerdict, judge
from lakewright.engineer.trial import Trial, TrialSettings, TrialWork, shortlist, try_beside_current

Source = Literal["proposal", "trial", "rollback", "current"]


class Next(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the next problems are drawn from, where that design comes from, and why.

    source: `proposal`, as the guard left it, where no trial was held; `trial`, the proposal that it chose; `rollback`,
    the design before a stage that was rolled back; `current`, which stays as nothing better was proposed. reasons: a
    line each of guard, trial or rollback.
    """

    design: Design
    source: Source
    reasons: list[str]


def decide_next(verdict: GuardVerdict, design: Design, trial: Trial | None = None) -> Next:
    """What the guard and the trial leave of a proposal to change `design`."""
    reasons = [verdict.summary()]
    if trial is not None:
        chosen = trial.candidates[trial.chosen].design
        return Next(chosen, "trial" if trial.chosen else "current", [*reasons, trial.summary()])
    return Next(verdict.design, "current" if verdict.design == design else "proposal", reasons)


def list_rivals(
    verdict: GuardVerdict, others: Iterable[Delta], design: Design, bounds: Bounds, guard: GuardSettings
) -> list[Design]:
    """The different designs that a proposal and its candidates lead to, the proposal first.

    verdict: on the proposal. others: the candidates. design: what they change, which is not among them. bounds, guard:
    as of `judge`.
    """
    rivals: list[Design] = []
    for found in (verdict.design, *(judge(design, delta, bounds, guard).design for delta in others)):
        if found != design and found not in rivals:
            rivals.append(found)
    return rivals


def choose_rivals(
    rivals: Sequence[Design], current: Design, environment: Environment, known: Forecast | None, trial: TrialSettings
) -> tuple[list[Design], list[Worth]]:
    """The rivals that are tried, and what the model expects of them beyond the current design, where it has a say."""
    if known is None or not trial.prior:
        return list(rivals[: trial.shortlist]), []
    cells, space = environment.cells(current), environment.space
    mixes = [environment.cells(rival) for rival in rivals]
    places = shortlist(known.model, cells, mixes, trial.shortlist, space)
    priors = [estimate_worth(known.model, mixes[place], space, cells) for place in places]
    return [rivals[place] for place in places], priors


def try_rivals(
    work: TrialWork,
    rivals: Sequence[Design],
    current: Design,
    known: Forecast | None,
    made: Design,
) -> Trial | None:
    """The trial of rivals against the current design; None where there are none.

    work: what is rolled out. known: the forecast. made: the proposal as it was made.
    """
    if not rivals:
        return None
    chosen, priors = choose_rivals(rivals, current, work.environment, known, work.settings)
    return try_beside_current(work, current, chosen, priors, chosen.index(made) if made in chosen else None)


def count_held_out(cells: Iterable[Cell], design: Design) -> list[HeldOutCell]:
    """The cells of held-out problems, of the strata that the design draws, with their shares."""
    counts = Counter(Cell(cell.stratum, cell.values) for cell in cells if cell.stratum in design.strata)
    order = sorted(counts.items(), key=lambda item: (isinstance(item[0].stratum, str), item[0]))
    return [HeldOutCell(cell, count / counts.total()) for cell, count in order]


def group_by_cell(groups: Iterable[tuple[Cell, results.Group]]) -> list[CellGroups]:
    """The statistics of groups by cell, without givens, in order."""
    cells: dict[Cell, list[results.Group]] = defaultdict(list)
    for cell, group in groups:
        cells[Cell(cell.stratum, cell.values)].append(group)
    order = sorted(cells.items(), key=lambda item: (isinstance(item[0].stratum, str), item[0]))
    return [CellGroups(cell, results.statistics_of(members)) for cell, members in order]
