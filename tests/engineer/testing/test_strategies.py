"""The public strategies of spaces, cells, designs, deltas and answers give what is legal, and the guard keeps it so."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.engineer import Cell, Delta, Design, DesignSpace, Given, Knob, Problem
from lakewright.engineer.delta_parsing import encode_delta, read_answer
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.space_checks import check_design
from lakewright.engineer.testing import answers, cells, deltas, designs, spaces
from lakewright.engineer.testing.search import Deadline, find_smallest
from tests.support.deep import count_examples
from tests.support.refusals import refused


class Anything:
    """Bounds within which all problems can be drawn."""

    def __init__(self, space: DesignSpace) -> None:
        self.space = space

    def drawable(self, cell: Cell) -> bool:
        return True


@st.composite
def rounds(draw) -> tuple[DesignSpace, Design, Delta]:
    """A space, a design of it, and a delta for that."""
    space = draw(spaces())
    design = draw(designs(space))
    return space, design, draw(deltas(space, design))


@settings(max_examples=count_examples(20))
@given(rounds())
def test_any_delta_on_any_design_of_any_space_leads_to_a_legal_design(round_):
    space, design, delta = round_
    check_design(design, space)
    limits = GuardSettings(floor=min(0.05, 1 / len(design.strata)))
    verdict = project_delta(design, delta, Anything(space), limits)
    assert verdict.status in ("accepted", "projected")
    check_design(verdict.design, space)


@settings(max_examples=count_examples(20))
@given(rounds())
def test_designs_and_deltas_survive_json(round_):
    space, design, delta = round_
    assert msgspec.json.decode(msgspec.json.encode(design), type=Design) == design
    assert msgspec.json.decode(msgspec.json.encode(delta), type=Delta) == delta
    assert read_answer(encode_delta(delta), space)[0] == delta


@given(spaces().flatmap(lambda space: st.tuples(st.just(space), cells(space))))
def test_cells_are_allowed_and_have_a_name(pair):
    space, cell = pair
    assert space.allows(cell)
    assert Cell.from_name(str(cell)).stratum == cell.stratum
    assert cell[space.knobs[0].name] == cell.values[0]
    assert cell == space.name_cell(cell)


def test_cells_are_spread_evenly_over_a_level():
    space, found = DesignSpace(("a",), [Knob(name="level")]), []
    find_smallest("", (), cells(space), found.append, str, Deadline(), most=300)
    assert {int(10 * cell.values[0]) for cell in found} == set(range(11))
    assert min(sum(int(10 * cell.values[0]) == tenth for cell in found) for tenth in range(10)) >= 3


@given(st.data())
def test_designs_within_bounds_ask_only_for_what_can_be_drawn(data):
    class Even(Anything):
        def drawable(self, cell: Cell) -> bool:
            return cell.values[0] % 2 == 0 and not cell.values[1]

    space = DesignSpace(("a", "b"), (Knob(name="level", high=5, whole=True), Knob(name="trait", trait=True)))
    design = data.draw(designs(space, Even(space)))
    assert all(map(Even(space).drawable, space.cells(design)))


@given(answers(Problem("1+1=", "2")))
def test_answers_are_texts(answer):
    assert isinstance(answer, str)


@settings(max_examples=10)
@given(st.data())
def test_values_of_givens_are_those_that_are_asked_for(data):
    space = DesignSpace(("a",), (), givens=[Given(name="agents", middle=2.0)])
    assert data.draw(designs(space, agents=3)).given == {"agents": 3}
    assert data.draw(designs(space)).given == {"agents": 2.0}
    assert data.draw(cells(space, lambda cell: cell["agents"] == 3, agents=3)).given == (3,)
    assert data.draw(cells(space)).given == (2.0,)


def test_bounds_within_which_nothing_can_be_drawn_are_refused():
    with refused("bounds and bins"):
        cells(DesignSpace(("a",), ()), lambda cell: False)


BAD_SPACES = {
    "no strata": (lambda: DesignSpace((), ()), "it has no strata; name at least one"),
    "a stratum twice": (lambda: DesignSpace(("a", "a"), ()), "stratum 'a' appears twice; name each once"),
    "no name": (lambda: DesignSpace(["a b"], ()), "stratum 'a b' is not a name; use letters"),
    "a knob twice": (lambda: DesignSpace(("a",), [Knob(name="k")] * 2), "knob 'k' appears twice; name each once"),
    "no identifier": (lambda: Knob(name="a-b"), "knob 'a-b': its name is a field of edits; choose an identifier"),
    "no failure": (lambda: DesignSpace(("a",), (), failures=()), "failures is empty; name at least one"),
    "a failure in words": (
        lambda: DesignSpace(("a",), (), failures=["too long"]),
        "failure 'too long' is not an identifier",
    ),
    "low above high": (lambda: Knob(name="k", low=2, high=1), "low is 2, greater than high 1"),
    "no step": (lambda: Knob(name="k", step=0), "step is 0; choose more than 0"),
    "a share redefined": (
        lambda: DesignSpace(("a",), [Knob(name="share")]),
        "'share' has the name of the share",
    ),
    "an infinite range": (lambda: Knob(name="k", high=float("inf")), "high: inf is not a finite number"),
    "a trait beyond one": (lambda: Knob(name="k", high=2, trait=True), "keep the range within 0 to 1"),
    "half a whole": (lambda: Knob(name="k", high=1.5, whole=True), "choose whole numbers"),
}


@pytest.mark.parametrize("name", BAD_SPACES)
def test_a_bad_space_is_refused_in_one_line(name):
    make, words = BAD_SPACES[name]
    with pytest.raises(InputError) as refused:
        make()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_cases_are_tried_until_the_seconds_are_spent():
    once, often = [], []
    assert find_smallest("", (), st.integers(), once.append, str, Deadline(), most=5) is None
    assert find_smallest("", (), st.integers(), often.append, str, Deadline.after(0.2), most=5) is None
    assert len(once) <= 5 < 10 < len(often)
