"""Every set from 0 on has its shares within one item, and an index's share is known without those before it."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lakewright.core_jax.support.apportionment import assign_shares

shares_of_a_set = st.lists(st.integers(0, 40).map(lambda part: part / 40), min_size=1, max_size=8).filter(any)


def counted(shares: list[float], count: int) -> np.ndarray:
    """How many of each share are among the first 0 .. count items, [count + 1, S]."""
    share, _ = assign_shares(shares, 0, count)
    taken = np.cumsum(share[:, None] == np.arange(len(shares)), axis=0)
    return np.concatenate([np.zeros((1, len(shares)), int), taken])


@given(shares_of_a_set, st.integers(1, 700))
def test_every_prefix_has_each_share_within_one_item(shares, count):
    part = np.arange(count + 1)[:, None] * np.array(shares) / math.fsum(shares)
    off = np.abs(counted(shares, count) - part)
    assert off.max() < 1, f"{off.max()} items off at {np.unravel_index(off.argmax(), off.shape)}"


@given(shares_of_a_set, st.integers(1, 50))
def test_a_part_that_is_whole_is_met_exactly(shares, times):
    wholes = np.rint(np.array(shares) * 40).astype(int)
    assert (counted(shares, times * int(wholes.sum()))[-1] == times * wholes).all()


@given(shares_of_a_set, st.integers(0, 300), st.integers(1, 100), st.integers(0, 10**6))
def test_an_index_has_the_same_share_and_rank_wherever_one_starts(shares, first, count, cycles):
    share, rank = assign_shares(shares, 0, first + count)
    there, rank_there = assign_shares(shares, first, count)
    assert (there == share[first:]).all()
    assert (rank_there == rank[first:]).all()
    wholes = np.rint(np.array(shares) * 40).astype(int)
    later, rank_later = assign_shares(shares, first + cycles * int(wholes.sum()), count)
    assert (later == there).all(), "the assignment repeats"
    assert (rank_later == rank_there + cycles * wholes[there]).all()


@given(shares_of_a_set, st.integers(1, 200))
def test_the_rank_counts_the_items_of_the_same_share_before(shares, count):
    share, rank = assign_shares(shares, 0, count)
    assert (rank == counted(shares, count)[np.arange(count), share]).all()


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=8), st.integers(1, 2000))
def test_shares_with_many_decimals_are_met_as_well(shares, count):
    part = count * np.array(shares) / math.fsum(shares)
    assert np.abs(counted(shares, count)[-1] - part).max() < 1 + count * 1e-6 / math.fsum(shares) * (len(shares) + 1)


@given(shares_of_a_set)
def test_shares_are_mixed(shares):
    assume(sum(share > 0 for share in shares) > 1)
    rarest = min(share for share in shares if share) / math.fsum(shares)
    share, _ = assign_shares(shares, 0, 400)
    runs = np.diff(np.flatnonzero(np.diff(share, prepend=-1)), append=400)
    assert runs.max() <= 2 / rarest, "of no share come more at a stretch than two of the rarest are apart"


@pytest.mark.parametrize(
    ("shares", "expected"), [([0.5, 0.5], [0, 1, 0, 1, 0]), ([0.35, 0.65], [1, 0, 1, 1, 0]), ([0, 2], [1] * 5)]
)
def test_known_assignments(shares, expected):
    assert assign_shares(shares, 0, 5)[0].tolist() == expected
