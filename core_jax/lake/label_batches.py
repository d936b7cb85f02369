"""Batches of boards and labels, as numpy arrays."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import jax
import numpy as np

from lakewright.core_jax.lake.plans import pad_moves
from lakewright.core_jax.types import Labels

T = TypeVar("T")


def take_rows(batch: T, rows: np.ndarray) -> T:
    """Some rows of a batch of arrays."""
    return jax.tree.map(lambda field: np.asarray(field)[rows], batch)


def concatenate(parts: Sequence[Labels]) -> Labels:
    """One batch of labels from several whose plans may differ in length."""
    plans = {name: _joined([getattr(part, name) for part in parts]) for name in ("moves", "makespan_moves")}
    unmoved = [dataclasses.replace(part, moves=None, makespan_moves=None) for part in parts]  # type: ignore[arg-type]
    return dataclasses.replace(jax.tree.map(lambda *fields: np.concatenate(fields), *unmoved), **plans)


def _joined(plans: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Plans of several batches as one; None where they were not asked for."""
    given = [np.asarray(plan) for plan in plans if plan is not None]
    horizon = max((plan.shape[-1] for plan in given), default=0)
    return np.concatenate([pad_moves(plan, horizon) for plan in given]) if given else None


def with_rows(labels: Labels, rows: np.ndarray, replacements: Labels) -> Labels:
    """`labels` with those of `rows` replaced."""
    both = concatenate([labels, replacements])
    order = np.arange(len(labels.status))
    order[rows] = len(order) + np.arange(len(rows))
    return jax.tree.map(lambda field: field[order], both)
