"""Certified plans as the moves of games in words."""

from lakewright.core_jax.rows import Row
from lakewright.core_jax.terms import MOVES

WORDS = dict(zip(MOVES, ("UP", "DOWN", "LEFT", "RIGHT", "WAIT"), strict=True))


def joint_moves(row: Row) -> list[list[str]]:
    """The certified plan, a list of words for each step; agents that have arrived wait."""
    longest = max(map(len, row.plan))
    return [[WORDS[moves.ljust(longest, "W")[step]] for moves in row.plan] for step in range(longest)]
