"""Answers in JSON under a schema, and how likely a model makes them."""

import copy
import itertools
import json

import pytest
import torch

from lakewright.core_jax.errors import InputError
from lakewright.policy.inference import (
    ModelAnswers,
    SchemaSettings,
    answer_in_json,
    json_prompt,
    log_probs_under_grammar,
    sample_json_ids,
    schema_grammar,
)
from lakewright.policy.inference.decoders import TransformerDecoder
from lakewright.policy.models import load_model
from lakewright.policy.training import AnswerGroup, AnswerTraining, train_on_answers
from tests.support.models.byte_language_model import text_checkpoint

NUMBERS, NAMES = (-1, 0, 12), ("a", "bb")
SCHEMA = {
    "type": "object",
    "properties": {"n": {"enum": list(NUMBERS)}, "name": {"enum": list(NAMES)}},
    "required": ["n", "name"],
    "additionalProperties": False,
}
TEXTS = [json.dumps({"n": n, "name": name}, separators=(",", ":")) for n, name in itertools.product(NUMBERS, NAMES)]


@pytest.fixture(scope="module")
def speaker():
    return load_model(text_checkpoint())


def asked(tokenizer) -> list[int]:
    return json_prompt(tokenizer, [{"role": "user", "content": "Which?"}])


def ids_of(tokenizer, texts) -> list[list[int]]:
    return [tokenizer.encode(text, add_special_tokens=False) for text in texts]


@torch.no_grad()
def chances(model, tokenizer, texts) -> torch.Tensor:
    """How likely each text is, under the schema."""
    grammar = schema_grammar(tokenizer, SCHEMA)
    found, there = log_probs_under_grammar(model, asked(tokenizer), ids_of(tokenizer, texts), grammar)
    return found.masked_fill(~there, 0.0).sum(1).exp()


def test_the_chances_of_all_answers_that_a_schema_allows_add_up_to_one(speaker):
    assert float(chances(*speaker, TEXTS).sum()) == pytest.approx(1.0, abs=1e-5)


def test_answers_are_sampled_as_often_as_they_are_likely(speaker):
    model, tokenizer = speaker
    how, many = SchemaSettings(reasoning=0, answer=60, temperature=1.0), 1024
    answers = sample_json_ids(model, tokenizer, asked(tokenizer), SCHEMA, how, many, seed=0)
    texts = [tokenizer.decode(answer) for answer in answers]
    assert set(texts) <= set(TEXTS)
    for text, chance in zip(TEXTS, chances(model, tokenizer, TEXTS).tolist(), strict=True):
        noise = 5 * (chance * (1 - chance) / many) ** 0.5
        assert texts.count(text) / many == pytest.approx(chance, abs=noise), text


def test_answers_are_sampled_by_their_seed_alone(speaker):
    model, tokenizer = speaker
    how = SchemaSettings(reasoning=0, answer=60, temperature=1.0)
    one, again, other = (
        sample_json_ids(model, tokenizer, asked(tokenizer), SCHEMA, how, 16, seed=seed) for seed in (0, 0, 1)
    )
    assert one == again != other


def test_a_json_answer_that_earned_more_becomes_likelier(speaker):
    untrained, tokenizer = speaker
    model = copy.deepcopy(untrained)
    group = AnswerGroup(asked(tokenizer), ids_of(tokenizer, TEXTS), [1.0, *[-0.2] * (len(TEXTS) - 1)])
    settings = AnswerTraining(rate=1e-2, updates=6, kl=0.0, epsilon=5.0)
    train_on_answers(model, untrained, [group], schema_grammar(tokenizer, SCHEMA), settings)
    before, after = (chances(one, tokenizer, TEXTS) for one in (untrained, model))
    assert after[0] > before[0] + 0.1
    assert float(after.sum()) == pytest.approx(1.0, abs=1e-5)


def test_a_schema_that_no_mask_can_be_made_of_is_refused(speaker):
    _, tokenizer = speaker
    with pytest.raises(InputError, match=r"schema: .*; simplify it"):
        list(schema_grammar(tokenizer, {"type": "no such type"})([0]))


def test_no_token_of_a_question_is_read_twice(speaker, monkeypatch):
    model, tokenizer = speaker
    read: list[int] = []
    for name in ("read_prompts", "add_runs"):
        plain = getattr(TransformerDecoder, name)

        def counted(decoder, tokens, *given, plain=plain):
            read.append(tokens.numel())
            return plain(decoder, tokens, *given)

        monkeypatch.setattr(TransformerDecoder, name, counted)
    how = SchemaSettings(reasoning=5, answer=60, temperature=0.0)
    text, _ = answer_in_json(model, tokenizer, [{"role": "user", "content": "Which?"}], SCHEMA, how, 0)
    assert json.loads(text.split("ANSWER:\n")[1])["name"] in NAMES
    assert sum(read) < 2 * read[0] + len(text.encode()), "the prompt once, the answer once, a thought perhaps again"
    assert len(read) <= 1 + 5 + 2, "a pass for each token of the thought, and for each choice under the schema"


def test_several_answers_to_a_question_read_it_once(speaker, monkeypatch):
    model, tokenizer = speaker
    read: list[int] = []
    plain = TransformerDecoder.read_prompts
    monkeypatch.setattr(
        TransformerDecoder,
        "read_prompts",
        lambda decoder, ids, mask: read.append(ids.numel()) or plain(decoder, ids, mask),
    )
    for reasoning in (0, 5):
        how = SchemaSettings(reasoning=reasoning, answer=60, temperature=1.0)
        asked = [{"role": "user", "content": f"Which of {reasoning}?"}]
        again = ModelAnswers(model, tokenizer)
        found = [answer_in_json(again, tokenizer, asked, SCHEMA, how, seed) for seed in range(3)]
        assert len(read) == 1, "one prompt for three answers"
        assert found == [answer_in_json(model, tokenizer, asked, SCHEMA, how, seed) for seed in range(3)]
        read.clear()
