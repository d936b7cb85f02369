"""Batches of boards, plans and labels, as numpy arrays."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import jax
import numpy as np

from lakewright.core_jax.types import PAD, WAIT, Labels

T = TypeVar("T")


def take_rows(batch: T, rows: np.ndarray) -> T:
    """Some rows of a batch of arrays."""
    return jax.tree.map(lambda field: np.asarray(field)[rows], batch)


def join_labels(parts: Sequence[Labels]) -> Labels:
    """One batch of labels from several whose plans may differ in length."""
    plans = {name: _join_plans([getattr(part, name) for part in parts]) for name in ("moves", "makespan_moves")}
    unmoved = [dataclasses.replace(part, moves=None, makespan_moves=None) for part in parts]  # type: ignore[arg-type]
    return dataclasses.replace(jax.tree.map(lambda *fields: np.concatenate(fields), *unmoved), **plans)


def _join_plans(plans: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Plans of several batches as one; None if they were not asked for."""
    given = [np.asarray(plan) for plan in plans if plan is not None]
    horizon = max((plan.shape[-1] for plan in given), default=0)
    return np.concatenate([pad_moves(plan, horizon) for plan in given]) if given else None


def with_rows(labels: Labels, rows: np.ndarray, replacements: Labels) -> Labels:
    """`labels` with `rows` in place of some."""
    both = join_labels([labels, replacements])
    order = np.arange(len(labels.status))
    order[rows] = len(order) + np.arange(len(rows))
    return jax.tree.map(lambda field: field[order], both)


def round_horizon(steps: int) -> int:
    """A plan length of at least `steps`; few lengths are ever used, and each is compiled once."""
    return 1 << max(4, (steps - 1).bit_length())


def pad_moves(moves: np.ndarray, horizon: int) -> np.ndarray:
    """Pads int8 [..., T] with PAD to `horizon` steps."""
    if horizon == moves.shape[-1]:
        return moves
    width = [(0, 0)] * (moves.ndim - 1) + [(0, horizon - moves.shape[-1])]
    return np.pad(moves, width, constant_values=PAD)


def trim_plans(moves: np.ndarray) -> np.ndarray:
    """The plans int8 [..., T] without waits after each agent's last move, cut to the longest of them."""
    real = (moves != PAD) & (moves != WAIT)
    going = np.flip(np.maximum.accumulate(np.flip(real, -1), axis=-1), -1)
    return np.where(going, moves, PAD).astype(np.int8)[..., : int(going.sum(axis=-1).max(initial=0))]
