"""A language model in miniature that can call tools: bytes as tokens, the chat template of Qwen3, random weights."""

import functools
from pathlib import Path

from trl.chat_template_utils import qwen3_chat_template

from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.models import build_model
from tests.support.models.byte_language_model import byte_tokenizer
from tests.support.processes.commands import elsewhere

SETTINGS = ModelSettings(hidden=32, layers=1, heads=2, mlp=32, positions=16384)


@functools.cache
def tool_calling_checkpoint() -> Path:
    """The model on disk, in the form of transformers."""
    folder = elsewhere() / "tool-calling-checkpoint"
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"eos_token": "<|im_end|>"})
    tokenizer.chat_template = qwen3_chat_template
    build_model(SETTINGS, tokenizer, seed=0).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
