"""The check of environments names a planted fault of each member that has a default."""

import msgspec
import pytest

from lakewright.engineer import Cell
from lakewright.engineer.testing.properties import TOGETHER
from tests.engineer.testing.test_checks import Numbers, look_for
from tests.support.deep import keep_quick


def draw_alone(self, cell, count, seed, first=0):
    return [self.draw_one(cell, seed, place) for place in range(count)]


def draw_without_seed(self, cell, count, seed, first=0):
    return Numbers.draw_cell(self, cell, count, 0, first)


def ask_for_one_cell(self, design):
    return {next(iter(Numbers.cells(self, design))): 1.0}


def ask_without_traits(self, design):
    rows = {stratum: {**row, "odd": 0.0} for stratum, row in design.strata.items()}
    return Numbers.cells(self, design.replace(rows))


def judge_all_wrong(self, problems, answers):
    right = Numbers.groups(self, problems, answers)
    return [msgspec.structs.replace(group, valid=0) for group in right]


def judge_backwards(self, problems, answers):
    return Numbers.verdicts(self, problems, answers)[::-1]


MIXED, DESCRIBED = "cells of a mix are drawn", "problems are described"
MEMBERS = {
    "first is ignored": ({"draw_cell": draw_alone}, MIXED, "draw_cell from 1 on gives a different problem 1"),
    "seed is ignored": ({"draw_cell": draw_without_seed}, "seeds share no problems", "draw_cell: other seeds give the"),
    "one cell": ({"cells": ask_for_one_cell}, "the start is drawn", "cells give share 1 for small, but the design"),
    "no cell": ({"cells": lambda *_: {}}, "the start is drawn", "cells give share 0 for small, but the design"),
    "no traits": ({"cells": ask_without_traits}, "the start is drawn", "cells give odd 0 for small, but the design"),
    "no mix": ({"mix": lambda *_: None}, MIXED, "mix raised AttributeError"),
    "canonical raises": ({"canonical": lambda *_: 1 / 0}, MIXED, "mix raised ZeroDivisionError"),
    "canonical by name": ({"canonical": lambda self, cell: cell["odd"]}, MIXED, "mix raised TypeError"),
    "measures raise": ({"measures": lambda *_: 1 / 0}, DESCRIBED, "ZeroDivisionError: division by zero; correct it"),
    "measures in text": ({"measures": lambda *_: {"n": "long"}}, DESCRIBED, "return finite numbers by name"),
    "no features": ({"features": lambda *_: None}, DESCRIBED, "features: of 'small"),
    "no description": ({"describe": lambda *_: None}, DESCRIBED, "gave None; return a text"),
    "no cases": ({"cases": lambda *_: [None]}, DESCRIBED, "cases gave [None]; return Case objects"),
    "groups of other counts": ({"groups": judge_all_wrong}, TOGETHER, "groups gave"),
    "groups without cells": (
        {"groups": lambda *_: [msgspec.structs.replace(one, cell=Cell("", ())) for one in Numbers.groups(*_)]},
        TOGETHER,
        "groups gave",
    ),
    "no groups": ({"groups": lambda *_: None}, TOGETHER, "groups raised TypeError"),
    "verdicts in another order": ({"verdicts": judge_backwards}, TOGETHER, "verdicts gave"),
    "no tallies": ({"tallies": lambda *_: {}}, TOGETHER, "tallies raised AttributeError"),
    "no statistics": ({"statistics": lambda *_: None}, DESCRIBED, "statistics gave None; return Drawn objects by"),
}


@pytest.mark.parametrize(
    "name",
    keep_quick(MEMBERS, ("no groups", "no statistics", *list(MEMBERS)[:2])),
)
def test_a_planted_fault_of_a_member_that_has_a_default_is_named(name, capfd):
    members, broken, words = MEMBERS[name]
    faults = look_for(**members)
    (fault,) = [fault for fault in faults if fault.name == broken]
    assert words in fault.problem
    assert "the code returns" not in {fault.name for fault in faults}
    assert capfd.readouterr().err == ""
