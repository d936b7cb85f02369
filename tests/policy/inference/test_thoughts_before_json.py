"""The thought before an answer in JSON ends as the model's own template ends it, or with the mark of its kind."""

import json
from types import SimpleNamespace

import pytest
import torch

from lakewright.core_jax.support import strip_thoughts
from lakewright.policy.inference import SchemaSettings, answer_in_json, answers, json_prompt, sample_in_json
from tests.policy.inference.test_json_schema import NAMES, SCHEMA
from tests.support.models.marking_tokenizer import MARKS, marking_tokenizer

QUESTION = [{"role": "user", "content": "Which?"}]
USUAL = {
    "[THINK]": "[/THINK]",
    "<think>": "</think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
}


class Scripted:
    """Reads tokens, and says a text first of all; then it has no preference."""

    def __init__(self, tokenizer, prompt: str, said: str) -> None:
        self.vocabulary, self.prompts = len(tokenizer), list[list[int]]()
        begun = tokenizer.encode(prompt, add_special_tokens=False)
        self.whole = [*begun, *tokenizer.encode(said, add_special_tokens=False), tokenizer.eos_token_id]

    def read(self, ids):
        self.prompts.append(list(ids))
        logits = torch.zeros(self.vocabulary)
        if list(ids) == self.whole[: len(ids)] and len(ids) < len(self.whole):
            logits[self.whole[len(ids)]] = 9.0
        return logits


def ask(monkeypatch, tokenizer, said: str) -> tuple[str, list[str]]:
    """What a model that says this comes to, and each text that it read."""
    asked = tokenizer.apply_chat_template(QUESTION, add_generation_prompt=True, tokenize=False)
    reader = Scripted(tokenizer, asked, said)
    monkeypatch.setattr(answers, "make_reader", lambda model, length: reader)
    settings = SchemaSettings(reasoning=60, answer=60, temperature=0.0)
    text, _ = answer_in_json(SimpleNamespace(), tokenizer, QUESTION, SCHEMA, settings, seed=0)
    return text, [tokenizer.decode(ids) for ids in reader.prompts]


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("in_prompt", [True, False])
@pytest.mark.parametrize("name", MARKS)
def test_a_thought_ends_with_the_mark_of_the_template_before_the_json(monkeypatch, name, in_prompt, ended):
    begin, end, special = MARKS[name]
    tokenizer = marking_tokenizer(begin, end, special, begin if in_prompt else "")
    said = f"{'' if in_prompt else begin}It is 12{end if ended else ''}"
    text, read = ask(monkeypatch, tokenizer, said)
    assert f"{begin}It is 12{end}\nANSWER:\n{{" in read[-1]
    assert read[-1].count(end) == 1
    answer = json.loads(strip_thoughts(text).rpartition("ANSWER:")[2])
    assert answer["name"] in NAMES
    assert "It is 12" not in strip_thoughts(text), "the draft is no part of the answer"


@pytest.mark.parametrize("begin", USUAL)
def test_a_prompt_that_begins_a_thought_is_continued_with_its_end(begin):
    tokenizer = marking_tokenizer("", "", (), begin)
    prompt = tokenizer.decode(json_prompt(tokenizer, QUESTION))
    assert prompt.endswith(f"{begin}{USUAL[begin]}\nANSWER:\n")


def test_without_a_thought_the_json_follows_the_question(monkeypatch):
    tokenizer = marking_tokenizer("", "", ())
    asked = tokenizer.apply_chat_template(QUESTION, add_generation_prompt=True, tokenize=False)
    assert tokenizer.decode(json_prompt(tokenizer, QUESTION)) == f"{asked}\nANSWER:\n"
    text, read = ask(monkeypatch, tokenizer, "It is 12")
    assert text.startswith("It is 12\nANSWER:\n{")
    assert read[-1].startswith(f"{asked}It is 12\nANSWER:\n{{")


def test_a_free_text_that_is_cut_off_in_the_thought_of_its_prompt_is_no_answer(monkeypatch):
    begin, end, special = MARKS["special tokens"]
    tokenizer = marking_tokenizer(begin, end, special, begin)
    drafts = [tokenizer.encode(said, add_special_tokens=False) for said in ("It is 12", f"It is 12{end}It is 3")]
    monkeypatch.setattr(answers, "sample", lambda *_, **__: SimpleNamespace(answers=drafts))
    settings = SchemaSettings(reasoning=0, answer=60, temperature=1.0)
    texts = sample_in_json(SimpleNamespace(), tokenizer, QUESTION, None, settings, 2, seed=0)
    assert list(map(strip_thoughts, texts)) == ["", "It is 3"]
