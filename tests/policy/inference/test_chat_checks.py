"""What a language model lacks for a run in words is said in one line, before it is trained."""

from copy import deepcopy

import pytest
import torch

from lakewright.policy.board_play import check_chat_model
from lakewright.policy.codecs import TextCodec, TextSettings
from tests.support.models.byte_language_model import byte_tokenizer
from tests.support.models.small_language_model import language, language_model
from tests.support.models.tiny_policy import tasks
from tests.support.refusals import refused

TASK = tasks()[0]
NO_SYSTEM = "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
FAILING = "{{ raise_exception('System role not supported') }}"


def speaking(template: str | None):
    tokenizer = deepcopy(language())
    tokenizer.chat_template = template
    return tokenizer


class Silent(torch.nn.Module):
    """A model that ends every answer at once."""

    def __init__(self) -> None:
        super().__init__()
        self.model = language_model()

    def generate(self, input_ids, **_):
        return type("Output", (), {"sequences": torch.cat([input_ids, 0 * input_ids[:, :1] + END], 1)})()

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)


END = language().eos_token_id


def checked(tokenizer, model=None, **settings):
    return check_chat_model("a-model", model or language_model(), TextCodec(tokenizer, TextSettings(**settings)), TASK)


def test_a_model_that_speaks_passes():
    assert checked(language()) is None


TEMPLATES = {
    "none": (None, ["a-model", "chat template"]),
    "no system turn": (NO_SYSTEM, ["a-model", "system turn"]),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_that_do_not_serve_are_refused(name):
    template, problem = TEMPLATES[name]
    with refused(*problem):
        checked(speaking(template))


def test_a_template_that_refuses_a_system_turn_is_reported():
    tokenizer = language()
    codec = TextCodec(tokenizer, TextSettings())
    codec.tokenizer = speaking(FAILING)
    with refused("a-model:", "chat template", "System role not supported"):
        check_chat_model("a-model", language_model(), codec, TASK)


def test_a_tokenizer_that_splits_moves_is_refused_where_moves_are_to_be_single_tokens():
    with refused("a-model: ", "'up'", "3 tokens", "text.prompt"):
        checked(byte_tokenizer(), prompt="compact")


def test_a_model_that_answers_nothing_is_refused():
    with refused("a-model", "answers nothing"):
        checked(language(), Silent())
