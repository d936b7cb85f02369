"""Tallies: parts make the whole, and what is left of a whole without a part is the rest."""

from hypothesis import given
from hypothesis import strategies as st

from lakewright.engineer.tally import Tally, pool_tallies, subtract_tally

KINDS = ("wrong", "unread")


@st.composite
def tallies(draw, depth: int = 1) -> Tally:
    """Counts that fit together."""
    valid, *failed = (draw(st.integers(0, 9)) for _ in range(1 + len(KINDS)))
    problems = valid + sum(failed)
    traits = {"noise": draw(tallies(0))} if depth else {}
    grades = {"short": draw(st.integers(0, valid))}
    return Tally(problems, valid, dict(zip(KINDS, failed, strict=True)), grades, traits)


@given(st.lists(tallies(), max_size=4))
def test_the_pool_has_all_problems_of_its_parts_and_no_other(parts):
    pooled = pool_tallies(parts)
    assert pooled.problems == sum(part.problems for part in parts)
    assert pooled.valid == sum(part.valid for part in parts)
    for name in KINDS:
        assert pooled.failures.get(name, 0) == sum(part.failures[name] for part in parts)
    assert pooled.grades.get("short", 0) == sum(part.grades["short"] for part in parts)
    assert pooled.traits == ({"noise": pool_tallies(part.traits["noise"] for part in parts)} if parts else {})


@given(tallies(0), tallies(0))
def test_a_part_taken_from_a_whole_leaves_the_rest(part, rest):
    assert subtract_tally(pool_tallies([part, rest]), part) == rest


def test_a_rate_of_no_problems_is_zero():
    assert Tally(0, 0).valid_rate == 0.0
    assert Tally(8, 2).valid_rate == 0.25
    assert Tally(8, 2).rate(4) == 0.5
