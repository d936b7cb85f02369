"""Checks that a language model can be asked for plans and designs, made with the model before it is trained."""

import jinja2
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.types import MOVES
from lakewright.policy.codecs.codec import TextCodec
from lakewright.policy.inference.sampling import sample
from lakewright.policy.tasks import BoardTask

ENOUGH = 8  # tokens within which a model must answer something
SYSTEM, USER = "You are a lake.", "How cold are you?"


def check_chat_model(place: str, model: PreTrainedModel, codec: TextCodec, task: BoardTask) -> None:
    """Raise InputError, one line that names `place`, unless the model can be asked for plans and designs.

    It needs a chat template with a system turn, a tokenizer that keeps moves whole, and some answer to `task`.

    Args:
        place: the name of the model in messages.
        model: answers `task`.
        codec: for its prompts and answers.
        task: any board.
    """
    _check_template(place, codec.tokenizer)
    _check_moves(place, codec)
    _check_answer(place, model, codec, task)


def _check_template(place: str, tokenizer: PreTrainedTokenizerFast) -> None:
    """Check that the chat template keeps both turns of a conversation."""
    if not tokenizer.chat_template:
        raise InputError(f"{place}: its tokenizer has no chat template; choose a model that was trained to chat")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    try:
        said = str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    except jinja2.TemplateError as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"{place}: its chat template fails ({first_line:.100}); choose another model") from error
    for role, words in (("system", SYSTEM), ("user", USER)):
        if words not in said:
            raise InputError(
                f"{place}: its chat template drops the {role} turn, which the engineer needs; choose another model"
            )


def _check_moves(place: str, codec: TextCodec) -> None:
    """Check that each move is read back unchanged and, with the compact prompt, that each is one token."""
    for move, letter in enumerate(MOVES):
        word = codec.move_word(move)
        tokens = codec.tokenizer.encode(f" {word}", add_special_tokens=False)
        if codec.settings.prompt == "compact" and len(tokens) != 1:
            raise InputError(
                f"{place}: its tokenizer splits the move {word!r} into {len(tokens)} tokens; set text.prompt=full"
            )
        if str(codec.tokenizer.decode(tokens)).strip() != word:
            raise InputError(f"{place}: its tokenizer does not give back the move {word!r} ({letter}); choose another")


@torch.inference_mode()
def _check_answer(place: str, model: PreTrainedModel, codec: TextCodec, task: BoardTask) -> None:
    """Check that the model answers something to `task`.

    Args:
        place, model, codec, task: as for `check_chat_model`.
    """
    prompt = codec.encode_prompt(task.board)
    made = sample(model, codec.tokenizer, [prompt], max_new_tokens=ENOUGH, temperature=0.0, scored=False)
    if not codec.decode_text(prompt, made.answers[0]).strip():
        raise InputError(f"{place}: answers nothing to the prompt of a board; choose a model that was trained to chat")
