"""Boards in the middle of an episode, as text and as pixels."""

import numpy as np

from lakewright.core_jax.errors import InputError

MOST_SIDE = 64  # cells
CELL = 24  # pixels of a cell's side
ICE, HOLE, LINE = (236, 244, 250), (44, 62, 80), (200, 214, 226)
AGENTS = (
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (230, 159, 0),
    (86, 180, 233),
    (138, 143, 148),
    (184, 168, 0),
)
MODES = ("ansi", "rgb_array")


def as_text(holes: np.ndarray, positions: np.ndarray, goals: np.ndarray) -> str:
    """A line for each row of the board: `.` ice, `H` hole, `a` the first agent, `A` its goal; agents hide goals."""
    letters = np.where(holes, "H", ".")
    for agent, (row, column) in enumerate(goals):
        letters[row, column] = chr(ord("A") + agent)
    for agent, (row, column) in enumerate(positions):
        letters[row, column] = chr(ord("a") + agent)
    return "\n".join("".join(line) for line in letters) + "\n"


def as_pixels(holes: np.ndarray, positions: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """uint8 [CELL n, CELL n, 3]: agents are discs, their goals frames of the same colour.

    Raises InputError if the board has more than MOST_SIDE cells a side.
    """
    if len(holes) > MOST_SIDE:
        raise InputError(f"the board has {len(holes)} cells a side, and pictures are drawn up to {MOST_SIDE}; use ansi")
    picture = np.where(np.kron(holes, np.ones((CELL, CELL), bool))[..., None], HOLE, ICE).astype(np.uint8)
    picture[::CELL] = picture[:, ::CELL] = LINE
    rows, columns = np.mgrid[:CELL, :CELL] - (CELL - 1) / 2
    far = np.maximum(abs(rows), abs(columns))
    frame, disc = (far < 0.44 * CELL) & (far > 0.32 * CELL), np.hypot(rows, columns) < 0.3 * CELL
    for shape, cells in ((frame, goals), (disc, positions)):
        for agent, (row, column) in enumerate(cells):
            part = picture[CELL * row : CELL * (row + 1), CELL * column : CELL * (column + 1)]
            part[shape] = AGENTS[agent % len(AGENTS)]
    return picture
