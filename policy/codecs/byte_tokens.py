"""The `bytes` codec: one token for each byte of a text, for models trained from scratch.

Prompt: its bytes in UTF-8, then `<begin>`, with which the answer begins. Answer: its bytes, then `<end>`.
"""

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

BYTES = "bytes"  # the codec, as config.json names it
BEGIN, END, PAD = 256, 257, 258  # ids; those of bytes are their values
BEGIN_TOKEN, END_TOKEN, PAD_TOKEN = "<begin>", "<end>", "<pad>"
NO_TEXT = "\N{REPLACEMENT CHARACTER}"  # what stands in a text for bytes and tokens that are none
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))  # bytes that files of tokenizers write as they are


def _name_bytes() -> tuple[str, ...]:
    """The letter by which files of tokenizers name each byte: itself, or one of those from U+0100 on."""
    others = iter(range(256, 512))
    return tuple(chr(byte) if byte in _PRINTED else chr(next(others)) for byte in range(256))


BYTE_VOCABULARY = (*_name_bytes(), BEGIN_TOKEN, END_TOKEN, PAD_TOKEN)


def build_byte_tokenizer(extra: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer of this codec's vocabulary and `extra` words, for the files of a checkpoint and for trainers."""
    words = dict.fromkeys((*BYTE_VOCABULARY, *extra))
    core = Tokenizer(BPE({word: number for number, word in enumerate(words)}, []))
    core.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token=BEGIN_TOKEN, eos_token=END_TOKEN, pad_token=PAD_TOKEN, padding_side="left"
    )


def encode_text(text: str) -> list[int]:
    """The ids of the bytes of a text. Raises UnicodeEncodeError on a lone surrogate, which is no text."""
    return list(text.encode())


def decode_text(answer: Sequence[int]) -> str:
    """The text of an answer up to its end; NO_TEXT for bytes that are no UTF-8, and for any other token in it."""
    said = answer[: answer.index(END)] if END in answer else answer
    return b"".join(bytes([token]) if token < BEGIN else NO_TEXT.encode() for token in said).decode(errors="replace")
