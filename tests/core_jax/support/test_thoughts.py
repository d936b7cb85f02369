"""What a model says inside a thought is never its answer, whichever marks its template has."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.support import (
    begins_thought,
    read_answer_after_thoughts,
    read_last_words,
    split_at_end_of_thought,
    strip_thoughts,
    write_end_of_thought,
)
from lakewright.core_jax.support.thoughts import _CLOSES, _OPENS, _USUAL
from tests.support.deep import count_examples

MARKS = {
    **{name: (f"<{name}>", f"</{name}>") for name in ("think", "Thinking", "thought", "reasoning", "seed:think")},
    **{name: (f"<{name}>", f"</{name}>") for name in ("reflection", "scratchpad", "analysis")},
    "Magistral": ("[THINK]", "[/THINK]"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "gpt-oss with a tool": (
        "<|channel|>commentary to=functions.x <|constrain|>json<|message|>",
        "<|channel|>final <|constrain|>json<|message|>",
    ),
    "gpt-oss without special tokens": ("analysisWe ", "assistantfinal"),
    "OpenThinker": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "Command A": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "Gemma": ("<|channel>thought\n", "<channel|>"),
    "MedGemma": ("<unused94>thought\n", "<unused95>"),
    "Granite": ("Here is my thought process:", "Here is my response:"),
    "halves": ("<|thought_start|>", "<|thought_end|>"),
    "an attribute": ('<think budget="12">', "</think>"),
    "spaces": ("< think >", "</ think >"),
    "a longer name": ("<inner_monologue>", "</inner_monologue>"),
    "a process": ("<reasoning_process>", "</reasoning_process>"),
    "a chain": ("<chain_of_thought>", "</chain_of_thought>"),
    "Hunyuan": ("<think_never_used_51bce0c785ca2f68>", "</think_never_used_51bce0c785ca2f68>"),
    "openPangu": ("[unused16]", "[unused17]"),
    "wide bars": ("<\uff5cthink\uff5c>", "<\uff5c/think\uff5c>"),
}


@pytest.mark.parametrize("name", MARKS)
def test_only_what_follows_the_last_thought_is_the_answer(name):
    begin, end = MARKS[name]
    assert strip_thoughts(f"{begin}The answer is 41{end}42").strip() == "42"
    assert strip_thoughts(f"{begin}The answer is 41") == "", "cut off"
    assert strip_thoughts(f"{begin}The answer is 41{end}") == "", "nothing follows"
    if not name.startswith("gpt-oss without"):
        assert strip_thoughts(f"{begin}41{end}42{begin}43") == "", "cut off in another thought"
        assert strip_thoughts(f"41 or 40{end}42").strip() == "42", "begun in the prompt"
        assert begins_thought(f"user: how many?\nassistant\n{begin}\n".rstrip()) != ""
    assert begins_thought("user: how many?\nassistant\n") == ""


@pytest.mark.parametrize("name", MARKS)
def test_a_thought_is_ended_with_the_mark_of_its_kind(name):
    begin, end = MARKS[name]
    mark = read_answer_after_thoughts(f"{begin}The answer is 41")[1]
    written = write_end_of_thought(mark)
    assert strip_thoughts(f"{begin}The answer is 41{written}42") == "42", written
    assert split_at_end_of_thought(f"The answer is 41{end}42")[0].startswith("The answer is 41")
    assert split_at_end_of_thought("The answer is 41") == ("The answer is 41", "")


def test_the_ends_of_answers_are_no_part_of_them():
    assert (
        strip_thoughts(
            "<|channel|>analysis<|message|>41<|end|><|start|>assistant<|channel|>final<|message|>42<|return|>"
        )
        == "42"
    )
    assert strip_thoughts("<|START_THINKING|>41<|END_THINKING|><|START_RESPONSE|>42<|END_RESPONSE|>") == "42"
    for begin, end in (("<|begin_of_solution|>", "<|end_of_solution|>"), ("<|begin_of_box|>", "<|end_of_box|>")):
        assert strip_thoughts(f"<think>41</think>{begin}42{end}<|endoftext|>") == "42"


def test_a_thought_goes_on_after_one_inside_it():
    assert strip_thoughts("<think>a<think>b</think>41") == ""
    assert read_answer_after_thoughts("<think>a<think>b</think>41")[1] == "<think>"
    assert strip_thoughts("<think>a<think>b</think>41</think>42") == "42"
    assert strip_thoughts("<think>41</think>40<think>41</think>42") == "42"
    assert strip_thoughts("<think>my mark is `<think>`, in words</think>42") == "42", "only spoken of"


def test_marks_of_a_template_count_too():
    marks = [("<muse>", "</muse>")]
    assert strip_thoughts("<muse>41</muse>42") == "<muse>41</muse>42"
    assert strip_thoughts("<muse>41</muse>42", marks) == "42"
    assert strip_thoughts("<muse>41", marks) == ""


IN_ASCII = [mark for mark in (*_OPENS, *_CLOSES) if "\\u" not in mark]


@pytest.mark.parametrize("mark", IN_ASCII)
@settings(max_examples=count_examples(4))
@given(data=st.data())
def test_a_text_with_any_mark_is_looked_through(mark, data):
    text = data.draw(st.from_regex(f"(?i){mark}", alphabet=st.characters(codec="ascii")))
    assert _USUAL.search(text)
    said, cut = read_answer_after_thoughts(text)
    assert cut or said != text


@pytest.mark.parametrize(
    "text",
    ["42", "", "[1, 2]", "analysis: 42", "a < b > c", "<b>42</b>", "the final answer", "[T]", "<cotton>", "<|end_"],
)
def test_other_texts_stay(text):
    assert strip_thoughts(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "<think",
        "<think ",
        "< ",
        "<chain_of_",
        "<|channel|>",
        "<|channel|>final",
        "analysis",
        "[THINK",
        "</",
        "<|",
        "a:" * 9,
    ],
)
def test_no_text_takes_more_than_linear_time(piece):
    begun = time.process_time()
    strip_thoughts(piece * (200_000 // len(piece)))
    assert time.process_time() - begun < 1


CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("42", "42"),
        ([{"role": "assistant", "content": "42"}], "42"),
        ([{"role": "assistant", "content": "41"}, {"role": "tool", "content": "42"}], "41"),
        ([CALL, {"role": "tool", "content": "42"}], ""),
        ([CALL, {"role": "tool", "content": "41"}, {"role": "assistant", "content": "42"}], "42"),
        ([{"role": "assistant", "content": [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]}], "42"),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": "41"}]}], ""),
        ([{"role": "user", "content": "42"}], ""),
        ([{"content": "42"}], "42"),
        ([], ""),
    ],
)
def test_the_last_words_are_the_models_own(said, words):
    assert read_last_words(said) == words
