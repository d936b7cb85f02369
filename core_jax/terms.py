"""The terms of the lake: moves, failures, statuses and certificates, by number and by name; no arrays."""

import enum

MOVES = "UDLRW"
UP, DOWN, LEFT, RIGHT, WAIT = range(5)
# The move of a plan of cells to one that is not a neighbour: always illegal, written `?`.
JUMP = 5
LETTERS = MOVES + "?"
PAD = -1  # after an agent's last move: it stays where it is
DELTAS = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))
OPPOSITE = (DOWN, UP, RIGHT, LEFT, WAIT)


class Failure(enum.IntEnum):
    """Why a plan is not valid. Within one step the smaller number is reported."""

    NONE = 0
    PARSE_ERROR = 1
    ILLEGAL_MOVE = 2
    HOLE = 3
    VERTEX_CONFLICT = 4
    SWAP_CONFLICT = 5
    GOAL_NOT_REACHED = 6


FAILURE_NAMES = tuple(failure.name.lower() for failure in Failure)


class Status(enum.IntEnum):
    """The status of a board. UNDECIDED: the search was not completed, so the board has no labels."""

    SOLVABLE = 0
    UNSOLVABLE = 1
    UNDECIDED = 2


STATUS_NAMES = tuple(status.name.lower() for status in Status)


class Certificate(enum.IntEnum):
    """Why a label is certain.

    BOUND: a plan meets a lower bound (or an agent has no path at all). FLOOD: exhaustive, over all joint states.
    SEARCH: a completed search of the joint states that the bounds leave. NONE: undecided.
    """

    NONE = 0
    BOUND = 1
    FLOOD = 2
    SEARCH = 3


CERTIFICATE_NAMES = tuple(certificate.name.lower() for certificate in Certificate)
