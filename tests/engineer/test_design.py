"""Designs and deltas of any space: differences lead there and back, files keep them, the guard keeps them legal."""

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell, Knob
from lakewright.engineer.delta import derive_delta, edit_design, make_edit, weigh_cells
from lakewright.engineer.delta_parsing import encode_delta, read_answer
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.evidence import Evidence, Round, read_evidence
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import check_design
from lakewright.engineer.tally import Tally
from tests.support.deep import count_examples
from tests.support.refusals import refused
from tests.support.samples.spaces import deltas, designs, finite, spaces

SUMS = DesignSpace(["sums", 3], [Knob(name="terms", low=2, high=9, whole=True), Knob(name="noise", trait=True)])
ROW = {"share": 0.5, "terms": 3, "noise": 0.5}
TINY = 2e-6  # the grid of values, rounded to once or twice


class Anything:
    """An environment of a space in which every cell can be drawn that the space allows."""

    def __init__(self, space: DesignSpace) -> None:
        self.space = space

    def drawable(self, cell: Cell) -> bool:
        """Always."""
        return True


@given(st.data())
def test_a_difference_leads_from_one_design_to_another_and_back(data):
    space = data.draw(spaces())
    old = data.draw(designs(space))
    other = data.draw(designs(space)).strata
    new = old.replace({stratum: other.get(stratum, row) for stratum, row in old.strata.items()})
    delta = derive_delta(old, new.strata, "there", space)
    assert edit_design(old, delta, space) == new.strata
    assert edit_design(new, derive_delta(new, old.strata, "back", space), space) == old.strata
    assert derive_delta(old, old.strata, "nowhere", space) == Delta({})


@given(st.data())
def test_the_cells_of_a_design_mean_the_design(data):
    space = data.draw(spaces())
    design = data.draw(designs(space))
    for stratum, row in weigh_cells(space.cells(design), design, space).items():
        assert list(row.values()) == pytest.approx(list(design.strata[stratum].values()), abs=TINY)


@given(st.data())
@settings(max_examples=count_examples(50))
def test_any_delta_of_any_space_gives_a_legal_design_within_reach(data):
    space = data.draw(spaces())
    design = data.draw(designs(space, floor=0.05))
    verdict = project_delta(design, data.draw(deltas(design, space)), Anything(space), GuardSettings(floor=0.05))
    if verdict.status == "refused":
        assert verdict.design is design
        assert not all(map(space.allows, space.cells(design))), "even what is drawn now has a trait that is not allowed"
        return
    check_design(verdict.design, space)
    assert verdict.design.given == design.given
    assert min(row["share"] for row in verdict.design.strata.values()) >= 0.05 - TINY
    for stratum, row in verdict.design.strata.items():
        for column in space.columns:
            reach = max(1.0, math.floor(column.reach)) if column.whole else column.reach
            assert abs(row[column.name] - design.strata[stratum][column.name]) <= reach + TINY, column


@given(st.data())
def test_designs_deltas_and_evidence_come_back_from_their_files(data):
    space = data.draw(spaces())
    design = data.draw(designs(space))
    delta = data.draw(deltas(design, space))
    for value in (design, delta):
        assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value
    tallies = {stratum: Tally(8, 3, {"wrong": 5}) for stratum in design.strata}
    past = [Round(design, tallies, delta, "accepted")]
    evidence = Evidence(design=design, outcomes=tallies, by_trait={}, history=past, round=1, rounds=2)
    assert read_evidence(json.loads(msgspec.json.encode(evidence)), "evidence.json") == evidence


@given(st.data())
def test_an_answer_comes_back_where_its_changes_are_in_range(data):
    space = data.draw(spaces())
    names = [column.name for column in space.columns]
    changes = st.dictionaries(st.sampled_from(names), st.floats(-1, 1))
    edits = data.draw(st.dictionaries(st.sampled_from(space.strata), changes))
    delta = Delta({stratum: make_edit(space, "why", change) for stratum, change in edits.items()})
    assert read_answer(encode_delta(delta), space) == (delta, "")


def read_or_refuse(answer: str | bytes) -> Delta | str:
    """The delta of an answer, or why it is none."""
    try:
        return read_answer(answer, SUMS)[0]
    except InputError as error:
        return str(error)


pieces = st.sampled_from(
    ['{"edits":', "{", "}", '"sums":', '"3":', '"terms":', '"reason":', '"x"', "1", "-9e9", "NaN", ","]
)


@given(st.lists(pieces, max_size=15).map("".join) | st.text(max_size=40) | st.binary(max_size=40))
def test_whatever_is_answered_is_read_or_refused_in_one_line(answer):
    found = read_or_refuse(answer)
    assert isinstance(found, Delta) or len(found.splitlines()) == 1


@given(st.dictionaries(st.sampled_from(["sums", "3", "4", ""]), st.dictionaries(st.sampled_from(list(ROW)), finite)))
def test_json_of_nearly_the_right_shape_is_read_or_refused(edits):
    answer = {"edits": {stratum: {**changes, "reason": "x"} for stratum, changes in edits.items()}}
    found = read_or_refuse(json.dumps(answer))
    if isinstance(found, Delta):
        assert len(found.edits) == len(edits)
    else:
        assert len(found.splitlines()) == 1
        assert any(abs(change) > 1 for changes in edits.values() for change in changes.values()), found


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ({}, ["strata", "empty"]),
        ({"quotients": ROW}, ["strata.quotients", "sums, 3"]),
        ({"sums": ROW | {"digits": 1}}, ["strata.sums.digits", "share, terms, noise"]),
        ({"sums": {"share": 1.0}}, ["strata.sums.terms", "missing"]),
        ({"sums": ROW | {"terms": 10}}, ["strata.sums.terms", "10", "2 to 9"]),
        ({"sums": ROW | {"terms": 2.5, "share": 1.0}}, ["strata.sums.terms", 2.5, "whole number"]),
        ({"sums": ROW | {"noise": math.nan}}, ["strata.sums.noise", "nan", "0 to 1"]),
        ({"sums": ROW | {"noise": True}}, ["strata.sums.noise", "True", "0 to 1"]),
        ({"sums": ROW}, ["share", "0.5", "1"]),
    ],
)
def test_what_is_no_design_of_the_space_is_refused_in_one_line(rows, problem):
    with refused(*problem):
        check_design(Design(rows), SUMS)


def test_designs_that_differ_in_version_alone_are_equal_and_not_unequal():
    design = Design({2: {"share": 1.0, "digits": 1}})
    later = msgspec.structs.replace(design, version=3)
    assert design == later
    assert design == later
    assert design != Design({2: {"share": 1.0, "digits": 2}})
