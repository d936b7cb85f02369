"""Edits in whole steps that stay inside the range of each ratio."""

from collections.abc import Mapping

from lakewright.core_jax.config import MAX_HOLE_RATIO, SizeConfig
from lakewright.engineer.delta import SizeEdit
from lakewright.engineer.evidence import STEPS, STRIDES

TOPS = {"data_ratio": 1.0, "hole_ratio": MAX_HOLE_RATIO, "wait_ratio": 1.0}


def fits(cell: SizeConfig, field: str, stride: int) -> bool:
    """Whether `stride` steps leave `field` of `cell` inside its range, float noise aside."""
    return -1e-9 <= getattr(cell, field) + stride * STEPS[field] <= TOPS[field] + 1e-9


def step_edit(cell: SizeConfig, strides: Mapping[str, int], reason: str) -> SizeEdit | None:
    """The edit of `cell` by so many steps a field, without those that do not fit; None if nothing is left."""
    changes = {field: stride * STEPS[field] for field, stride in strides.items() if fits(cell, field, stride)}
    return SizeEdit(**changes, reason=reason) if any(changes.values()) else None


def stride_toward(cell: SizeConfig, goal: SizeConfig) -> dict[str, int]:
    """By how many steps, two at most, each ratio of `cell` is to move toward `goal`, whether they fit or not."""
    changes = {field: (getattr(goal, field) - getattr(cell, field)) / step for field, step in STEPS.items()}
    return {field: max(min(STRIDES), min(max(STRIDES), round(change))) for field, change in changes.items()}
