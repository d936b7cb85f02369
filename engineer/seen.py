"""Groups that an engineer has observed since its last round: one by one, or by cell if there are very many."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from lakewright.core_jax.results import GroupStatistics, RolloutGroup, statistics_of
from lakewright.engineer.cells import Cell, sort_cells
from lakewright.engineer.difficulty.model import Observation, observe_groups
from lakewright.engineer.evidence.evidence import CellGroups
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally, pool_tallies

MOST_SEEN = 1 << 13  # groups that are held one by one
MEANS = ("reward", "learnability", "advantage")


class Seen(msgspec.Struct, frozen=True):
    """A group that was observed, without its single rewards. tokens: the sum over the answers, if known."""

    cell: Cell
    group: RolloutGroup
    tokens: int | msgspec.UnsetType = msgspec.UNSET


class CellTally(msgspec.Struct, frozen=True):
    """The outcomes of the answers to problems of a cell."""

    cell: Cell
    tally: Tally


class SeenCells(msgspec.Struct, frozen=True):
    """Groups by cell: their statistics, what the difficulty model is fitted to, and the outcomes of their answers."""

    groups: list[CellGroups] = []
    observations: list[Observation] = []
    tallies: list[CellTally] = []

    @property
    def count(self) -> int:
        """The number of groups."""
        return sum(part.groups.groups for part in self.groups)


def fold_groups(seen: list[Seen], cells: SeenCells, space: DesignSpace) -> tuple[list[Seen], SeenCells]:
    """Both unchanged, or, if there are more than MOST_SEEN groups, no groups and the cells with all of them."""
    # Order and single rewards are lost, sums are not: a round of a million groups has the memory of its cells.
    return ([], add_groups(cells, seen, space)) if len(seen) > MOST_SEEN else (seen, cells)


def add_groups(cells: SeenCells, seen: Iterable[Seen], space: DesignSpace) -> SeenCells:
    """Groups by cell with further ones."""
    seen = list(seen)
    pairs = [(one.cell, one.group) for one in seen]
    tallies: dict[Cell, list[Tally]] = defaultdict(list)
    for part in cells.tallies:
        tallies[part.cell].append(part.tally)
    for cell, group in pairs:
        tallies[cell].append(count_answers(group, space))
    return SeenCells(
        pool_groups([*cells.groups, *group_by_cell(pairs)]),
        pool_observations([*cells.observations, *_observe_lengths(seen)]),
        [CellTally(cell, pool_tallies(parts)) for cell, parts in tallies.items()],
    )


def _observe_lengths(seen: Iterable[Seen]) -> list[Observation]:
    """Like `observe_groups`, with the tokens of the answers."""
    counts: dict[tuple[Cell, bool], list[int | msgspec.UnsetType]] = defaultdict(list)
    for one in seen:
        counts[one.cell, one.group.completions == 1].append(one.tokens)
    observed = observe_groups((one.cell, one.group) for one in seen)
    return [
        msgspec.structs.replace(one, tokens=_add_tokens(counts[one.cell, one.variance is None])) for one in observed
    ]


def _add_tokens(counts: Sequence[int | msgspec.UnsetType]) -> int | msgspec.UnsetType:
    """The sum; unset if a count is."""
    known = [count for count in counts if count is not msgspec.UNSET]
    return sum(known) if len(known) == len(counts) else msgspec.UNSET


def count_answers(group: RolloutGroup, space: DesignSpace) -> Tally:
    """The tally of a training group, each answer counting as a problem."""
    return Tally(group.completions, group.valid, {name: group.failures.get(name, 0) for name in space.failures})


def group_by_cell(groups: Iterable[tuple[Cell, RolloutGroup]]) -> list[CellGroups]:
    """The statistics of groups by cell, without givens, in order."""
    cells: dict[Cell, list[RolloutGroup]] = defaultdict(list)
    for cell, group in groups:
        cells[Cell(cell.stratum, cell.values)].append(group)
    return [CellGroups(cell, statistics_of(cells[cell])) for cell in sort_cells(cells)]


def pool_groups(parts: Iterable[CellGroups]) -> list[CellGroups]:
    """Statistics of groups with each cell as one."""
    cells: dict[Cell, list[GroupStatistics]] = defaultdict(list)
    for part in parts:
        cells[part.cell].append(part.groups)
    return [CellGroups(cell, _pool_statistics(cells[cell])) for cell in sort_cells(cells)]


def _pool_statistics(parts: Sequence[GroupStatistics]) -> GroupStatistics:
    if len(parts) == 1:
        return parts[0]
    counts = ("groups", "informative", "mixed", "completions", "valid")
    # Counts add up, means are weighted by groups: pooling cells in any order gives the statistics of all groups at
    # once.
    totals = {name: sum(getattr(part, name) for part in parts) for name in counts}
    means = {
        name: sum(part.groups * getattr(part, name) for part in parts) / max(1, totals["groups"]) for name in MEANS
    }
    return GroupStatistics(**totals, **means)


def pool_observations(parts: Iterable[Observation]) -> list[Observation]:
    """Observations of one age with each cell as one, and another one for its groups of one answer."""
    cells: dict[Cell, dict[bool, Observation]] = defaultdict(dict)
    for part in parts:
        mine, single = cells[part.cell], part.variance is None
        mine[single] = _add_observation(mine[single], part) if single in mine else part
    return [mine[single] for mine in map(cells.__getitem__, sort_cells(cells)) for single in sorted(mine)]


def _add_observation(one: Observation, other: Observation) -> Observation:
    # Unknown is not zero: one part without lengths makes the sum unknown. Both have a variance, or both have none.
    variance = None if one.variance is None or other.variance is None else one.variance + other.variance
    sums = {name: getattr(one, name) + getattr(other, name) for name in ("groups", "success", "answers")}
    graded = (one.graded or 0.0) + (other.graded or 0.0) or msgspec.UNSET
    return msgspec.structs.replace(
        one, **sums, variance=variance, tokens=_add_tokens((one.tokens, other.tokens)), graded=graded
    )
