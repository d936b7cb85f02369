"""Designs, whatever their space."""

import msgspec

from lakewright.engineer.design import Design


def test_designs_that_differ_in_version_alone_are_equal_and_not_unequal():
    design = Design({2: {"share": 1.0, "digits": 1}})
    later = msgspec.structs.replace(design, version=3)
    assert design == later
    assert design == later
    assert design != Design({2: {"share": 1.0, "digits": 2}})
