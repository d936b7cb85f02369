"""The files of a run of the lake: names, types and values are those that programs of users read."""

import json

import pytest

from tests.support.samples.tiny_runs import finished
from tests.support.unchanged.run_files import RECORDED, describe_files, join_shapes, list_values, shape_of

KNOWN = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", KNOWN["files"])
def test_a_file_has_the_names_and_types_that_were_recorded(name):
    assert describe_files(finished("random"))[name] == KNOWN["files"][name]


def test_no_other_file_is_there():
    assert describe_files(finished("random")).keys() == KNOWN["files"].keys()


@pytest.mark.parametrize("name", KNOWN["values"])
def test_what_no_training_changes_has_the_recorded_value(name):
    assert list_values(finished("random"))[name] == KNOWN["values"][name]


def test_shapes_tell_values_apart_by_name_and_type():
    assert shape_of({"3": {"a": 1}, "5": {"a": 0.5}}) == {"SIZE": {"a": "float|int"}}
    assert shape_of([1, "x", None]) == ["int|null|str"]
    assert join_shapes([{"a": "int"}, {"b": "str"}]) == {"a": "int", "b": "str"}
    assert shape_of([{"a": 1}]) != shape_of([{"a": "1"}])
