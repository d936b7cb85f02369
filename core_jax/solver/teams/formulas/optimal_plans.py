"""Optimal plans by formulas: bounds are raised by one until a formula holds.

A solver that learns from conflicts proves within milliseconds that a bound is too low, where a search would try
thousands of joint moves.
"""

import dataclasses

import numpy as np

from lakewright.core_jax.solver.teams.formulas.formula import Formula
from lakewright.core_jax.solver.teams.formulas.puzzle import Puzzle
from lakewright.core_jax.types import WAIT

UNLIMITED = 1 << 62  # more than any bound, and than the conflicts and joint states of any board
FIRST_WINDOW = 3  # bounds that the first formula can be asked about; each further one twice as many


class Conflicts:
    """The solver's conflicts that a board may spend, and has spent, on all its formulas."""

    def __init__(self, budget: int) -> None:
        self.left, self.spent = budget, 0

    def take(self, conflicts: int) -> None:
        """Counts conflicts that a formula took; `left` may fall below zero."""
        self.left -= conflicts
        self.spent += conflicts


@dataclasses.dataclass(frozen=True)
class FormulaAnswer:
    """The answer of formulas: `moves`, a plan int8 [K, T] that reaches `bound`, or None with a lower bound.

    waits: True if no plan without waits reaches the bound.
    """

    moves: np.ndarray | None
    bound: int
    waits: bool = False


def find_cheapest_plan(puzzle: Puzzle, lower: int, conflicts: Conflicts, most: int = UNLIMITED) -> FormulaAnswer:
    """A plan of least sum of costs; empty if it costs more than `most`, or no conflicts are left.

    Without any plan this continues until `most` or the conflicts end: see
    `lakewright.core_jax.solver.teams.joint_states`.

    Args:
        puzzle: the board.
        lower: a lower bound.
        conflicts: the conflicts that may be spent, counted here.
        most: the highest bound to try.
    """
    base = int(puzzle.alone.sum())
    bound, window = max(lower, base), FIRST_WINDOW
    while conflicts.left > 0 and bound <= most:
        late = min(bound + window - 1, most) - base
        # An agent may be as late as the bound allows once the others have what they need.
        formula = Formula(puzzle, puzzle.alone + np.maximum(late - puzzle.others, 0), late)
        try:
            while bound <= base + late:
                holds = formula.at_most(bound - base, False, conflicts.left - formula.conflicts)
                if holds is None:
                    return FormulaAnswer(None, bound)
                if holds:
                    return _avoid_waits(formula, bound, bound - base, conflicts)
                bound += 1
        finally:
            conflicts.take(formula.conflicts)
        window *= 2
    return FormulaAnswer(None, bound)


def _avoid_waits(formula: Formula, bound: int, late: int, conflicts: Conflicts) -> FormulaAnswer:
    """The plan of a formula that holds, without waits if there is one.

    Args:
        formula: a formula that holds.
        bound: the cost of its plan.
        late: that cost less the single distances.
        conflicts: the conflicts that may be spent.
    """
    moves = formula.plan()
    if not np.any(moves == WAIT):
        return FormulaAnswer(moves, bound)
    if late % 2:  # every detour without a wait is even
        return FormulaAnswer(moves, bound, True)
    holds = formula.at_most(late, True, conflicts.left - formula.conflicts)
    if holds is None:
        return FormulaAnswer(None, bound)
    return FormulaAnswer(formula.plan(), bound) if holds else FormulaAnswer(moves, bound, True)


def find_fastest_plan(puzzle: Puzzle, lower: int, conflicts: Conflicts, most: int = UNLIMITED) -> FormulaAnswer:
    """A plan of least makespan; empty if it takes more steps than `most`, or no conflicts are left.

    Args: puzzle, lower, conflicts, most: see `find_cheapest_plan`.
    """
    bound, window = max(lower, int(puzzle.alone.max())), FIRST_WINDOW
    while conflicts.left > 0 and bound <= most:
        last = min(bound + window - 1, most)
        formula = Formula(puzzle, np.full_like(puzzle.alone, last), None)
        try:
            while bound <= last:
                holds = formula.all_home(bound, conflicts.left - formula.conflicts)
                if holds is None:
                    return FormulaAnswer(None, bound)
                if holds:
                    return FormulaAnswer(formula.plan(), bound)
                bound += 1
        finally:
            conflicts.take(formula.conflicts)
        window *= 2
    return FormulaAnswer(None, bound)
