"""The policy gradient on answers under a grammar: it makes what earned more likelier, and touches nothing else."""

import copy
from collections.abc import Sequence

import pytest
import torch
from transformers import PreTrainedModel

from lakewright.engineer.evidence import DeltaGrammar
from lakewright.experiments.environments.lake import lake_space
from lakewright.policy.codecs import token_ids
from lakewright.policy.inference import grammar_of, log_probs_under_grammar, sample_under_grammar
from lakewright.policy.training import AnswerGroup, AnswerTraining, train_on_answers
from tests.support.models.tiny_policy import tiny_model, tokenizer, weights

ALLOWED = DeltaGrammar(lake_space(), (3, 5)).allowed
PROMPT = ["<now>", "<size_3>", "<q5>", "<size_5>", "<q2>", "<delta>"]


GRAMMAR = grammar_of(tokenizer(), ALLOWED)


def ids(words: Sequence[str]) -> list[int]:
    """Those of words."""
    return token_ids(tokenizer(), words)


def log_probs(model: PreTrainedModel, answers: Sequence[Sequence[str]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of answers in words."""
    return log_probs_under_grammar(model, ids(PROMPT), [ids(answer) for answer in answers], GRAMMAR)


def sampled(count: int = 6, seed: int = 0) -> list[list[str]]:
    chosen = {"copies": count, "temperature": 1.0, "seed": seed}
    return sample_under_grammar(tiny_model(), tokenizer(), PROMPT, ALLOWED, **chosen)


def test_answers_are_sampled_under_the_grammar_and_by_their_seed_alone():
    answers = sampled()
    assert answers == sampled()
    assert answers != sampled(seed=1)
    assert len({tuple(answer) for answer in answers}) > 1
    for answer in answers:
        assert answer[-1] == "<end>"
        assert all(token in ALLOWED(answer[:place]) for place, token in enumerate(answer))


def test_an_answer_is_as_likely_in_a_batch_as_alone():
    model, answers = tiny_model(), sampled()
    with torch.no_grad():
        batch, there = log_probs(model, answers)
        for row, answer in enumerate(answers):
            alone, _ = log_probs(model, [answer])
            assert batch[row][there[row]].tolist() == pytest.approx(alone[0].tolist(), abs=1e-4)
    assert there.sum(1).tolist() == [len(answer) for answer in answers]


def test_what_earned_more_becomes_likelier_and_the_reference_holds_it_back():
    answers = sampled()
    advantages = [1.0 if place == 0 else -0.2 for place in range(len(answers))]
    group = AnswerGroup(ids(PROMPT), [ids(answer) for answer in answers], advantages)

    def trained(kl: float) -> tuple[float, float]:
        model = tiny_model()
        reference = copy.deepcopy(model)
        settings = AnswerTraining(rate=1e-2, updates=8, kl=kl, epsilon=5.0)
        found = train_on_answers(model, reference, [group], GRAMMAR, settings)
        with torch.no_grad():
            taken, there = log_probs(model, answers[:1])
        return float(taken[there].sum()), found["kl"]

    with torch.no_grad():
        before = float(log_probs(tiny_model(), answers[:1])[0].sum())
    free, away = trained(0.0)
    held, near = trained(10.0)
    assert free > before
    assert near < away
    assert free > held


def test_a_group_that_is_trained_on_in_parts_teaches_the_same(monkeypatch):
    answers = [ids(answer) for answer in sampled()]
    groups = [AnswerGroup(ids(PROMPT), answers, [1.0, -1.0, 0.5, 0.0, -0.5, 0.0])]
    groups.append(AnswerGroup(ids(PROMPT), answers[:2], [1.0, -1.0]))

    def trained() -> tuple[dict[str, float], dict[str, torch.Tensor]]:
        model = tiny_model()
        return train_on_answers(model, tiny_model(), groups, GRAMMAR, AnswerTraining()), weights(model)

    whole, at_once = trained()
    longest, words = max(map(len, answers)), tiny_model().config.vocab_size
    monkeypatch.setattr("lakewright.policy.training.settings.ANSWER_SCORES", 2 * longest * words)
    assert [len(part.answers) for part in groups[0].split_rows(words)] == [2, 2, 2]
    parted, in_parts = trained()
    assert parted == pytest.approx(whole, abs=1e-5)
    assert all(torch.allclose(at_once[name], in_parts[name], atol=1e-4) for name in at_once)
