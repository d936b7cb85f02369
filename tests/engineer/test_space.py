"""The design space: its grid, its bins and its cells, whatever strata and knobs it has; and what is no space."""

import copy
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.engineer.cells import Cell, Given, Knob, stratum_of
from lakewright.engineer.design import Design
from lakewright.engineer.grid import MOST_BINNED
from lakewright.engineer.space import DesignSpace
from tests.support.refusals import assert_names, refused
from tests.support.samples.spaces import designs, spaces

TERMS = Knob(name="terms", low=2, high=9, whole=True)
SUMS = DesignSpace(["sums", "products"], [TERMS, Knob(name="noise", trait=True)], ranked=False)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"knobs": [Knob(name=f"t{place}", trait=True) for place in range(14)]}, [32768]),
        ({"limits": {"a": {"n": (0.5, 0.7)}}}, ["limits.a.n", "0.5 to 0.7", "whole"]),
        ({"spoken": (2,)}, ["spoken", 2]),
        ({"ranked": "x"}, ["ranked", "'x'", "True or False"]),
        ({"givens": [Given(name="n")]}, ["given 'n'", "twice"]),
    ],
)
def test_a_part_that_does_not_fit_the_others_is_refused(parts, told):
    with refused("space: ", *told):
        DesignSpace(**{"strata": ("a", "b"), "knobs": [Knob(name="n", high=4, whole=True)]} | parts)


@pytest.mark.parametrize(
    ("make", "told"),
    [(lambda: Knob(name="self"), ["knob 'self'"]), (lambda: Given(name="a b"), ["given 'a b'", "a_b"])],
)
def test_a_name_that_calls_use_is_refused(make, told):
    with refused(*told):
        make()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"g": float("nan")}, ["given.g", "nan"]),
        ({"g": True}, ["given.g", "True"]),
        ({"h": 1}, ["given.h", "choose from g"]),
    ],
)
def test_givens_are_numbers_of_the_space_and_by_default_the_middle(values, told):
    space = DesignSpace(("a",), [], givens=[Given(name="g", middle=3)])
    assert space.uniform().given == {"g": 3}
    with refused(*told):
        space.uniform(**values)


def test_spaces_of_equal_parts_are_equal_as_a_copy_is():
    others = [DesignSpace(SUMS.strata, SUMS.knobs, ranked=True), DesignSpace(SUMS.strata, SUMS.knobs[:1])]
    assert pickle.loads(pickle.dumps(SUMS)) == SUMS
    assert len({SUMS, copy.deepcopy(SUMS), *others}) == 3


def test_a_knob_in_the_place_of_a_given_is_sent_to_the_rows():
    with refused("given.terms is a knob", "space.design"):
        SUMS.uniform(terms=5)
    with refused("strata.sum is unknown", "did you mean sums? choose from"):
        SUMS.design({"sum": {}})


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
    with pytest.raises(KeyError) as caught:
        cell["digits"]
    assert_names(str(caught.value), "'digits'", "terms, noise")


@pytest.mark.parametrize("name", ["7", "-3", "0", "seven", "07", "7.0", "a b"])
def test_a_name_that_is_a_whole_number_is_that_number(name):
    assert stratum_of(name) == {"7": 7, "-3": -3, "0": 0}.get(name, name)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"strata": []}, ["strata"]),
        ({"strata": [3, 3]}, ["stratum 3", "twice"]),
        ({"strata": ["3"]}, ["stratum '3'"]),
        ({"strata": ["a b"]}, ["stratum 'a b'"]),
        ({"strata": [True]}, ["stratum True"]),
        ({"strata": [1.5]}, ["stratum 1.5"]),
        ({"knobs": [TERMS, TERMS]}, ["knob 'terms'", "twice"]),
        ({"knobs": [Knob(name="share")]}, ["knob 'share'", "name of the share"]),
        ({"knobs": [Knob(name="share", low=0.2)]}, ["knob 'share'", "name of the share"]),
        ({"knobs": ["terms"]}, ["knobs", "'terms'", "Knob"]),
        ({"knobs": TERMS}, ["knobs", "terms", "tuple"]),
        ({"strata": "sums"}, ["strata", "'sums'", "tuple"]),
        ({"share": Knob(name="share", low=0.2)}, ["share", "Knob from 0 to 1"]),
        ({"share": Knob(name="share", trait=True)}, ["share", "Knob from 0 to 1"]),
        ({"share": "share"}, ["share", "Knob from 0 to 1"]),
        ({"failures": "wrong"}, ["failures", "'wrong'", "tuple"]),
        ({"limits": {3: {"terms": 4}}}, ["limits.3.terms", 4]),
        ({"failures": []}, ["failures"]),
        ({"failures": ["not right"]}, ["failure 'not right'"]),
        ({"limits": {4: {}}}, ["limits", 4, "stratum"]),
        ({"limits": {3: {"digits": (0, 1)}}}, ["limits.3", "'digits'", "knob"]),
        ({"limits": {3: {"terms": (1, 5)}}}, ["limits.3.terms", "1 to 5", "2 to 9"]),
    ],
)
def test_what_is_no_space_is_refused_in_one_line(given, told):
    with refused("space", *told):
        DesignSpace(**{"strata": [3], "knobs": [TERMS], **given})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": "two words"}, ["'two words'", "identifier"]),
        ({"name": "reason"}, ["'reason'", "identifier"]),
        ({"low": math.nan}, ["low", "nan"]),
        ({"low": "one"}, ["low", "'one'"]),
        ({"name": 3}, ["name", 3]),
        ({"harder": 5}, ["harder", 5, "-1, 0, 1"]),
        ({"told": 0.5}, ["told", 0.5]),
        ({"low": 2.0}, ["low", 2, "high 1"]),
        ({"step": 0.0}, ["step", 0, "more than 0"]),
        ({"bins": 0}, ["bins", 0, "`int` >= 1"]),
        ({"bins": "3"}, ["bins", "'3'", "`int`"]),
        ({"trait": True, "high": 2.0}, ["digits", "trait"]),
        ({"whole": True, "high": 1.5}, ["digits", "whole numbers"]),
        ({"told": (3.0,)}, ["told", 3, "0 to 1"]),
    ],
)
def test_what_is_no_knob_is_refused_in_one_line(given, told):
    with refused("knob", *told):
        Knob(**{"name": "digits", **given})


@pytest.mark.parametrize(
    ("stratum", "values", "told"),
    [
        ("quotients", {"terms": 3, "noise": True}, ["stratum 'quotients'", "sums, products"]),
        ("sums", {"terms": 3}, ["knobs", "terms", "terms, noise"]),
        ("sums", {"terms": 30, "noise": True}, ["terms", 30, "2 to 9"]),
        ("sums", {"terms": "3", "noise": True}, ["terms", "'3'", "2 to 9"]),
        ("sums", {"terms": 2.5, "noise": True}, ["terms", 2.5, "whole number"]),
        ("sums", {"terms": 3, "noise": "yes"}, ["noise", "'yes'", "True or False"]),
        (["sums"], {"terms": 3, "noise": True}, ["stratum ['sums']"]),
    ],
)
def test_what_is_no_cell_is_refused_in_one_line(stratum, values, told):
    with refused(*told):
        SUMS.cell(stratum, **values)


def test_a_grid_of_many_knobs_has_fewer_bins_rather_than_more_cells():
    space = DesignSpace(range(3), [Knob(name=f"knob{place}", bins=6) for place in range(5)])
    assert len(space.grid(space.strata)) <= MOST_BINNED
    assert len(space.forecast_cells(space.uniform())) < 3 * 5 * 7
    middle = Design(space.uniform().strata)
    assert all(space.bin_cell(cell, space.strata) in space.grid(space.strata) for cell in space.cells(middle))


@pytest.mark.parametrize(
    ("parts", "step", "reach"),
    [
        ({}, 0.1, 0.25),
        ({"trait": True}, 0.1, 0.25),
        ({"low": 1, "high": 101}, 10, 25),
        ({"low": 1, "high": 101, "reach": 2}, 10, 2),
        ({"low": 1, "high": 100, "whole": True}, 10, 25),
        ({"low": 2, "high": 9, "whole": True}, 1, 2),
        ({"low": 1, "high": 2, "whole": True}, 1, 1),
        ({"low": 5, "high": 5}, 0.1, 0.25),
        ({"low": 0, "high": 0.000001}, 0.000001, 0.000001),
    ],
)
def test_a_knob_moves_by_parts_of_its_range_unless_it_says_otherwise(parts, step, reach):
    knob = Knob(name="digits", **parts)
    assert (knob.step, knob.reach) == (step, reach)
