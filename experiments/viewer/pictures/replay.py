"""A plan played on its board: the cells of the agents at each time, and the ending as text."""

from typing import NamedTuple

from lakewright.core_jax.rows import Row
from lakewright.core_jax.types import DELTAS, MOVES
from lakewright.experiments.environments.lake import problem_of
from lakewright.experiments.loop.records.stage_records import Example

Cell = tuple[int, int]


class Ending(NamedTuple):
    """The time at which a plan is done or fails, whether it is valid, the agents concerned, and what happened."""

    step: int
    valid: bool
    agents: list[int]
    words: str


def make_example(row: Row, plan: list[str], failure: str = "none", agent: int = -1, step: int = -1) -> Example:
    """A plan for a board as a thing to show.

    Args:
        row: the board.
        plan: the moves of each agent.
        failure: `none` of a valid plan.
        agent, step: where it fails.
    """
    return Example(problem_of(row), "", failure, step, {"plan": plan, "agent": agent})


def find_positions(row: Row, plan: list[str], step: int) -> list[Cell]:
    """The cell of every agent after `step` moves. Who would leave the board, or jumps, or has no move left, stays."""
    return [_walk(row, agent, letters_of(plan, agent)[:step]) for agent in range(row.agents)]


def letters_of(plan: list[str], agent: int) -> str:
    """The moves of an agent; empty if the plan is too short for it."""
    return plan[agent] if agent < len(plan) else ""


def list_waiting(row: Row, plan: list[str], step: int) -> list[int]:
    """The agents whose last move before time `step` was a wait, except those who stay on their goals."""
    waits = [agent for agent in range(row.agents) if letters_of(plan, agent)[:step][step - 1 :] == "W"]
    return [agent for agent in waits if step <= find_arrival(row, plan, agent)]


def find_arrival(row: Row, plan: list[str], agent: int) -> int:
    """The time from which an agent is on its goal for good; the length of its moves if it never is."""
    letters = letters_of(plan, agent)
    parked = letters.rstrip("W")
    return len(parked if _walk(row, agent, letters) == row.goals[agent] else letters)


def describe_ending(example: Example) -> Ending:
    """The ending of a plan."""
    row, plan, failure = example.row, example.plan, example.failure
    if failure == "none":
        return _describe_arrival(row, plan)
    if failure == "parse_error" or not 0 <= example.agent < row.agents:
        return Ending(0, False, [], f"{failure.replace('_', ' ')}: no plan could be read from the answer.")
    whole = max(map(len, plan), default=0)
    step = whole if failure == "goal_not_reached" else max(0, min(example.place + 1, whole))
    agents = _list_concerned(row, plan, step, failure, example.agent)
    return Ending(step, False, agents, f"Fails at t = {step}: {_describe_failure(row, plan, step, failure, agents)}.")


def _walk(row: Row, agent: int, letters: str) -> Cell:
    line, column = row.starts[agent]
    for letter in letters:
        down, right = DELTAS[MOVES.index(letter)] if letter in MOVES else (0, 0)
        line = min(max(line + down, 0), row.size - 1)
        column = min(max(column + right, 0), row.size - 1)
    return line, column


def _describe_arrival(row: Row, plan: list[str]) -> Ending:
    step = max(find_arrival(row, plan, agent) for agent in range(row.agents))
    waits = sum(len(list_waiting(row, plan, time)) for time in range(1, step + 1))
    words = f"All agents are at their goals at t = {step}, after {waits} wait{'s' * (waits != 1)} on the way."
    return Ending(step, True, [], words)


def _list_concerned(row: Row, plan: list[str], step: int, failure: str, first: int) -> list[int]:
    before, after = find_positions(row, plan, step - 1), find_positions(row, plan, step)
    others = [agent for agent in range(row.agents) if agent != first]
    if failure == "vertex_conflict":
        return [first, *(agent for agent in others if after[agent] == after[first])]
    if failure == "swap_conflict":
        swapped = (after[first], before[first])
        return [first, *(agent for agent in others if (before[agent], after[agent]) == swapped)]
    return [first]


def _describe_failure(row: Row, plan: list[str], step: int, failure: str, agents: list[int]) -> str:
    names, cell = " and ".join(f"A{agent}" for agent in agents), find_positions(row, plan, step)[agents[0]]
    if failure == "illegal_move":
        jumps = letters_of(plan, agents[0])[step - 1 : step] not in MOVES
        return f"{names} jumps from {cell} to a cell that is not a neighbour" if jumps else f"{names} leaves the board"
    if failure == "goal_not_reached":
        return f"the plan is over and {names} is at {cell}, its goal at {row.goals[agents[0]]}"
    if failure == "swap_conflict":
        return f"{names} swap {find_positions(row, plan, step - 1)[agents[0]]} and {cell}"
    doing = {"hole": "steps into the hole", "vertex_conflict": "meet"}.get(failure, failure.replace("_", " "))
    return f"{names} {doing} at {cell}"
