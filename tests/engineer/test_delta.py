"""An answer is a delta or an InputError of one line, whatever its bytes."""

import json

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.engineer.delta import describe_delta, edit_design, summarize_delta
from lakewright.engineer.delta_parsing import MAX_ANSWER_BYTES, MAX_REASON, answer_type, encode_delta, read_answer
from lakewright.engineer.design import Delta
from lakewright.experiments.environments.lake import design_of
from tests.support.deep import count_examples
from tests.support.refusals import refused
from tests.support.samples.evidence import SPACE, edit

GOOD = (
    b'{"edits": {"5": {"data_ratio": -0.05, "wait_ratio": 0.1, "reason": "most fail by swap"}, "8": {"reason": "x"}}}'
)
DESIGN = design_of(EnvConfig({5: SizeConfig(0.5, 0.3, 0.2), 8: SizeConfig(0.5, 0.1, 0.0)}))


def read(answer: str | bytes) -> Delta:
    """The delta of an answer that has no summary."""
    delta, summary = read_answer(answer, SPACE)
    assert summary == ""
    return delta


def read_or_refuse(answer: str | bytes) -> Delta | None:
    try:
        delta = read(answer)
    except InputError as error:
        problem = str(error)
    else:
        msgspec.json.encode(delta)
        return delta
    assert len(problem.splitlines()) == 1
    return None


def test_a_good_answer_is_read():
    delta = read(GOOD)
    assert delta.edits[5] == edit("most fail by swap", data_ratio=-0.05, wait_ratio=0.1)
    assert delta.edits[8] == edit("x")
    assert read(GOOD.decode()) == delta


def test_an_encoded_delta_is_read_back():
    delta = read(GOOD)
    assert read(encode_delta(delta)) == delta


def test_the_schema_names_every_field_and_forbids_others():
    fields = msgspec.json.schema(answer_type(SPACE))["$defs"]["Edit"]
    assert set(fields["properties"]) == {"data_ratio", "hole_ratio", "wait_ratio", "reason"}
    assert fields["additionalProperties"] is False


def edit_of(text: str) -> str:
    return f'{{"edits": {{"5": {{{text}}}}}}}'


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", ["not JSON"]),
        ("more holes, please", ["not JSON"]),
        ("__import__('os').abort()", ["not JSON"]),
        ("```json\n{}\n```", ["not JSON"]),
        (GOOD.decode() + " done", ["not JSON"]),
        (GOOD[:-1], ["not JSON"]),
        (b"\xff\xfe", ["not UTF-8"]),
        ("\ud800", ["not UTF-8"]),
        ("[]", ["expected an object"]),
        ("{}", ["'edits' is missing"]),
        ('{"edits": []}', ["does not fit"]),
        ('{"edits": {"five": {"reason": ""}}}', ["'five'"]),
        ('{"edits": {"5": null}}', ["expected an object"]),
        ('{"edits": {"5": {"reason": ""}, "5": {"reason": ""}}}', ["'5'", "twice"]),
        ('{"edits": {"5": {"reason": "x"}, "5.0": {"reason": "x"}}}', ["twice"]),
        ('{"edits": {}, "reward": 1}', ["field 'reward'"]),
        (edit_of('"data_ratio": 0.1'), ["'reason' is missing"]),
        (edit_of('"data_ratio": "0.1", "reason": ""'), ["data_ratio"]),
        (edit_of('"data_ratio": true, "reason": ""'), ["data_ratio"]),
        (edit_of('"data_ratio": NaN, "reason": ""'), ["NaN"]),
        (edit_of('"data_ratio": -Infinity, "reason": ""'), ["-Infinity"]),
        (edit_of('"data_ratio": 1e999, "reason": ""'), ["data_ratio"]),
        (edit_of(f'"data_ratio": {"9" * 9000}, "reason": ""'), ["data_ratio"]),
        (edit_of('"hole_ratio": 1.5, "reason": ""'), ["hole_ratio"]),
        (edit_of(f'"reason": "{"x" * (MAX_REASON + 1)}"'), ["reason"]),
        (edit_of('"reason": "\\ud800"'), ["surrogate"]),
        (edit_of('"reason": ""'), ["edits.5.reason"]),
        ("[" * 15_000 + "]" * 15_000, ["too deep"]),
        (edit_of(f'"reason": {"[" * 900 + "]" * 900}'), ["nested too deeply"]),
        (" " * (MAX_ANSWER_BYTES + 1), ["bytes long"]),
        ("[" * 50_000_000, ["bytes long"]),
    ],
    ids=lambda value: f"{value!r:.24}",
)
def test_anything_else_is_refused_with_its_reason(answer, problem):
    with refused(*problem):
        read(answer)


@given(st.integers(1, 15_000))
@settings(max_examples=50)
def test_nesting_of_any_depth_is_refused(depth):
    assert read_or_refuse('{"edits":' * depth + "1" + "}" * depth) is None
    assert read_or_refuse(edit_of(f'"reason": {"[" * depth}{"]" * depth}')) is None


@given(st.binary(max_size=200) | st.text(st.characters(), max_size=200))
@settings(max_examples=count_examples(300))
def test_no_bytes_do_more_than_be_refused(answer):
    assert read_or_refuse(answer) is None


@given(st.integers(0, len(GOOD) - 1))
def test_a_truncated_answer_is_refused(length):
    assert read_or_refuse(GOOD[:length]) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(["data_ratio", "hole_ratio", "wait_ratio", "reason", "other"])
numbered = st.integers(-1, 12).map(str) | st.text(max_size=3)


@given(st.dictionaries(numbered, json_values | st.dictionaries(fields, json_values, max_size=4), max_size=3))
@example({"5": {"reason": "", "data_ratio": 0}})
@settings(max_examples=count_examples(60))
def test_json_of_nearly_the_right_shape_is_read_or_refused(edits):
    delta = read_or_refuse(json.dumps({"edits": edits}))
    assert delta is None or len(delta.edits) == len(edits)


def test_an_edit_adds_its_changes_and_keeps_the_rest():
    rows = edit_design(DESIGN, Delta({5: edit("", data_ratio=0.7, hole_ratio=-0.5)}), SPACE)
    assert rows[5] == {"data_ratio": 1.2, "hole_ratio": -0.2, "wait_ratio": 0.2}
    assert rows[8] == DESIGN.strata[8]


def test_an_edit_of_a_size_that_the_design_lacks_is_refused_and_the_choices_named():
    with refused("edits.7", "5, 8"):
        edit_design(DESIGN, Delta({7: edit("")}), SPACE)


def test_a_summary_is_one_printable_line():
    edits = {8: edit("too\nhard\x1b[2J", wait_ratio=-0.1), 5: edit("frontier", data_ratio=0.05)}
    assert summarize_delta(Delta(edits), SPACE) == "5x5 data +0.05 (frontier); 8x8 wait -0.1 (too hard [2J)"
    assert summarize_delta(Delta({}), SPACE) == "no edits"


def test_a_description_gives_a_reason_that_all_edits_share_once():
    edits = {8: edit("too\nhard", wait_ratio=-0.1), 5: edit("too\nhard", data_ratio=0.05)}
    assert describe_delta(Delta(edits), SPACE) == "5x5 data +0.05; 8x8 wait -0.1 (too hard)"
    assert describe_delta(Delta({5: edit("a"), 8: edit("b")}), SPACE) == "5x5 unchanged (a); 8x8 unchanged (b)"
    assert describe_delta(Delta({}), SPACE) == "no edits"
