"""The compact form of the `text` codec: a few short lines, for small language models that are trained on them.

    4x4 H11,13,32
    0: right from 20
    1: down left from 01

is a 4x4 lake with holes at (1, 1), (1, 3) and (3, 2). Agent 0 starts at (2, 0), and its goal is one cell to the right;
the goal of agent 1 is where `down left` would lead from (0, 1). So a goal is named by its offset, first the rows, then
the columns, which a small model can copy; holes and other agents may forbid that way. Answers are those of the codec's
full form, in lower case, as most tokenizers have the words of moves as one token each only so.
"""

import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.types import DOWN, LEFT, RIGHT, UP, Board
from lakewright.policy.codecs.text_prompt import MOVE_WORDS

SYSTEM = "Plan moves."
LARGEST = 10  # cells are named by two digits


def encode_compact_prompt(board: Board) -> str:
    """The lines of one board of numpy arrays. Raises InputError on a board larger than 10x10."""
    size = board.holes.shape[0]
    if size > LARGEST:
        raise InputError(f"a board is {size}x{size}, compact prompts are for at most {LARGEST}x{LARGEST}; leave it out")
    starts, goals = np.asarray(board.starts).tolist(), np.asarray(board.goals).tolist()
    holes = ",".join(map(_cell, np.argwhere(board.holes).tolist()))
    ways = (
        f"{agent}: {_offset(start, goal)} from {_cell(start)}"
        for agent, (start, goal) in enumerate(zip(starts, goals, strict=True))
    )
    return "\n".join([f"{size}x{size}" + f" H{holes}" * bool(holes), *ways])


def _cell(cell: list[int]) -> str:
    return f"{cell[0]}{cell[1]}"


def _offset(start: list[int], goal: list[int]) -> str:
    """The moves that lead to a goal where nothing is in the way; `here` where there are none."""
    rows, columns = (there - here for here, there in zip(start, goal, strict=True))
    moves = [*[DOWN if rows > 0 else UP] * abs(rows), *[RIGHT if columns > 0 else LEFT] * abs(columns)]
    return " ".join(MOVE_WORDS[move].lower() for move in moves) or "here"
