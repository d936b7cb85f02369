"""Boards as prompts show them."""

import re

from lakewright.core_jax.types import Board
from lakewright.policy.codecs.text_prompt import GOALS, HOLE, STARTS
from tests.support.boards.sample_boards import drawing


def read_board(prompt: str) -> Board:
    """The board that the grid of a prompt shows, found by its letters alone."""
    lines = [line.split(" ") for line in prompt.splitlines() if re.fullmatch(r"\w( \w)+", line)]
    place = {letter: (r, c) for r, row in enumerate(lines) for c, letter in enumerate(row)}
    agents = sum(letter in place for letter in STARTS)
    starts, goals = ([place[letter] for letter in letters[:agents]] for letters in (STARTS, GOALS))
    return drawing(["".join("H" if letter == HOLE else "." for letter in row) for row in lines], starts, goals)
