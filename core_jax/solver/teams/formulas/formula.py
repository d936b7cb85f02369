"""The propositional formula of the plans in which no agent arrives later than some step.

Over the time-expanded board: who may be where at each step (Surynek, Felner, Stern & Boyarski 2016, "Efficient SAT
approach to multi-agent path finding under the sum of costs objective"). It has only the cells from which an agent
still arrives in time.
"""

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from pysat.card import ITotalizer
from pysat.solvers import Solver
from pysolvers import glucose41_add_cl

from lakewright.core_jax.solver.teams.formulas import clauses as write
from lakewright.core_jax.solver.teams.formulas.puzzle import Puzzle
from lakewright.core_jax.types import PAD

SOLVER = "glucose4"
FEW = 256  # clauses that are handed to the solver at once
NO_ROOM = {width: np.zeros((0, width), np.int64) for width in (2, 4, 7)}


class Formula:
    """The formula of the plans that bring agent k home by step latest[k].

    Variables: `at`[k, t, c], agent k is in cell c at step t and has yet to reach its goal for good;
    `home`[k, t], it is on its goal from step t on. Zero is not a variable. An agent may be in several cells at once, as
    no other meets it in any of them.
    """

    def __init__(self, puzzle: Puzzle, latest: np.ndarray, late: int | None) -> None:
        """late: how late all agents together may be, counted for `at_most`; None if it does not matter."""
        self._puzzle = puzzle
        agents, cells = puzzle.distance.shape
        self._at = np.zeros((agents, int(latest.max()) + 1, cells), np.int64)
        self._home = np.zeros(self._at.shape[:2], np.int64)
        board = puzzle.steps, puzzle.starts, puzzle.distance
        self._moving = 1 + write.number_variables(*board, latest, self._at, self._home)
        self._solver = Solver(name=SOLVER)
        for some in self._list_clauses(latest, counts_costs=late is not None):
            self._add_clauses(some)
        self._late = [] if late is None else self._count_late(latest, late)

    @property
    def conflicts(self) -> int:
        """The number of conflicts the solver has met."""
        return self._solver.accum_stats()["conflicts"]

    def all_home(self, step: int, budget: int) -> bool | None:
        """Return True if a plan brings all agents home by that step; None after `budget` conflicts."""
        return self._solve_assuming(self._home[:, step].tolist(), budget)

    def at_most(self, late: int, moving: bool, budget: int) -> bool | None:
        """Return True if a plan costs no more than the single distances and `late`; None after `budget` conflicts.

        moving: only plans without waits count.
        """
        assumed = [self._moving] if moving else []
        return self._solve_assuming(assumed + ([-self._late[late]] if late < len(self._late) else []), budget)

    def plan(self) -> np.ndarray:
        """The plan that was found last: int8 [K, T]."""
        true = np.array([0, *self._solver.get_model()[: self._moving]]) > 0
        at, home = true[self._at], true[self._home]
        moves = np.full((len(at), at.shape[1] - 1), PAD, np.int8)
        for agent, goal in enumerate(self._puzzle.goals):
            cell = self._puzzle.starts[agent]
            arrival = int(np.argmax(home[agent]))
            for time in range(arrival):
                steps = self._puzzle.steps[cell]
                there = at[agent, time + 1] if time + 1 < arrival else np.arange(at.shape[2]) == goal
                moves[agent, time] = next(move for move, to in enumerate(steps) if to >= 0 and there[to])
                cell = steps[moves[agent, time]]
        return moves[:, : int(np.max(np.sum(moves != PAD, axis=1)))]

    def _solve_assuming(self, assumed: list[int], budget: int) -> bool | None:
        if budget < 1:
            return None
        self._solver.conf_budget(budget)
        # Never interrupted, but only this call leaves the interpreter to other threads.
        return self._solver.solve_limited(assumptions=assumed, expect_interrupt=True)

    def _add_clauses(self, clauses: np.ndarray) -> None:
        """Hands clauses [C, L] to the solver, past the Python around it, which takes twice as long for each."""
        solver = itertools.repeat(self._solver.solver.glucose)
        # A few at a time: thousands of lists at once set off the garbage collector, which costs more than they.
        for first in range(0, len(clauses), FEW):
            deque(map(glucose41_add_cl, solver, clauses[first : first + FEW].tolist()), maxlen=0)

    def _list_clauses(self, latest: np.ndarray, counts_costs: bool) -> Iterator[np.ndarray]:
        """Arrays of clauses of one length each, [C, L]."""
        steps, starts, goals = self._puzzle.steps, self._puzzle.starts, self._puzzle.goals
        agents = np.arange(len(goals))
        # An agent that starts on its goal may stay or go.
        begin = np.maximum(self._at[agents, 0, starts], self._home[:, 0])
        either = np.where(self._at[agents, 0, starts] > 0, self._at[agents, 0, starts], begin)
        yield self._home[agents, latest][:, None]
        yield np.stack([begin, either], axis=1)
        yield _write_clauses(7, write.write_steps, steps, goals, self._at, self._home)
        yield _write_clauses(2, write.write_home, goals, self._at, self._home)
        yield _write_clauses(2, write.write_meetings, goals, self._at, self._home)
        yield _write_clauses(4, write.write_swaps, steps, goals, self._at, self._home)
        yield _write_clauses(2, write.write_no_waits, starts, math.isqrt(len(steps)), self._moving, self._at)
        if counts_costs:
            yield np.array([*self._list_pair_costs()], np.int64).reshape(-1, 2)

    def _list_pair_costs(self) -> Iterator[tuple[int, int]]:
        """Two agents together are not home sooner than they would be on their own."""
        alone, last = self._puzzle.alone, self._home.shape[1]
        pairs = itertools.combinations(range(len(alone)), 2)
        for (one, two), excess in zip(pairs, self._puzzle.excess, strict=False):
            # They are `excess` late together at least. So if one is at most `late`, the other is not below the rest:
            # home[one, alone + late] excludes home[two, alone + excess - 1 - late].
            for late in range(int(excess)):
                first, second = alone[one] + late, alone[two] + int(excess) - 1 - late
                if max(first, second) < last:
                    yield -int(self._home[one, first]), -int(self._home[two, second])

    def _count_late(self, latest: np.ndarray, most: int) -> list[int]:
        """Literals: all agents together are more than s steps later than alone."""
        spans = zip(self._home, self._puzzle.alone, latest, strict=True)
        late = [-int(literal) for home, alone, last in spans for literal in home[alone:last]]
        if not late:
            return []
        counted = ITotalizer(late, ubound=most, top_id=self._moving)
        self._solver.append_formula(counted.cnf.clauses)
        literals = list(counted.rhs)
        counted.delete()
        return literals


def _write_clauses(width: int, function: Callable[..., int], *given: object) -> np.ndarray:
    """The clauses that a function of `clauses` writes: int64 [C, width]."""
    room = np.zeros((function(*given, NO_ROOM[width]), width), np.int64)
    if len(room):
        function(*given, room)
    return room
