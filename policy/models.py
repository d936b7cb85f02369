"""The trainee's network: a tiny Qwen3 from scratch, or any saved checkpoint; weights as safetensors."""

from pathlib import Path
from typing import cast

import msgspec
import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast, Qwen3Config
from transformers import Qwen3ForCausalLM as Qwen3

from core_jax.errors import InputError
from core_jax.files import replacing_folder
from core_jax.ranges import Count


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of the from-scratch model; the default has 0.6 million parameters."""

    hidden: Count = 128
    layers: Count = 4
    heads: Count = 4
    mlp: Count = 192
    positions: Count = 512

    def __post_init__(self) -> None:
        if self.hidden % (2 * self.heads):
            raise ValueError(f"hidden is {self.hidden}, no multiple of 2 x {self.heads} heads; make it one")


def build_model(settings: ModelSettings, tokenizer: PreTrainedTokenizerFast, seed: int) -> PreTrainedModel:
    """A Qwen3-architecture model with random weights for the tokenizer's vocabulary."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=settings.hidden,
        intermediate_size=settings.mlp,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        head_dim=settings.hidden // settings.heads,
        max_position_embeddings=settings.positions,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return on_best_device(Qwen3(config))


def on_best_device(model: PreTrainedModel) -> PreTrainedModel:
    """The model on the GPU if there is one, else where it is."""
    if torch.cuda.is_available():
        cast(torch.nn.Module, model).cuda()
    return model


def save_checkpoint(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Writes model (safetensors) and tokenizer to `folder`, whole or not at all."""
    with replacing_folder(folder) as beside:
        model.save_pretrained(beside)
        tokenizer.save_pretrained(beside)


def load_checkpoint(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Reads a checkpoint folder, safetensors only. Raises InputError where it is not one."""
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: no {name}; give a checkpoint folder with model and tokenizer")
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise InputError(f"{folder}: not a readable checkpoint ({first_line}); train it again") from error
    return on_best_device(cast(PreTrainedModel, model)), cast(PreTrainedTokenizerFast, tokenizer)
