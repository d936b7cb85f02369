"""The result of solving a batch: labels, and what decided each board."""

import dataclasses
import enum

import numpy as np

from lakewright.core_jax.types import Labels

BUDGET = 1 << 18  # conflicts of the satisfiability solver, after which a board of four or more agents stays undecided


class Stage(enum.IntEnum):
    """The stage that decided a board, the last of several. NOTHING: it is undecided."""

    NOTHING = 0
    CERTIFICATE = 1
    FLOOD = 2
    SEARCH = 3
    FORMULAS = 4
    JOINT_STATES = 5


@dataclasses.dataclass(frozen=True)
class Solved:
    """Labels of B boards and their cost: stage int [B], a `Stage`; conflicts int [B], of the formulas."""

    labels: Labels
    stage: np.ndarray
    conflicts: np.ndarray
