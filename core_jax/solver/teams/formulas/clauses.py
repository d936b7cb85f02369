"""Clauses of a formula, written by compiled code: in Python they took longer than the solver does.

Each function that writes returns the number of its clauses. It is called twice, with no room for clauses to count them,
then with room for all. In all of them:

steps: int64 [N, 5], the cell that each move leads to, -1 without a cell. starts, goals: int64 [K], cells. at: int64
[K, T + 1, N], the variables of agents in cells; home: int64 [K, T + 1], for agents on their goals for good; 0 without a
variable. clauses: int64 [C, L], written here, L literals each.
"""

from typing import Annotated

import numba
import numpy as np

from lakewright.core_jax.solver.teams.formulas.puzzle import Steps
from lakewright.core_jax.solver.teams.host_search.workspace import Numbers
from lakewright.core_jax.support.compiled_code import compiled, compiled_within

At = Annotated[np.ndarray, numba.int64[:, :, ::1]]
Home = Annotated[np.ndarray, numba.int64[:, ::1]]
Clauses = Annotated[np.ndarray, numba.int64[:, ::1]]
WAIT = 4


@compiled
def number_variables(steps: Steps, starts: Numbers, distance: Home, latest: Numbers, at: At, home: Home) -> int:
    """Numbers the variables from 1 on, leaves 0 elsewhere, and returns their number.

    Args:
        steps, starts: as above.
        distance: int64 [K, N], of each cell to the agent's goal.
        latest: int64 [K], the step by which each agent must be home.
        at: written for the cells where an agent can be at a step before it is home, and still get home by its latest
            step.
        home: written from the distance of an agent's start on.
    """
    count = 0
    # Step by step: a cell is reached from itself or a neighbour that has a variable one step before. It gets one only
    # if the goal can still be reached in time, so both ends prune.
    for agent in range(len(starts)):
        for time in range(latest[agent]):
            for cell in range(len(steps)):
                reached = cell == starts[agent] if time == 0 else False
                if time > 0:
                    for move in range(WAIT + 1):
                        before = steps[cell, move]
                        reached = reached or (before >= 0 and at[agent, time - 1, before] > 0)
                if reached and time + distance[agent, cell] <= latest[agent]:
                    count += 1
                    at[agent, time, cell] = count
    # No agent is home sooner than its distance allows.
    for agent in range(len(starts)):
        for time in range(distance[agent, starts[agent]], home.shape[1]):
            count += 1
            home[agent, time] = count
    return count


@compiled
def write_steps(steps: Steps, goals: Numbers, at: At, home: Home, clauses: Clauses) -> int:
    """An agent in a cell is next to it, there, or home a step later: seven literals each, the first negative.

    Args: steps, goals, at, home, clauses: see the top of the file.
    """
    count = 0
    for agent in range(len(goals)):
        for time in range(at.shape[1] - 1):
            for cell in range(len(steps)):
                now = at[agent, time, cell]
                if now > 0:
                    if len(clauses):
                        clause = clauses[count]
                        # Literals that stay unused repeat the first, which changes no clause.
                        clause[:] = -now
                        for move in range(WAIT + 1):
                            there = steps[cell, move]
                            if there >= 0 and at[agent, time + 1, there] > 0:
                                clause[1 + move] = at[agent, time + 1, there]
                            if there == goals[agent] and move < WAIT and home[agent, time + 1] > 0:
                                clause[6] = home[agent, time + 1]
                    count += 1
    return count


@compiled
def write_meetings(goals: Numbers, at: At, home: Home, clauses: Clauses) -> int:
    """No two agents are in a cell at once: two literals each.

    Args: goals, at, home, clauses: see the top of the file.
    """
    count = 0
    # Each of the two passes through the cell or is home there. They have different goals, so not both are home.
    for one in range(len(goals)):
        for two in range(one + 1, len(goals)):
            for time in range(at.shape[1]):
                for cell in range(at.shape[2]):
                    first, second = at[one, time, cell], at[two, time, cell]
                    if first > 0 and second > 0:
                        count = _write_two(clauses, count, -first, -second)
                first, second = at[one, time, goals[two]], home[two, time]
                if first > 0 and second > 0:
                    count = _write_two(clauses, count, -first, -second)
                first, second = home[one, time], at[two, time, goals[one]]
                if first > 0 and second > 0:
                    count = _write_two(clauses, count, -first, -second)
    return count


@compiled
def write_swaps(steps: Steps, goals: Numbers, at: At, home: Home, clauses: Clauses) -> int:
    """No agent moves to a cell from which another comes to its own: four literals each.

    Args: steps, goals, at, home, clauses: see the top of the file.
    """
    count = 0
    for one in range(len(goals)):
        for two in range(one + 1, len(goals)):
            for time in range(at.shape[1] - 1):
                for cell in range(len(steps)):
                    if at[one, time, cell] == 0:
                        continue
                    for move in range(WAIT):
                        there = steps[cell, move]
                        if there >= 0 and at[two, time, there] > 0:
                            count = _write_swap(goals, at, home, clauses, count, one, two, time, cell, there)
    return count


@compiled_within
def _write_swap(
    goals: Numbers,
    at: At,
    home: Home,
    clauses: Clauses,
    count: int,
    one: int,
    two: int,
    time: int,
    cell: int,
    there: int,
) -> int:
    """Writes the clauses that forbid one swap, for arrivals on goals or not.

    Args:
        goals, at, home, clauses: as above.
        count: number of clauses written before.
        one: the agent that moves from `cell` to `there`.
        two: the agent that moves from `there` to `cell`.
        time: the step before the swap.
        cell, there: the cells.
    """
    # Each of the two may pass through its new cell or be home there: up to four clauses.
    for arrives_home in range(2):
        arrives = home[one, time + 1] if arrives_home else at[one, time + 1, there]
        if arrives == 0 or (arrives_home and there != goals[one]):
            continue
        for takes_home in range(2):
            takes = home[two, time + 1] if takes_home else at[two, time + 1, cell]
            if takes == 0 or (takes_home and cell != goals[two]):
                continue
            if len(clauses):
                clauses[count, 0] = -at[one, time, cell]
                clauses[count, 1] = -at[two, time, there]
                clauses[count, 2] = -arrives
                clauses[count, 3] = -takes
            count += 1
    return count


@compiled
def write_no_waits(starts: Numbers, size: int, moving: int, at: At, clauses: Clauses) -> int:
    """Every move changes the colour of a cell: where `moving` holds, all are on cells of one colour at even steps.

    Args:
        starts, at, clauses: see the top of the file.
        size: cells on a side.
        moving: the variable that holds for plans without waits.
    """
    count = 0
    for agent in range(len(starts)):
        begin = starts[agent] // size + starts[agent] % size
        for time in range(at.shape[1]):
            for cell in range(at.shape[2]):
                if at[agent, time, cell] > 0 and (cell // size + cell % size + begin + time) % 2 == 1:
                    count = _write_two(clauses, count, -moving, -at[agent, time, cell])
    return count


@compiled
def write_home(goals: Numbers, at: At, home: Home, clauses: Clauses) -> int:
    """An agent that is home stays home, and is nowhere else: two literals each.

    Args: goals, at, home, clauses: see the top of the file.
    """
    count = 0
    for agent in range(len(goals)):
        for time in range(at.shape[1]):
            now = home[agent, time]
            if now == 0:
                continue
            if time + 1 < at.shape[1]:
                count = _write_two(clauses, count, -now, home[agent, time + 1])
            for cell in range(at.shape[2]):
                if at[agent, time, cell] > 0:
                    count = _write_two(clauses, count, -now, -at[agent, time, cell])
    return count


@compiled_within
def _write_two(clauses: Clauses, count: int, first: int, second: int) -> int:
    """Writes a clause of two literals, and returns the number of clauses."""
    if len(clauses):
        clauses[count, 0] = first
        clauses[count, 1] = second
    return count + 1
