"""Boards that the search leaves open, decided one by one by formulas and by floods of joint states.

Formulas first ask for bounds just above what is known. If those fail, or take long, and no plan is known, all
joint states are visited to find out whether one exists (`lakewright.core_jax.solver.teams.joint_states`): a formula
that cannot hold for that reason may take millions of conflicts to refute. If the optimum is far above its bound, the
agents have little room: then their joint states are few, and all of them are flooded.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from lakewright.core_jax.solver.teams.formulas.optimal_plans import (
    UNLIMITED,
    Conflicts,
    FormulaAnswer,
    find_cheapest_plan,
    find_fastest_plan,
)
from lakewright.core_jax.solver.teams.formulas.puzzle import NO_PATH, Puzzle
from lakewright.core_jax.solver.teams.joint_states import Flood, find_whether_solvable
from lakewright.core_jax.support.profiling import in_phase

WINDOW = 3  # bounds that formulas try before all joint states are visited
STATES = 1 << 22  # joint states of four or more agents that are visited to prove that no plan exists
# Conflicts, after which joint states are visited, and flooded if they have no more joint moves than those below.
PATIENCE = 1 << 12
JOINT_MOVES, JOINT_MOVES_OF_THREE = 1 << 26, 1 << 28
Plan = Callable[..., FormulaAnswer]


@dataclasses.dataclass(frozen=True)
class Decided:
    """The result of one board.

    agents: on the board. solvable: whether it has a plan, None if undecided. cheapest, fastest: plans of least cost and
    of least makespan, if any. flooded: whether joint states decided something. conflicts: spent by the formulas.
    """

    agents: int
    solvable: bool | None
    cheapest: FormulaAnswer | None
    fastest: FormulaAnswer | None
    flooded: bool
    conflicts: int


class HardBoard:
    """One board and the bounds that are known of it."""

    def __init__(self, puzzle: Puzzle, budget: int) -> None:
        """budget: conflicts of the solver in all; three agents are always decided, without a budget."""
        self._puzzle = puzzle
        self._three = len(puzzle.starts) == 3
        self._conflicts = Conflicts(UNLIMITED if self._three else budget)
        self._flooded = False

    def decide(self, cheapest: FormulaAnswer | int, fastest: FormulaAnswer | int) -> Decided:
        """Finds the plans of least cost and of least makespan; each is given, or a lower bound of it.

        A given plan proves that one exists; without one the makespan is found first.
        """
        checked = isinstance(cheapest, FormulaAnswer) or isinstance(fastest, FormulaAnswer)
        if isinstance(fastest, int):
            found = self._find_optimum(find_fastest_plan, Flood.makespan, fastest, checked)
            if found is None:
                return self._make_decision(False)
            fastest = found
        if fastest.moves is None:
            return self._make_decision(None)
        if isinstance(cheapest, int):
            # At least one agent is not home sooner than the least makespan.
            alone = self._puzzle.alone
            lower = max(cheapest, int(alone.sum() + fastest.bound - alone.max()))
            found = self._find_optimum(find_cheapest_plan, Flood.sum_of_costs, lower, checked=True)
            assert found is not None, "it has a plan"
            cheapest = found
        return self._make_decision(None if cheapest.moves is None else True, cheapest, fastest)

    def _find_optimum(
        self, plan: Plan, flooded: Callable[..., tuple], lower: int, checked: bool
    ) -> FormulaAnswer | None:
        """An optimal plan, or a bound where the budget ends; None if no plan exists."""
        answer = self._ask_formulas(plan, lower, PATIENCE, lower + WINDOW)
        if answer.moves is not None:
            return answer
        limit = UNLIMITED if self._three else STATES
        if not checked and in_phase("reachability", find_whether_solvable, *self._list_cells(), limit) is False:
            self._flooded = True
            return None
        flood = Flood(*self._list_cells())
        few = flood.joint_moves <= (JOINT_MOVES_OF_THREE if self._three else JOINT_MOVES)
        answer = self._ask_formulas(plan, answer.bound, PATIENCE if few else UNLIMITED)
        if answer.moves is None and few:
            self._flooded = True
            answer = FormulaAnswer(*in_phase("floods of all joint states", flooded, flood))
        return answer

    def _ask_formulas(self, plan: Plan, lower: int, patience: int, most: int = UNLIMITED) -> FormulaAnswer:
        """The answer of formulas with bounds from `lower` to `most`."""
        allowed = Conflicts(min(self._conflicts.left, patience))
        answer = in_phase("formulas", plan, self._puzzle, lower, allowed, most=most)
        self._conflicts.take(allowed.spent)
        return answer

    def _list_cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps, starts and goals for joint states; no agent leaves the cells from which its goal can be reached."""
        puzzle = self._puzzle
        near: np.ndarray = np.any(puzzle.distance < NO_PATH, axis=0)
        steps = np.where(near[:, None] & near[puzzle.steps], puzzle.steps, -1)
        return steps, puzzle.starts, puzzle.goals

    def _make_decision(
        self, has_plan: bool | None, cheapest: FormulaAnswer | None = None, fastest: FormulaAnswer | None = None
    ) -> Decided:
        agents = len(self._puzzle.starts)
        return Decided(agents, has_plan, cheapest, fastest, self._flooded, self._conflicts.spent)
