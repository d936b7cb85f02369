"""Reasons of a redesign as pages say them: what the guard clipped is counted, and named as the run names it."""

import pytest

from lakewright.experiments.environments.lake import lake_space
from lakewright.experiments.viewer.catalogue.run_space import shorten_reason, sort_reasons

CLIPPED = ["sizes.3.data_ratio: proposed 0.35, applied 0.25", "sizes.10.hole_ratio: proposed 0.9, applied 0.6"]
MISSING = "sizes.4.wait_ratio: no board forces a wait, applied 0"


def test_clipped_values_are_told_from_other_reasons_and_named_for_people():
    clipped, others = sort_reasons([CLIPPED[0], MISSING, CLIPPED[1]], lake_space().words)
    assert clipped == ["3x3 data ratio: proposed 0.35, applied 0.25", "10x10 hole ratio: proposed 0.9, applied 0.6"]
    assert others == [MISSING]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (f"projected: {'; '.join(CLIPPED)}", "the guard clipped 2 of the changes"),
        (
            f"asked again: projected: {CLIPPED[0]}; {MISSING}",
            f"asked again: the guard clipped 1 of the changes; {MISSING}",
        ),
        ("accepted", "accepted"),
        ("projected: too few boards", "projected: too few boards"),
    ],
)
def test_a_reason_counts_what_the_guard_clipped(reason, said):
    assert shorten_reason(reason) == said
