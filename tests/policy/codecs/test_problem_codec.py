"""Problems in text as tokens: a token a byte, or the chat of a language model."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.policy.codecs import BYTE_VOCABULARY, ByteCodec, ChatCodec, TextSettings, build_byte_tokenizer
from lakewright.policy.codecs.problem_codec import BEGIN, END, NO_TEXT, PAD
from tests.support.models.marking_tokenizer import MARKS, marking_tokenizer
from tests.support.models.small_language_model import TEMPLATE, language
from tests.support.refusals import refused

BYTES = build_byte_tokenizer()
CODECS = {
    "bytes": lambda: ByteCodec(BYTES),
    "chat": lambda: ChatCodec(language()),
    "chat without thinking": lambda: ChatCodec(language(), TextSettings(thinking=False)),
    "chat that begins a thought": lambda: ChatCodec(thinking_tokenizer()),
}


def thinking_tokenizer():
    """One whose template begins the answer with a thought."""
    tokenizer = deepcopy(language())
    tokenizer.chat_template = TEMPLATE.replace("assistant\\n'", "assistant\\n<think>\\n'")
    return tokenizer


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("text", ["46", "", "Zürich, 東京 🦆\n<end>", " spaces at both ends "])
def test_an_answer_comes_back_as_the_text_that_it_was_made_of(name, text):
    codec = CODECS[name]()
    answer = codec.encode_answer(text)
    assert answer[-1] == codec.tokenizer.eos_token_id
    assert codec.decode_answer(answer).strip() == text.strip()


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_the_tokenizer_of_a_checkpoint_says_what_the_codec_says(text):
    codec = ByteCodec(BYTES)
    assert codec.decode_answer(codec.encode_answer(text)) == text
    prompt = codec.encode_prompt(text)
    assert prompt == [*text.encode(), BEGIN]
    if not any(word in text for word in BYTE_VOCABULARY[256:]):
        assert BYTES.encode(text, add_special_tokens=False) == prompt[:-1]
        assert BYTES.decode(prompt[:-1]) == text


def test_words_of_the_vocabulary_in_a_prompt_are_text():
    assert ByteCodec(BYTES).encode_prompt("<end>") == [*b"<end>", BEGIN]
    assert len(BYTE_VOCABULARY) == len(set(BYTE_VOCABULARY)) == len(BYTES) == 259
    assert [BYTES.bos_token_id, BYTES.eos_token_id, BYTES.pad_token_id] == [BEGIN, END, PAD]


def test_what_is_no_text_in_an_answer_shows_and_is_never_right():
    decode = ByteCodec(BYTES).decode_answer
    assert decode([52, BEGIN, 54, END, 55]) == f"4{NO_TEXT}6", "nothing follows the end"
    assert decode([52, PAD, 54]) == f"4{NO_TEXT}6", "an answer that is cut off says what it says"
    assert decode([0xC3, END]) == NO_TEXT
    assert decode([END]) == decode([]) == ""


def test_a_chat_is_asked_in_its_template_without_words_about_lakes():
    asked = language().decode(ChatCodec(language(), TextSettings(prompt="compact")).encode_prompt("1+1="))
    assert asked == "<|im_start|>user\n1+1=<|im_end|>\n<|im_start|>assistant\n"


def test_only_what_follows_a_thought_is_the_answer():
    codec = ChatCodec(thinking_tokenizer())
    said = language().encode("one and one\n</think>\n\n2")
    assert codec.decode_answer(said).strip() == "2"
    assert codec.decode_answer(language().encode("one and one, 2")) == "", "the thought never ends"


@pytest.mark.parametrize("name", ["bytes", "chat"])
def test_a_lone_surrogate_is_refused(name):
    codec = CODECS[name]()
    for encode in (codec.encode_prompt, codec.encode_answer):
        with refused(1, "UTF-8"):
            encode("1\ud800")


@pytest.mark.parametrize("name", MARKS)
def test_the_marks_of_a_models_own_template_end_its_thoughts(name):
    begin, end, special = MARKS[name]
    for prompt in ("", begin):
        tokenizer = marking_tokenizer(begin, end, special, prompt)
        codec = ChatCodec(tokenizer)
        said = "" if prompt else begin
        for text, answer in ((f"{said}one, 1{end}2", "2"), (f"{said}one, 1", ""), (f"{said}one{end}", "")):
            ids = tokenizer.encode(text, add_special_tokens=False)
            assert codec.decode_answer([*ids, tokenizer.eos_token_id]).strip() == answer, (text, prompt)
        assert codec.decode_answer(codec.encode_answer("46")).strip() == "46"
    bare = ChatCodec(marking_tokenizer(begin, end, special))
    assert bare.decode_answer([*language().encode("46"), language().eos_token_id]) == "46"
