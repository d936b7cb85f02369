"""Design spaces, designs and deltas of all kinds, for properties that hold in every environment."""

import math

from hypothesis import strategies as st

from lakewright.engineer.cells import Given, Knob
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.space import DesignSpace, normalize_design

finite = st.floats(-1e6, 1e6)


@st.composite
def knobs(draw, name: str) -> Knob:
    """A level, a whole level or a trait."""
    kind = draw(st.sampled_from(["level", "whole", "trait"]))
    step, reach = draw(st.floats(0.01, 2)), draw(st.floats(0, 3))
    common = {"name": name, "step": step, "reach": reach, "harder": draw(st.sampled_from([-1, 0, 1]))}
    if kind == "trait":
        low, high = sorted((draw(st.integers(0, 10)), draw(st.integers(0, 10))))
        return Knob(**common, low=low / 10, high=high / 10, trait=True)
    low = draw(st.integers(-5, 5))
    bins, span = draw(st.integers(1, 6)), draw(st.integers(0, 8))
    return Knob(**common, low=low, high=low + span, whole=kind == "whole", bins=bins)


@st.composite
def spaces(draw) -> DesignSpace:
    """Any space of up to five strata, numbers and names, and three knobs."""
    names = st.integers(-3, 99) | st.sampled_from(["sums", "chains/long", "a.b", "x-1"])
    strata = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    found = [draw(knobs(f"knob{place}")) for place in range(draw(st.integers(0, 3)))]
    givens = [Given(name="team")] if draw(st.booleans()) else []
    ranked = draw(st.booleans())
    return DesignSpace(strata, found, ranked=ranked, givens=givens, failures=("wrong", "unread"), grades=("short",))


@st.composite
def designs(draw, space: DesignSpace, floor: float = 0.0) -> Design:
    """Any legal design of a space, of one stratum or more, none with less than `floor` of the problems."""
    strata = draw(st.lists(st.sampled_from(space.strata), min_size=1, unique=True))
    weights = [draw(st.floats(0, 1)) for _ in strata]
    total = math.fsum(weights)
    shares = [weight / total for weight in weights] if total > 0.01 else [1 / len(strata)] * len(strata)
    rows = {}
    for stratum, share in zip(strata, shares, strict=True):
        rows[stratum] = {space.share.name: floor + (1 - floor * len(strata)) * share}
        for knob in space.knobs:
            rows[stratum][knob.name] = draw(values(knob))
    return normalize_design(Design(rows, given={given.name: draw(st.integers(1, 4)) for given in space.givens}), space)


def values(knob: Knob) -> st.SearchStrategy[float]:
    """Any legal value of a knob."""
    return st.integers(int(knob.low), int(knob.high)) if knob.whole else st.floats(knob.low, knob.high)


@st.composite
def deltas(draw, design: Design, space: DesignSpace) -> Delta:
    """Any delta of some strata of a design."""
    names = [column.name for column in space.columns]
    changes = st.dictionaries(st.sampled_from(names), finite | st.floats(-1, 1))
    chosen = draw(st.lists(st.sampled_from(list(design.strata)), unique=True))
    return Delta({stratum: make_edit(space, "why", draw(changes)) for stratum in chosen})
