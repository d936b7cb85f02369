"""Optimal plans of single hard boards by satisfiability, on the host.

Whether a team has a plan in which no agent comes home later than some step is a propositional formula over the
time-expanded board: who may be where at each step (Surynek, Felner, Stern & Boyarski 2016, "Efficient SAT approach to
multi-agent path finding under the sum of costs objective"). Only cells are in it from where an agent still gets home
in time. A solver that learns from conflicts proves within milliseconds that a bound is too low where a search among
joint moves wades through thousands of them; bounds are raised by one until the formula holds.
"""

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
from pysat.card import ITotalizer
from pysat.solvers import Solver

from core_jax.lake import offsets, side
from core_jax.solver.teams.search import BIG, Mode
from core_jax.types import PAD, WAIT

SOLVER = "glucose4"
FEW = 256  # clauses that are handed to the solver at once
WINDOW = 3  # bounds that one formula can be asked about; doubled for the next


@dataclasses.dataclass(frozen=True)
class Puzzle:
    """One board as the formula needs it, cells padded.

    starts, goals: int [K]. distance: int [K, N] to the own goal, as from
    `core_jax.solver.shortest_paths.disjoint_paths.distances`. pair_costs: int
    [K, K], what two agents pay together at least; only entries above the diagonal count.
    """

    starts: np.ndarray
    goals: np.ndarray
    distance: np.ndarray
    pair_costs: np.ndarray


@dataclasses.dataclass(frozen=True)
class Answer:
    """What was found out: a plan, int8 [K, T], that reaches `bound`, or none and a lower bound; and whether no plan
    without waits reaches it."""

    moves: np.ndarray | None
    bound: int
    waits: bool


def optimal_plan(puzzle: Puzzle, objective: Mode, lower: int, budget: int, most: int = BIG) -> Answer:
    """An optimal plan; none where it costs more than `most`, or `budget` conflicts of the solver are over.

    Args: objective, Mode.COSTS or Mode.MAKESPAN; lower, a lower bound of the optimum. Where there is no plan at all
    this goes on until `most` or the budget: see `core_jax.solver.teams.reachability`.
    """
    alone = puzzle.distance[np.arange(len(puzzle.starts)), puzzle.starts]
    base = int(alone.sum()) if objective == Mode.COSTS else int(alone.max())
    bound, window = max(lower, base), WINDOW
    while budget > 0 and bound <= most:
        slack = min(bound + window, most) - base
        latest = alone + slack if objective == Mode.COSTS else np.full_like(alone, base + slack)
        formula = Formula(puzzle, alone, latest, objective)
        while bound <= base + slack:
            holds = formula.holds(bound - base, False, budget)
            if holds is None:
                return Answer(None, bound, False)
            if holds:
                return _finish(formula, objective, bound, base, budget)
            bound += 1
        budget -= formula.conflicts
        window *= 2
    return Answer(None, bound, False)


def _finish(formula: "Formula", objective: Mode, bound: int, base: int, budget: int) -> Answer:
    """The plan of a formula that holds, without waits if there is one."""
    moves = formula.plan()
    if objective == Mode.MAKESPAN or not _waits(moves):
        return Answer(moves, bound, False)
    if (bound - base) % 2:  # every detour without a wait is even
        return Answer(moves, bound, True)
    holds = formula.holds(bound - base, True, budget)
    if holds is None:
        return Answer(None, bound, False)
    return Answer(formula.plan(), bound, False) if holds else Answer(moves, bound, True)


def _waits(moves: np.ndarray) -> bool:
    return bool(np.any(moves == WAIT))


class Formula:
    """Which plans bring agent k home by step latest[k].

    Variables: `at`[k, t, c], agent k is in cell c at step t and has yet to come home; `home`[k, t], it is on its goal
    from step t on. Zero is no variable. An agent may be in several cells at once, as nobody meets it in any of them.
    """

    def __init__(self, puzzle: Puzzle, alone: np.ndarray, latest: np.ndarray, objective: Mode) -> None:
        self._puzzle, self._alone, self._objective = puzzle, alone, objective
        live = _live(puzzle, latest)
        times = np.arange(live.shape[1])
        self._at = _numbered(live, 0)
        self._home = _numbered(times >= alone[:, None], int(live.sum()))
        self._moving = int(max(self._at.max(), self._home.max())) + 1
        self._solver = Solver(name=SOLVER)
        for clauses in self._clauses(latest):
            # A few at a time: thousands of lists at once set off the garbage collector, which costs more than they.
            for first in range(0, len(clauses), FEW):
                self._solver.append_formula(clauses[first : first + FEW].tolist())
        self._late: list[int] = []
        if objective == Mode.COSTS:
            self._count_late(int(np.max(latest - alone)))

    @property
    def conflicts(self) -> int:
        """How many conflicts the solver has met."""
        return self._solver.accum_stats()["conflicts"]

    def holds(self, slack: int, moving: bool, budget: int) -> bool | None:
        """Whether a plan stays within the bound of the single agents plus `slack`; None if the budget ends first.

        moving: only plans without waits count.
        """
        assumed = [self._moving] if moving else []
        if self._objective == Mode.MAKESPAN:
            assumed += self._home[:, int(self._alone.max()) + slack].tolist()
        elif slack < len(self._late):
            assumed += [-self._late[slack]]
        self._solver.conf_budget(max(budget, 1))
        # Nobody interrupts, but only so does the solver leave the interpreter to other threads.
        return self._solver.solve_limited(assumptions=assumed, expect_interrupt=True)

    def plan(self) -> np.ndarray:
        """The plan that was found last: int8 [K, T]."""
        true = np.array([0, *self._solver.get_model()[: self._moving]]) > 0
        steps = offsets(side(self._at.shape[2]))
        # Each agent's cells at each step; beyond the first and last one, so that a move never leaves the array.
        cells = np.pad(true[self._at] | true[self._at_home()], ((0, 0), (0, 0), (-steps[0], -steps[0])))
        moves = np.full((len(cells), self._at.shape[1] - 1), PAD, np.int8)
        for agent, home in enumerate(true[self._home]):
            cell = self._puzzle.starts[agent] - steps[0]
            for time in range(int(np.argmax(home))):
                moves[agent, time] = next(move for move, by in enumerate(steps) if cells[agent, time + 1, cell + by])
                cell += steps[moves[agent, time]]
        return moves[:, : int(np.max(np.sum(moves != PAD, axis=1)))]

    def _clauses(self, latest: np.ndarray) -> Iterator[np.ndarray]:
        """Arrays of clauses of one length each, [C, L]."""
        agents = range(len(latest))
        yield self._home[agents, latest][:, None]
        yield _without_zeros(np.stack([self._home[:, 0], self._at[agents, 0, self._puzzle.starts]], axis=1))
        yield from self._steps()
        yield from self._vertex_conflicts()
        yield from self._swap_conflicts()
        yield self._without_waits()
        if self._objective == Mode.COSTS:
            yield self._pair_costs()

    def _steps(self) -> Iterator[np.ndarray]:
        """Who is somewhere is next to it, there, or home a step later; who is home is so for good, and nowhere else."""
        at, home = self._at, self._home
        agent, time, cell = np.nonzero(at[:, :-1])
        now = at[agent, time, cell]
        nearby = [_shifted(at, by)[agent, time + 1, cell] for by in offsets(side(at.shape[2]))]
        distance = self._puzzle.distance[agent, cell]
        arrives = np.where(distance == 1, home[agent, time + 1], 0)
        yield _without_zeros(np.stack([-now, *nearby, arrives], axis=1))
        for first, second in ((home[:, :-1], home[:, 1:]), (home[:, :, None], -at)):
            first, second = np.broadcast_arrays(first, second)
            yield _clauses_where((first != 0) & (second != 0), -first, second)

    def _vertex_conflicts(self) -> Iterator[np.ndarray]:
        occupied = [self._at, self._at_home()]
        first, second = np.array(list(itertools.combinations(range(len(self._at)), 2))).T
        for some, others in itertools.product(occupied, occupied):
            one, other = some[first], others[second]
            yield _clauses_where((one > 0) & (other > 0), -one, -other)

    def _swap_conflicts(self) -> Iterator[np.ndarray]:
        """No agent moves to a cell from where another comes to its own."""
        come = [self._at, self._at_home()]
        first, second = np.array(list(itertools.combinations(range(len(self._at)), 2))).T
        for by in offsets(side(self._at.shape[2]))[:WAIT]:
            leaves, comes_from = self._at[first, :-1], _shifted(self._at, by)[second, :-1]
            leaving = (leaves > 0) & (comes_from > 0)
            for some, others in itertools.product(come, come):
                arrives, takes = _shifted(some, by)[first, 1:], others[second, 1:]
                yield _clauses_where(leaving & (arrives > 0) & (takes > 0), -leaves, -comes_from, -arrives, -takes)

    def _at_home(self) -> np.ndarray:
        """`home` where it is: [K, T + 1, N]."""
        cells = np.zeros_like(self._at)
        agents = np.arange(len(cells))
        cells[agents, :, self._puzzle.goals] = self._home
        return cells

    def _without_waits(self) -> np.ndarray:
        """Every move changes the colour of a cell: without waits agents are on cells of one colour at even steps."""
        size = side(self._at.shape[2])
        cells = np.arange(self._at.shape[2])
        colour = cells // (size + 1) + cells % (size + 1)
        odd = (colour - colour[self._puzzle.starts][:, None, None] + np.arange(self._at.shape[1])[:, None]) % 2 == 1
        waited = self._at[odd & (self._at > 0)]
        return np.stack([np.full_like(waited, -self._moving), -waited], axis=1)

    def _pair_costs(self) -> np.ndarray:
        """Two agents together are not home sooner than they would be on their own."""
        clauses = []
        for one, other in itertools.combinations(range(len(self._at)), 2):
            excess = int(self._puzzle.pair_costs[one, other] - self._alone[one] - self._alone[other])
            for late in range(excess):
                steps = self._alone[one] + late, self._alone[other] + excess - 1 - late
                if max(steps) < self._home.shape[1]:
                    clauses.append([-int(self._home[one, steps[0]]), -int(self._home[other, steps[1]])])
        return np.array(clauses, int).reshape(-1, 2)

    def _count_late(self, most: int) -> None:
        """`_late`[s]: all agents together are more than s steps later than alone."""
        late = [-int(lit) for agent, least in enumerate(self._alone) for lit in self._home[agent, least : least + most]]
        counted = ITotalizer(late, ubound=most, top_id=self._moving)
        self._solver.append_formula(counted.cnf.clauses)
        self._late = list(counted.rhs)
        counted.delete()


def _live(puzzle: Puzzle, latest: np.ndarray) -> np.ndarray:
    """Where each agent can be at each step before it is home by step `latest`: bool [K, T + 1, N]."""
    agents, count = puzzle.distance.shape
    reached = np.zeros((agents, int(latest.max()) + 1, count), bool)
    reached[np.arange(agents), 0, puzzle.starts] = True
    for time in range(reached.shape[1] - 1):
        now = reached[:, time]
        reached[:, time + 1] = np.logical_or.reduce([_shifted(now, by) for by in offsets(side(count))])
    times = np.arange(reached.shape[1])[:, None]
    in_time = (times + puzzle.distance[:, None] <= latest[:, None, None]) & (times < latest[:, None, None])
    return reached & in_time


def _shifted(cells: np.ndarray, by: int) -> np.ndarray:
    """out[..., c] = cells[..., c + by], zero where that is outside."""
    out = np.zeros_like(cells)
    if by > 0:
        out[..., :-by] = cells[..., by:]
    elif by < 0:
        out[..., -by:] = cells[..., :by]
    else:
        out[:] = cells
    return out


def _numbered(where: np.ndarray, first: int) -> np.ndarray:
    """Variables first + 1, first + 2, ... where so, else 0."""
    numbers = np.zeros(where.shape, np.int64)
    numbers[where] = first + 1 + np.arange(where.sum())
    return numbers


def _without_zeros(clauses: np.ndarray) -> np.ndarray:
    """Clauses of one length: for zero stands the first literal once more, or the last where that is zero."""
    other = np.where(clauses[:, :1] != 0, clauses[:, :1], clauses[:, -1:])
    return np.where(clauses != 0, clauses, other)


def _clauses_where(mask: np.ndarray, *literals: np.ndarray) -> np.ndarray:
    return np.stack([literal[mask] for literal in literals], axis=1)
