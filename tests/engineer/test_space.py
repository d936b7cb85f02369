"""The design space: its grid, its bins and its cells, whatever strata and knobs it has; and what is no space."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell, Given, Knob, stratum_of
from lakewright.engineer.design import Design
from lakewright.engineer.space import MOST_BINNED, DesignSpace
from tests.support.samples.spaces import designs, spaces

TERMS = Knob(name="terms", low=2, high=9, whole=True)
SUMS = DesignSpace(["sums", "products"], [TERMS, Knob(name="noise", trait=True)], ranked=False)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"knobs": [Knob(name=f"t{place}", trait=True) for place in range(14)]}, "give 32768 kinds of problems, more"),
        ({"limits": {"a": {"n": (0.5, 0.7)}}}, "limits.a.n is 0.5 to 0.7, but the knob is whole; choose whole numbers"),
        ({"spoken": (2,)}, "spoken has 2, which is not a stratum; leave it out"),
        ({"ranked": "x"}, "ranked is 'x'; give True or False"),
        ({"givens": [Given(name="n")]}, "given 'n' appears twice; name each once"),
    ],
)
def test_a_part_that_does_not_fit_the_others_is_refused(parts, problem):
    with pytest.raises(InputError, match=f"space: .*{problem}"):
        DesignSpace(**{"strata": ("a", "b"), "knobs": [Knob(name="n", high=4, whole=True)]} | parts)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Knob(name="self"), "knob 'self': its name is a field"),
        (lambda: Given(name="a b"), "given 'a b': its name is not an identifier; choose one, such as a_b"),
    ],
)
def test_a_name_that_calls_use_is_refused(make, problem):
    with pytest.raises(InputError, match=problem):
        make()


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"g": float("nan")}, "given.g is nan; give a finite number"),
        ({"g": True}, "given.g is True; give a finite number"),
        ({"h": 1}, "given.h is unknown; choose from g"),
    ],
)
def test_givens_are_numbers_of_the_space_and_by_default_the_middle(values, problem):
    space = DesignSpace(("a",), [], givens=[Given(name="g", middle=3)])
    assert space.uniform().given == {"g": 3}
    with pytest.raises(InputError, match=problem):
        space.uniform(**values)


@given(st.data())
def test_the_shares_of_the_cells_sum_to_one_and_those_of_a_stratum_to_its_own(data):
    space = data.draw(spaces())
    design = data.draw(designs(space))
    cells = space.cells(design)
    assert math.fsum(cells.values()) == pytest.approx(1)
    assert min(cells.values()) > 0
    for stratum, row in design.strata.items():
        mine = [share for cell, share in cells.items() if cell.stratum == stratum]
        assert math.fsum(mine) == pytest.approx(row[space.share.name])


@given(st.data())
def test_every_cell_lies_in_a_bin_of_the_grid_and_those_of_the_grid_in_their_own(data):
    space = data.draw(spaces())
    design = data.draw(designs(space))
    grid = space.grid(design.strata)
    assert 0 < len(grid) == len(set(grid)) <= MOST_BINNED
    assert all(space.bin_cell(cell, design.strata) == cell for cell in grid)
    for cell in filter(space.allows, space.cells(design)):
        binned = space.bin_cell(cell, design.strata)
        assert binned in grid, cell
        for place in space.levels:
            mine = (other for other in grid if other.stratum == cell.stratum)
            nearest = min(abs(other.values[place] - cell.values[place]) for other in mine)
            assert abs(binned.values[place] - cell.values[place]) <= nearest + 1e-5


@given(st.data())
def test_a_cell_comes_back_from_its_name_and_is_as_hard_as_it_is(data):
    space = data.draw(spaces())
    design = data.draw(designs(space))
    for cell in space.grid(design.strata):
        complete = space.complete_cell(cell, design)
        named = Cell.from_name(str(complete))
        assert named.stratum == cell.stratum
        assert named.values == cell.values
        assert len(complete.given) == len(space.givens)
        assert 0 <= space.hardness(cell, design.strata) <= 1
        assert cell not in space.siblings(cell)


@pytest.mark.parametrize("most", [1.0, 1234.5, 123_456_789.0])
@pytest.mark.parametrize("whole", [False, True])
def test_a_cell_comes_back_from_its_name_exactly_however_large_its_values(most, whole):
    knob = Knob(name="length", low=0.0, high=float(int(most)) if whole else most, whole=whole, bins=7)
    grid = DesignSpace(["long"], [knob]).grid(["long"])
    assert [Cell.from_name(str(cell)) for cell in grid] == grid


@given(st.data())
def test_the_middle_of_a_space_is_one_of_its_designs(data):
    space = data.draw(spaces())
    uniform = space.uniform(**dict.fromkeys([given.name for given in space.givens], 2))
    assert list(uniform.strata) == list(space.strata)
    assert space.design(uniform.strata, **uniform.given) == uniform


def test_a_cell_is_read_by_the_names_of_its_knobs():
    cell = SUMS.cell("sums", terms=3, noise=True)
    assert (cell["terms"], cell["noise"], cell.stratum) == (3, True, "sums")
    assert cell == Cell("sums", (3, True))
    with pytest.raises(KeyError, match="'digits' is not a knob; choose from terms, noise"):
        cell["digits"]


@pytest.mark.parametrize("name", ["7", "-3", "0", "seven", "07", "7.0", "a b"])
def test_a_name_that_is_a_whole_number_is_that_number(name):
    assert stratum_of(name) == {"7": 7, "-3": -3, "0": 0}.get(name, name)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"strata": []}, "it has no strata; name at least one"),
        ({"strata": [3, 3]}, "stratum 3 appears twice"),
        ({"strata": ["3"]}, "stratum '3' is not a name"),
        ({"strata": ["a b"]}, "stratum 'a b' is not a name"),
        ({"strata": [True]}, "stratum True is neither"),
        ({"strata": [1.5]}, "stratum 1.5 is neither"),
        ({"knobs": [TERMS, TERMS]}, "knob 'terms' appears twice"),
        ({"knobs": [Knob(name="share")]}, "knob 'share' appears twice"),
        ({"knobs": [Knob(name="share", low=0.2)]}, "knob 'share' appears twice"),
        ({"knobs": ["terms"]}, "knobs has 'terms'; give Knob objects"),
        ({"knobs": TERMS}, "give a tuple of them"),
        ({"strata": "sums"}, "strata is 'sums'; give a tuple of them"),
        ({"share": Knob(name="share", low=0.2)}, "share is not a part; give a Knob from 0 to 1"),
        ({"share": Knob(name="share", trait=True)}, "share is not a part"),
        ({"share": "share"}, "share is not a part"),
        ({"failures": "wrong"}, "failures is 'wrong'; give a tuple of them"),
        ({"limits": {3: {"terms": 4}}}, "limits.3.terms: 4 does not fit"),
        ({"failures": []}, "failures is empty"),
        ({"failures": ["not right"]}, "failure 'not right' is not an identifier"),
        ({"limits": {4: {}}}, "limits name 4, which is not a stratum"),
        ({"limits": {3: {"digits": (0, 1)}}}, "limits.3 name 'digits', which is not a knob"),
        ({"limits": {3: {"terms": (1, 5)}}}, "limits.3.terms is 1 to 5; choose a part of 2 to 9"),
    ],
)
def test_what_is_no_space_is_refused_in_one_line(given, problem):
    with pytest.raises(InputError, match=problem) as caught:
        DesignSpace(**{"strata": [3], "knobs": [TERMS], **given})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": "two words"}, "choose an identifier"),
        ({"name": "reason"}, "choose an identifier"),
        ({"low": math.nan}, "low: nan is not a finite number"),
        ({"low": "one"}, "low: 'one' does not fit"),
        ({"name": 3}, "name: 3 does not fit"),
        ({"harder": 5}, "harder: 5 does not fit"),
        ({"told": 0.5}, "told: 0.5 does not fit"),
        ({"low": 2.0}, "low is 2, above high 1"),
        ({"step": 0.0}, "step is 0; choose more than 0"),
        ({"bins": 0}, "bins: 0 does not fit: expected `int` >= 1"),
        ({"bins": "3"}, "bins: .3. does not fit: expected `int`"),
        ({"trait": True, "high": 2.0}, "a trait is a share"),
        ({"whole": True, "high": 1.5}, "choose whole numbers"),
        ({"told": (3.0,)}, "told has 3, which is not 0 to 1"),
    ],
)
def test_what_is_no_knob_is_refused_in_one_line(given, problem):
    with pytest.raises(InputError, match=problem) as caught:
        Knob(**{"name": "digits", **given})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("stratum", "values", "problem"),
    [
        ("quotients", {"terms": 3, "noise": True}, "stratum 'quotients' is unknown; choose from sums, products"),
        ("sums", {"terms": 3}, "knobs are terms; give terms, noise"),
        ("sums", {"terms": 30, "noise": True}, "terms is 30; choose 2 to 9"),
        ("sums", {"terms": "3", "noise": True}, "terms is '3'; choose 2 to 9"),
        ("sums", {"terms": 2.5, "noise": True}, "terms is 2.5; choose a whole number"),
        ("sums", {"terms": 3, "noise": "yes"}, "noise is 'yes'; choose True or False"),
        (["sums"], {"terms": 3, "noise": True}, "stratum \\['sums'\\] is unknown"),
    ],
)
def test_what_is_no_cell_is_refused_in_one_line(stratum, values, problem):
    with pytest.raises(InputError, match=problem) as caught:
        SUMS.cell(stratum, **values)
    assert len(str(caught.value).splitlines()) == 1


def test_a_grid_of_many_knobs_has_fewer_bins_rather_than_more_cells():
    space = DesignSpace(range(3), [Knob(name=f"knob{place}", bins=6) for place in range(5)])
    assert len(space.grid(space.strata)) <= MOST_BINNED
    assert len(space.forecast_cells(space.uniform())) < 3 * 5 * 7
    middle = Design(space.uniform().strata)
    assert all(space.bin_cell(cell, space.strata) in space.grid(space.strata) for cell in space.cells(middle))
