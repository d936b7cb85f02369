"""A model that is asked answers without dropout, and goes on in the mode that it was in."""

from collections.abc import Callable

import pytest
from transformers import PreTrainedModel

from lakewright.engineer.evidence import DeltaGrammar
from lakewright.experiments.environments.lake import lake_space
from lakewright.policy.inference import (
    SchemaSettings,
    answer_in_json,
    answer_under_grammar,
    sample,
    sample_json_ids,
    sample_under_grammar,
)
from lakewright.policy.models import load_model
from lakewright.policy.training import AnswerGroup, AnswerTraining, train_on_answers
from tests.support.models.byte_language_model import text_checkpoint
from tests.support.models.tiny_policy import tiny_model, tokenizer

ALLOWED = DeltaGrammar(lake_space(), (3, 5)).allowed
PROMPT = ["<now>", "<size_3>", "<q5>", "<delta>"]
IDS = list(range(8, 16))
SCHEMA, HOW = {"enum": [1, 2]}, SchemaSettings(reasoning=2, answer=4, temperature=1.0)
SAMPLED = {"copies": 2, "temperature": 1.0, "seed": 0}


def learn(model: PreTrainedModel) -> None:
    group = AnswerGroup(IDS, [[3, 4], [5]], [1.0, -1.0])
    train_on_answers(model, tiny_model(), [group], lambda answer: [range(9) for _ in answer], AnswerTraining())


CASES: dict[str, Callable[[PreTrainedModel], object]] = {
    "samples": lambda model: sample(model, tokenizer(), [IDS], max_new_tokens=3, temperature=1.0),
    "a greedy answer": lambda model: answer_under_grammar(model, tokenizer(), PROMPT, ALLOWED),
    "sampled answers": lambda model: sample_under_grammar(model, tokenizer(), PROMPT, ALLOWED, **SAMPLED),
    "training on answers": learn,
}


def modes_during(model: PreTrainedModel, ask: Callable[[PreTrainedModel], object]) -> set[bool]:
    """Whether the model, set to train, trains whenever it computes in `ask`; it is in that mode afterwards."""
    seen: set[bool] = set()
    model.train()
    hook = model.get_input_embeddings().register_forward_pre_hook(lambda module, _: seen.add(module.training))
    ask(model)
    hook.remove()
    assert all(module.training for module in model.modules()), "the model does not train any more"
    return seen


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_trains_answers_without_dropout_and_goes_on_training(name):
    assert modes_during(tiny_model(), CASES[name]) == {False}


def test_a_language_model_that_trains_answers_without_dropout_and_goes_on_training():
    model, words = load_model(text_checkpoint())
    messages = [{"role": "user", "content": "Which?"}]
    assert modes_during(model, lambda model: answer_in_json(model, words, messages, SCHEMA, HOW, seed=0)) == {False}
    assert modes_during(model, lambda model: sample_json_ids(model, words, IDS, SCHEMA, HOW, 2, seed=0)) == {False}
