"""Codecs of problems that are asked and answered in text: bytes, for models trained from scratch, and chat templates.

The `bytes` codec has one token for each byte. Prompt: its bytes in UTF-8, then `<begin>`, with which the answer begins.
Answer: its bytes, then `<end>`.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.policy.codecs.codec import TextCodec
from lakewright.policy.codecs.settings import TextSettings
from lakewright.policy.codecs.text_answer import Refused, read_after_thinking

BYTES = "bytes"  # the codec, as config.json names it
BEGIN, END, PAD = 256, 257, 258  # ids; the id of a byte is its value
BEGIN_TOKEN, END_TOKEN, PAD_TOKEN = "<begin>", "<end>", "<pad>"
NO_TEXT = "\N{REPLACEMENT CHARACTER}"  # stands in a text for what cannot be decoded
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))  # bytes that files of tokenizers write as they are


def _name_bytes() -> tuple[str, ...]:
    """Return the letter by which files of tokenizers name each byte: itself, or one of those from U+0100 on."""
    others = iter(range(256, 512))
    return tuple(chr(byte) if byte in _PRINTED else chr(next(others)) for byte in range(256))


BYTE_VOCABULARY = (*_name_bytes(), BEGIN_TOKEN, END_TOKEN, PAD_TOKEN)


class ProblemCodec(Protocol):
    """The texts of problems as tokens, one at a time."""

    tokenizer: PreTrainedTokenizerFast
    batch: int  # answers decoded together
    scored: bool  # as of a `Play`

    def encode_prompt(self, text: str) -> list[int]:
        """Return the prompt, up to where the answer begins. Raises InputError on a lone surrogate."""
        ...

    def encode_answer(self, text: str) -> list[int]:
        """Return the tokens of an answer, its end included. Raises InputError on a lone surrogate."""
        ...

    def decode_answer(self, answer: list[int]) -> str:
        """Return the text of an answer, complete or cut off, without its thought."""
        ...


class ByteCodec:
    """One token for each byte, for models trained from scratch."""

    batch = 512
    scored = True

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer

    def encode_prompt(self, text: str) -> list[int]:
        """See `ProblemCodec`."""
        _check_text(text)
        return [*encode_text(text), BEGIN]

    def encode_answer(self, text: str) -> list[int]:
        """See `ProblemCodec`."""
        _check_text(text)
        return [*encode_text(text), END]

    def decode_answer(self, answer: list[int]) -> str:
        """See `ProblemCodec`."""
        return decode_text(answer)


class ChatCodec:
    """The chat template of a language model, or the bare prompt if the model has no template."""

    scored = False

    def __init__(self, tokenizer: PreTrainedTokenizerFast, settings: TextSettings = TextSettings()) -> None:  # noqa: B008
        self.tokenizer, self.batch = tokenizer, settings.batch
        self._codec = TextCodec(tokenizer, msgspec.structs.replace(settings, prompt="full"))  # no words about lakes
        self._begin = self._codec.encode_request(
            ""
        )  # whether a template begins a thought does not depend on the problem
        self._ends = self._codec.thoughts.split(self._begin, [])[1]

    def encode_prompt(self, text: str) -> list[int]:
        """See `ProblemCodec`."""
        _check_text(text)
        return self._codec.encode_request(text)

    def encode_answer(self, text: str) -> list[int]:
        """See `ProblemCodec`; a thought that the template began is ended first."""
        _check_text(text)
        words = f"\n{self._ends}\n\n{text}" if self._ends else text
        return [*self.tokenizer.encode(words, add_special_tokens=False), self.tokenizer.eos_token_id]

    def decode_answer(self, answer: list[int]) -> str:
        """See `ProblemCodec`; empty if a thought is never ended."""
        said = read_after_thinking(self._codec.decode_text(self._begin, answer))
        return "" if isinstance(said, Refused) else said


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the text {text!r:.60} has a lone surrogate at place {error.start}, which UTF-8 cannot write; leave it out"
        ) from error


def build_byte_tokenizer(extra: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """Return a tokenizer of this vocabulary and `extra` words, for the files of a checkpoint and for trainers."""
    words = dict.fromkeys((*BYTE_VOCABULARY, *extra))
    core = Tokenizer(BPE({word: number for number, word in enumerate(words)}, []))
    core.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token=BEGIN_TOKEN, eos_token=END_TOKEN, pad_token=PAD_TOKEN, padding_side="left"
    )


def encode_text(text: str) -> list[int]:
    """Return the ids of the bytes of a text. Raises UnicodeEncodeError on a lone surrogate."""
    return list(text.encode())


def decode_text(answer: Sequence[int]) -> str:
    """Return the text of an answer up to its end, with NO_TEXT for bytes that are not UTF-8 and for any other token."""
    said = answer[: answer.index(END)] if END in answer else answer
    return b"".join(bytes([token]) if token < BEGIN else NO_TEXT.encode() for token in said).decode(errors="replace")
