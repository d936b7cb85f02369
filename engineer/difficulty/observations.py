"""What the difficulty model is fitted to: the groups of a cell, with their age in stages."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from lakewright.core_jax.results import Group
from lakewright.core_jax.rows import Row
from lakewright.engineer.curriculum_cells import Cell


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The groups rolled out on boards of one cell and number of agents, `age` stages ago.

    success: the sum over the groups of their shares of valid plans. variance: the sum of the unbiased estimates of
    p (1 - p), k (G - k) / (G (G - 1)); None where a group is one plan, as on held-out boards.
    """

    cell: Cell
    agents: int
    groups: int
    success: float
    variance: float | None
    age: int = 0


def held_out_observations(rows: Sequence[Row], valid: str, age: int = 0) -> list[Observation]:
    """One plan each for these boards by cell and agents, `valid` having a digit for each board: 1 is a valid plan."""
    outcomes: dict[tuple[Cell, int], list[int]] = defaultdict(list)
    for row, digit in zip(rows, valid, strict=True):
        outcomes[cell_of(row), row.agents].append(int(digit))
    return [Observation(*key, len(plans), sum(plans), None, age) for key, plans in sorted(outcomes.items())]


def observations_of(groups: Iterable[tuple[Row, Group]], age: int = 0) -> list[Observation]:
    """The groups of at least two plans by cell and agents of their boards, in that order."""
    cells: dict[tuple[Cell, int], list[Group]] = defaultdict(list)
    for row, group in groups:
        if group.completions > 1:
            cells[cell_of(row), row.agents].append(group)
    return [_observation(*key, members, age) for key, members in sorted(cells.items())]


def cell_of(row: Row) -> Cell:
    """The cell that a board is of."""
    return Cell(row.size, float(row.hole_ratio or 0), bool(row.wait_required))


def _observation(cell: Cell, agents: int, groups: list[Group], age: int) -> Observation:
    success = sum(group.valid / group.completions for group in groups)
    variance = sum(
        group.valid * (group.completions - group.valid) / (group.completions * (group.completions - 1))
        for group in groups
    )
    return Observation(cell, agents, len(groups), success, variance, age)
