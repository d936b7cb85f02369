"""The policy gradient on answers under a grammar: it makes what earned more likelier, and touches nothing else."""

import copy

import pytest
import torch

from engineer.evidence import DeltaGrammar
from policy.inference import log_probs_under_grammar, sample_under_grammar
from policy.training import AnswerGroup, AnswerTraining, train_on_answers
from tests.support.models.tiny_policy import tiny_model, tokenizer

ALLOWED = DeltaGrammar((3, 5)).allowed
PROMPT = ["<now>", "<size_3>", "<q5>", "<size_5>", "<q2>", "<delta>"]


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
        batch, there = log_probs_under_grammar(model, tokenizer(), PROMPT, answers, ALLOWED)
        for row, answer in enumerate(answers):
            alone, _ = log_probs_under_grammar(model, tokenizer(), PROMPT, [answer], ALLOWED)
            assert batch[row][there[row]].tolist() == pytest.approx(alone[0].tolist(), abs=1e-4)
    assert there.sum(1).tolist() == [len(answer) for answer in answers]


def test_what_earned_more_becomes_likelier_and_the_reference_holds_it_back():
    answers = sampled()
    advantages = [1.0 if place == 0 else -0.2 for place in range(len(answers))]
    group = AnswerGroup(PROMPT, answers, advantages)

    def trained(kl: float) -> tuple[float, float]:
        model = tiny_model()
        reference = copy.deepcopy(model)
        settings = AnswerTraining(rate=1e-2, updates=8, kl=kl, epsilon=5.0)
        found = train_on_answers(model, reference, tokenizer(), [group], ALLOWED, settings)
        with torch.no_grad():
            taken, there = log_probs_under_grammar(model, tokenizer(), PROMPT, answers[:1], ALLOWED)
        return float(taken[there].sum()), found["kl"]

    with torch.no_grad():
        before = float(log_probs_under_grammar(tiny_model(), tokenizer(), PROMPT, answers[:1], ALLOWED)[0].sum())
    free, away = trained(0.0)
    held, near = trained(10.0)
    assert free > before
    assert near < away
    assert free > held
