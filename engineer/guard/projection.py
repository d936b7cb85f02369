"""The projection of proposed ratios onto what is legal and within reach; `judge` states the mathematics."""

import numpy as np

from lakewright.core_jax.config import SizeConfig
from lakewright.engineer.delta import FIELDS
from lakewright.engineer.guard.settings import GuardSettings


def projected(
    current: dict[int, SizeConfig], proposed: dict[int, SizeConfig], settings: GuardSettings
) -> dict[int, SizeConfig]:
    """The sizes nearest to `proposed` that are legal and within reach of `current`."""
    (d, h, w), (raw_d, raw_h, raw_w) = _columns(current), _columns(proposed)
    data = _data_ratios(d, raw_d, settings)
    hole = _clipped(h, raw_h, settings.max_hole_ratio, settings.max_hole_change)
    wait = _clipped(w, raw_w, settings.max_wait_ratio, settings.max_wait_change)
    rows = zip(data.tolist(), hole.tolist(), wait.tolist(), strict=True)
    return {size: SizeConfig(*row) for size, row in zip(current, rows, strict=True)}


def _columns(sizes: dict[int, SizeConfig]) -> list[np.ndarray]:
    return [np.array([getattr(cell, field) for cell in sizes.values()], float) for field in FIELDS]


def _data_ratios(current: np.ndarray, raw: np.ndarray, settings: GuardSettings) -> np.ndarray:
    legal = _walk(current, current, _floored(current, settings.floor), settings.max_data_change)
    goal = _floored(np.clip(raw, 0, 1), settings.floor)
    return np.clip(_walk(current, legal, goal, settings.max_data_change), 0, 1)


def _floored(ratios: np.ndarray, floor: float) -> np.ndarray:
    excess = np.maximum(ratios - floor, 0)
    shares = excess / excess.sum() if excess.any() else np.full(len(ratios), 1 / len(ratios))
    return floor + max(0.0, 1 - floor * len(ratios)) * shares


def _walk(origin: np.ndarray, start: np.ndarray, goal: np.ndarray, reach: float) -> np.ndarray:
    """The point furthest from `start` toward `goal` that is within `reach` of `origin` in every component."""
    way = goal - start
    moving = np.abs(way) > 1e-12
    room = reach - (np.sign(way) * (start - origin))[moving]
    part = np.min(room / np.abs(way[moving]), initial=1.0)
    return start + max(0.0, part) * way


def _clipped(current: np.ndarray, raw: np.ndarray, top: float, reach: float) -> np.ndarray:
    return np.clip(np.clip(raw, 0, top), current - reach, current + reach)
