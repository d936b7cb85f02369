"""What a language model lacks for a run in words is said in one line, before it is trained."""

from copy import deepcopy

import msgspec
import pytest
import torch

from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.board_play import check_chat_model
from lakewright.policy.codecs import TextCodec, TextSettings, check_template
from lakewright.policy.training import WarmupSettings
from tests.support.models.byte_language_model import byte_tokenizer
from tests.support.models.small_language_model import language, language_model
from tests.support.models.tiny_policy import tasks, tiny_run
from tests.support.processes.commands import HOUSE
from tests.support.refusals import refused

TASK = tasks()[0]
ADDITION = f"{HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
NO_SYSTEM = "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
REFUSING = (  # as Gemma's
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
)


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


def test_a_model_without_a_template_is_refused():
    with refused("a-model", "chat template"):
        checked(speaking(None))


def test_a_template_must_serve_the_turns_that_are_sent():
    for template in (None, NO_SYSTEM, REFUSING):
        assert check_template("a-model", speaking(template)) is None
    with refused("a-model", "drops the system turn", "teacher self", "another teacher"):
        check_template("a-model", speaking(NO_SYSTEM), "teacher self")
    with refused("a-model", "system turn", "text.prompt compact", "System role not supported", "another text.prompt"):
        check_template("a-model", speaking(REFUSING), "text.prompt compact")
    with refused("a-model", "user turn", "can only concatenate"):
        check_template("a-model", speaking("{{ messages[0].content + 1 }}"))


@pytest.mark.parametrize(
    ("environment", "options"), [("lake", {}), ("lake", {"text": TextSettings(prompt="compact")}), (ADDITION, {})]
)
def test_a_run_whose_model_refuses_a_turn_ends_before_its_first_step(environment, options):
    settings = msgspec.structs.replace(
        load_settings("text", [f"environment={ADDITION}"]), codec="text", start="a-model"
    )
    if environment == "lake":
        settings = tiny_run(codec="text", start="a-model", warmup=WarmupSettings(steps=0), **options)
    trainee = make_trainee(msgspec.structs.replace(settings, teacher="self"))
    with refused("a-model", "system turn", "teacher self", "System role not supported"):
        trainee.check_start(language_model(), speaking(REFUSING), trainee.draw_held_out()[:4])


def test_a_tokenizer_that_splits_moves_is_refused_where_moves_are_to_be_single_tokens():
    with refused("a-model: ", "'up'", "3 tokens", "text.prompt"):
        checked(byte_tokenizer(), prompt="compact")


def test_a_model_that_answers_nothing_is_refused():
    with refused("a-model", "answers nothing"):
        checked(language(), Silent())
