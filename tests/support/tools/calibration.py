"""Whether what was stated came true: stated probabilities and intervals against the truth of simulated cases."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # of the bins of stated probabilities
FEWEST = 20  # cases of a bin from which something can be said
SURE = 3.5  # standard deviations of the share in a bin: of a hundred bins one fails by chance in twenty


def assert_calibrated(stated: Sequence[float], true: Sequence[bool], within: float) -> None:
    """Asserts that of the cases with a stated probability near p a share p is true, up to `within` and chance.

    Chance is that of so many independent cases, so the tolerance follows from their number.
    """
    said, found = np.asarray(stated, float), np.asarray(true, float)
    assert len(said) == len(found) > 0
    for low, high in itertools.pairwise(EDGES):
        mine = (said >= low) & ((said < high) | (high == 1.0))
        if mine.sum() >= FEWEST:
            expected, share = said[mine].mean(), found[mine].mean()
            chance = SURE * math.sqrt(max(expected * (1 - expected), 0.01) / mine.sum())
            assert abs(expected - share) <= within + chance, (
                f"of {mine.sum()} cases stated as {expected:.3f}, {share:.3f} are true; within {within + chance:.3f}"
            )


def assert_coverage(
    low: Sequence[float], high: Sequence[float], truth: Sequence[float], least: float, most: float = 1.0
) -> None:
    """Asserts that intervals hold the truth in a share `least` to `most` of the cases, up to chance."""
    lows, highs, values = (np.asarray(part, float) for part in (low, high, truth))
    share = float(np.mean((lows <= values + 1e-12) & (values <= highs + 1e-12)))
    low_chance, high_chance = (SURE * math.sqrt(max(p * (1 - p), 1e-4) / len(values)) for p in (least, most))
    assert least - low_chance <= share <= most + high_chance, (
        f"{share:.3f} of {len(values)} intervals hold the truth; claimed are {least:.3f} to {most:.3f}"
    )
