"""A language model in miniature, on disk: a byte-level BPE learned from prompts, a chat template, a small Qwen3."""

import functools
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from lakewright.policy.codecs import encode_prompt
from lakewright.policy.models import save_checkpoint
from tests.support.boards.sample_boards import each, mixed_boards
from tests.support.processes.commands import elsewhere

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
    "{%- endif %}"
)


@functools.cache
def language() -> PreTrainedTokenizerFast:
    """The tokenizer, of the form of Qwen3's."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=[*SPECIAL], initial_alphabet=alphabet)
    core.train_from_iterator([encode_prompt(board) for board in each(mixed_boards(0, 20, 5))], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def language_model(seed: int = 0, head: int = 16, longest: int = 2048) -> Qwen3ForCausalLM:
    """A model with random weights; its config names no codec, as those on the hub.

    head: the size of an attention head; longest: the tokens that it can read.
    """
    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "max_position_embeddings": longest}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": head}
    ids = {"eos_token_id": language().eos_token_id, "pad_token_id": language().pad_token_id, "bos_token_id": None}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=len(language()), **sizes, **heads, **ids))


@functools.cache
def language_checkpoint() -> Path:
    """Model and tokenizer in a folder."""
    folder = elsewhere() / "language"
    save_checkpoint(folder, language_model(), language())
    return folder
