"""Observations, to which the difficulty model is fitted: the groups of a cell, with their age in stages."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from lakewright.core_jax.results import Group
from lakewright.engineer.cells import Cell


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The groups rolled out on problems of one cell, which has its givens, `age` stages ago.

    success: the sum over the groups of their shares of valid answers. variance: the sum of the unbiased estimates of
    p (1 - p), k (G - k) / (G (G - 1)); None where a group is one answer, as on held-out problems.
    """

    cell: Cell
    groups: int
    success: float
    variance: float | None
    age: int = 0


def observe_held_out(answers: Iterable[tuple[Cell, bool]], age: int = 0) -> list[Observation]:
    """One answer each to problems of these cells, by cell, and whether it is valid."""
    outcomes: dict[Cell, list[int]] = defaultdict(list)
    for cell, valid in answers:
        outcomes[cell].append(int(valid))
    return [
        Observation(cell, len(found), sum(found), None, age)
        for cell, found in sorted(outcomes.items(), key=_make_sort_key)
    ]


def observe_groups(groups: Iterable[tuple[Cell, Group]], age: int = 0) -> list[Observation]:
    """The groups of at least two answers by the cells of their problems, in that order."""
    cells: dict[Cell, list[Group]] = defaultdict(list)
    for cell, group in groups:
        if group.completions > 1:
            cells[cell].append(group)
    return [_observe_cell(cell, members, age) for cell, members in sorted(cells.items(), key=_make_sort_key)]


def _make_sort_key(item: tuple[Cell, object]) -> tuple:
    """Cells in order, also where some strata are numbers and some are names."""
    cell = item[0]
    return isinstance(cell.stratum, str), cell.stratum, cell.values, cell.given


def _observe_cell(cell: Cell, groups: list[Group], age: int) -> Observation:
    success = sum(group.valid / group.completions for group in groups)
    variance = sum(
        group.valid * (group.completions - group.valid) / (group.completions * (group.completions - 1))
        for group in groups
    )
    return Observation(cell, len(groups), success, variance, age)
