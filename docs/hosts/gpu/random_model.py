"""A language model of the shape of a Qwen3, with random weights and a small tokenizer: for measurements, not for use.

    python docs/hosts/gpu/random_model.py runs/random-4b 4b

Its tokenizer knows the bytes and some pieces of prompts; its other words are made up, as many as Qwen3 has, so that
any answer can be written as text. The weights are in bf16, drawn on the GPU if there is one.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.policy.codecs import encode_prompt
from lakewright.policy.models import save_checkpoint
from lakewright.policy.training import tasks_of

SHAPES = {  # hidden width, MLP, layers, heads; all with 8 heads of keys, 128 wide, and tied words
    "4b": (2560, 9728, 36, 32),
    "1.7b": (2048, 6144, 28, 16),
    "0.6b": (1024, 3072, 28, 16),
    "tiny": (64, 128, 2, 16),
}
WORDS, NAMED = 151_936, 151_669  # of the matrix, and of the tokenizer
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}"
    "{%- endif %}"
)


def make_tokenizer(words: int) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer with pieces of prompts, and made-up words up to that number."""
    tasks = tasks_of(generate(EnvConfig.single(5, 2, hole_ratio=0.2, wait_ratio=0.5), 0, 32))
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=[*SPECIAL], initial_alphabet=alphabet)
    core.train_from_iterator([encode_prompt(task.board) for task in tasks], trainer)
    learned = json.loads(core.to_str())["model"]
    made_up = [f"~{number}" for number in range(words - len(learned["vocab"]))]
    vocabulary = learned["vocab"] | {word: len(learned["vocab"]) + place for place, word in enumerate(made_up)}
    core.model = models.BPE(vocabulary, [tuple(pair) for pair in learned["merges"]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_model(shape: str, tokenizer: PreTrainedTokenizerFast, words: int) -> Qwen3ForCausalLM:
    """The model, of seed 0."""
    hidden, mlp, layers, heads = SHAPES[shape]
    config = Qwen3Config(
        vocab_size=words,
        hidden_size=hidden,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40_960,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        dtype=torch.bfloat16,
    )
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        return Qwen3ForCausalLM(config).to(torch.bfloat16)


def main() -> None:
    """Writes the model to a folder."""
    folder, shape = sys.argv[1:]
    few = shape == "tiny"
    tokenizer = make_tokenizer(2000 if few else NAMED)
    save_checkpoint(Path(folder), make_model(shape, tokenizer, 2048 if few else WORDS), tokenizer)


if __name__ == "__main__":
    main()
