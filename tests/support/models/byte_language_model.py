"""A language model in miniature: bytes as tokens, a few thousand random weights."""

import functools
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.models import TEXT, build_model, save_checkpoint
from tests.support.processes.commands import elsewhere

SETTINGS = ModelSettings(hidden=32, layers=1, heads=2, mlp=32, positions=16384)
CHAT = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<assistant>"


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A token a byte, with a chat template."""
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<|end|>", "<|pad|>"]
    core = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|end|>", pad_token="<|pad|>", chat_template=CHAT)


@functools.cache
def text_checkpoint() -> Path:
    """The model on disk."""
    folder = elsewhere() / "text-checkpoint"
    tokenizer = byte_tokenizer()
    model = build_model(SETTINGS, tokenizer, seed=0)
    model.config.codec = TEXT
    save_checkpoint(folder, model, tokenizer)
    return folder
