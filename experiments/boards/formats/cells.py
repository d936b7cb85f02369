"""Checks that all formats share: where agents may stand, and what moves lead from cell to cell."""

import itertools
from collections.abc import Sequence
from typing import TypeAlias

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.types import DELTAS, MOVES

Square: TypeAlias = tuple[int, int]  # (row, column)
_MOVE_OF = dict(zip(DELTAS, MOVES, strict=True))


def check_agents(grid: Sequence[str], starts: Sequence[Square], goals: Sequence[Square], place: str) -> None:
    """Raises InputError if an agent starts or ends off the board, in a hole, or in another's cell.

    Args:
        grid: The rows of the board, `.` and `H`.
        starts: The cell of each agent.
        goals: The goal of each agent.
        place: The file and the line for the message.
    """
    for name, cells in (("start", starts), ("goal", goals)):
        taken: dict[Square, int] = {}
        for agent, (row, column) in enumerate(cells):
            shown = f"{place}: the {name} of agent {agent} is x={column}, y={row}"
            if not (0 <= row < len(grid) and 0 <= column < len(grid)):
                raise InputError(f"{shown}, off the {len(grid)}x{len(grid)} map; x is the column, counted from 0")
            if grid[row][column] != ".":
                raise InputError(f"{shown}, a blocked cell; choose a free one")
            if (row, column) in taken:
                remedy = f"give each its own cell, or take the first {agent} by --agents {agent}"
                raise InputError(f"{shown}, also the cell of agent {taken[row, column]}; {remedy}")
            taken[row, column] = agent


def pad_to_square(lines: Sequence[str]) -> list[str]:
    """The rows of a rectangle, `.` and `H`, as a square's: with holes to the right, or lines of them below.

    Nobody can enter what is added, so plans, optima and their certificates are the rectangle's.
    """
    side = max(len(lines), *map(len, lines))
    return [line.ljust(side, "H") for line in lines] + ["H" * side] * (side - len(lines))


def path_of(start: Square, moves: str) -> list[Square]:
    """The cells of an agent from its start on, one more than its moves."""
    path = [start]
    for move in moves:
        row, column = DELTAS[MOVES.index(move)]
        path.append((path[-1][0] + row, path[-1][1] + column))
    return path


def write_moves(path: Sequence[Square], place: str) -> str:
    """The moves of a path, without the waits at its end. Raises InputError if a step is longer than one cell."""
    moves = []
    for time, (here, there) in enumerate(itertools.pairwise(path)):
        move = _MOVE_OF.get((there[0] - here[0], there[1] - here[1]))
        if move is None:
            step = f"from ({here[1]},{here[0]}) to ({there[1]},{there[0]})"
            raise InputError(f"{place}: a step {step} at time {time}; a step goes to a neighbouring cell or stays")
        moves.append(move)
    return "".join(moves).rstrip("W")
