"""How problems that are asked and answered in text become tokens, and tokens become answers."""

from typing import Protocol

import msgspec
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.policy.codecs import byte_tokens
from lakewright.policy.codecs.codec import TextCodec
from lakewright.policy.codecs.settings import TextSettings
from lakewright.policy.codecs.text_answer import Refused, read_after_thinking

THOUGHT_ENDS = "</think>"


class ProblemCodec(Protocol):
    """The texts of problems as tokens, one at a time."""

    tokenizer: PreTrainedTokenizerFast
    batch: int  # answers decoded together
    scored: bool  # as of a `Play`

    def encode_prompt(self, text: str) -> list[int]:
        """The prompt, up to where the answer begins. Raises InputError on what is no text."""
        ...

    def encode_answer(self, text: str) -> list[int]:
        """The tokens of an answer, its end included. Raises InputError on what is no text."""
        ...

    def decode_answer(self, answer: list[int]) -> str:
        """What an answer says, as far as it goes where its end is missing; a thought is left out."""
        ...


class ByteCodec:
    """A token a byte, for models trained from scratch: see `byte_tokens`."""

    batch = 512
    scored = True

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer

    def encode_prompt(self, text: str) -> list[int]:
        """As `ProblemCodec`."""
        _check_text(text)
        return [*byte_tokens.encode_text(text), byte_tokens.BEGIN]

    def encode_answer(self, text: str) -> list[int]:
        """As `ProblemCodec`."""
        _check_text(text)
        return [*byte_tokens.encode_text(text), byte_tokens.END]

    def decode_answer(self, answer: list[int]) -> str:
        """As `ProblemCodec`."""
        return byte_tokens.decode_text(answer)


class ChatCodec:
    """The chat template of a language model, or the prompt as it is where the model has none."""

    scored = False

    def __init__(self, tokenizer: PreTrainedTokenizerFast, settings: TextSettings = TextSettings()) -> None:  # noqa: B008
        self.tokenizer, self.batch = tokenizer, settings.batch
        self._codec = TextCodec(tokenizer, msgspec.structs.replace(settings, prompt="full"))  # no words about lakes
        self._begin = self._codec.chat("")  # whether a template begins a thought does not depend on the problem
        self._thinks = bool(self._codec.words(self._begin, []))

    def encode_prompt(self, text: str) -> list[int]:
        """As `ProblemCodec`."""
        _check_text(text)
        return self._codec.chat(text)

    def encode_answer(self, text: str) -> list[int]:
        """As `ProblemCodec`; a thought that the template began is ended first."""
        _check_text(text)
        words = f"\n{THOUGHT_ENDS}\n\n{text}" if self._thinks else text
        return [*self.tokenizer.encode(words, add_special_tokens=False), self.tokenizer.eos_token_id]

    def decode_answer(self, answer: list[int]) -> str:
        """As `ProblemCodec`; nothing where a thought is never ended."""
        said = read_after_thinking(self._codec.words(self._begin, answer))
        return "" if isinstance(said, Refused) else said


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text {text!r:.60} has a lone surrogate at place {error.start}, which UTF-8 cannot write; leave it out"
        ) from error
