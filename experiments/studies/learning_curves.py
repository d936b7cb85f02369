"""Figures of learning curves: the mean height of a run, and the time until it reaches the best of another."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np


class CurvePoint(msgspec.Struct, frozen=True):
    """The tokens generated before a validation, and the valid % of the policy that the run then has.

    processor_seconds: spent by then after the warm-up; None in results of earlier versions.
    """

    tokens: int
    valid: float
    processor_seconds: float | None = None


Curve = Sequence[CurvePoint]


class Reached(msgspec.Struct, frozen=True):
    """The tokens until an arm is as good on the held-out set as the baseline of the same seed at its best.

    tokens: generated until then, the median over seeds; None if half of them or more never are. share: as a fraction
    of the median of the baseline's own tokens until its best, over the same seeds. reached: the seeds that ever are, of
    `seeds`. Seeds whose baseline is at its best after the warm-up are left out because nothing had to be reached.
    """

    tokens: float | None
    share: float | None
    reached: int
    seeds: int


def average_curve(curve: Curve, budget: int) -> float:
    """The mean valid % over the tokens of a run: the area under its curve, lines between its points, by the budget."""
    tokens, valid = zip(*((point.tokens, point.valid) for point in curve), strict=True)
    places = np.unique(np.clip([0, *tokens, budget], 0, budget))
    return float(np.trapezoid(np.interp(places, tokens, valid), places)) / budget


def value_at_time(curve: Curve, seconds: float) -> float | None:
    """The valid % after some processor seconds, lines between points; None if they are not known."""
    spent = [point.processor_seconds for point in curve if point.processor_seconds is not None]
    if len(spent) < len(curve) or not curve:
        return None
    return float(np.interp(seconds, spent, [point.valid for point in curve]))


def find_equal_time(curves: Iterable[Curve]) -> float | None:
    """The processor seconds that all of some runs have spent: the shortest run's. None if one's are not known."""
    ends = [curve[-1].processor_seconds if curve else None for curve in curves]
    known = [end for end in ends if end is not None]
    return min(known) if known and len(known) == len(ends) else None


def find_crossing(curve: Curve, valid: float) -> float | None:
    """The tokens at which a curve, lines between its points, is first at `valid` % or above; None if it never is."""
    before = None
    for point in curve:
        if point.valid >= valid:
            if before is None:
                return float(point.tokens)
            part = (valid - before.valid) / (point.valid - before.valid)
            return before.tokens + part * (point.tokens - before.tokens)
        before = point
    return None


def tokens_to_best(curve: Curve, baseline: Curve) -> float | None:
    """The tokens after which a run is as good as the baseline at its best; None if it never is, or has no curve."""
    return find_crossing(curve, max(point.valid for point in baseline)) if curve and baseline else None


def sum_up_reached(curves: Mapping[int, Curve], baselines: Mapping[int, Curve]) -> Reached | None:
    """The tokens until the runs of an arm reach the best of the baseline. None without seeds that can be compared.

    curves, baselines: curves of the arm and of the baseline, by seed.
    """
    own = {seed: tokens for seed, curve in baselines.items() if (tokens := tokens_to_best(curve, curve))}
    found = {seed: tokens_to_best(curves[seed], baselines[seed]) for seed in curves.keys() & own.keys()}
    if not found:
        return None
    tokens = statistics.median(math.inf if one is None else one for one in found.values())
    usual = statistics.median(own[seed] for seed in found)
    reached = sum(one is not None for one in found.values())
    if math.isinf(tokens):
        return Reached(None, None, reached, len(found))
    return Reached(tokens, tokens / usual, reached, len(found))
