"""The trainee's network: a tiny Qwen3 from scratch, or any saved checkpoint; weights as safetensors."""

from pathlib import Path
from typing import Literal, cast

import msgspec
import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast, Qwen3Config
from transformers import Qwen3ForCausalLM as Qwen3

from core_jax.errors import InputError
from core_jax.files import replacing_folder
from core_jax.ranges import Count
from policy.codecs.tokens import VOCABULARY

TOKENS, TEXT = "tokens", "text"  # codecs, as config.json names them


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


FAMILY = {
    "0.6M": ModelSettings(),
    "3M": ModelSettings(hidden=256, layers=6, heads=8, mlp=320),
    "25M": ModelSettings(hidden=512, layers=8, heads=8, mlp=1344),
    "100M": ModelSettings(hidden=768, layers=14, heads=12, mlp=2048),
}
ModelName = Literal["0.6M", "3M", "25M", "100M"]


def build_model(settings: ModelSettings | ModelName, tokenizer: PreTrainedTokenizerFast, seed: int) -> PreTrainedModel:
    """A Qwen3-architecture model with random weights for the tokenizer's vocabulary; it speaks the `tokens` codec."""
    if isinstance(settings, str):
        settings = FAMILY[settings]
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
        codec=TOKENS,  # type: ignore[call-arg]
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


def load_checkpoint(folder: Path, codec: str = TOKENS) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Reads a checkpoint folder, safetensors only. Raises InputError where it is not one, or speaks another codec."""
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: no {name}; give a checkpoint folder with model and tokenizer")
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, local_files_only=True)
        tokenizer = cast(PreTrainedTokenizerFast, AutoTokenizer.from_pretrained(folder, local_files_only=True))
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise InputError(f"{folder}: not a readable checkpoint ({first_line}); train it again") from error
    _check_codec(folder, codec, model, tokenizer)
    return on_best_device(cast(PreTrainedModel, model)), tokenizer


def codec_of(model: PreTrainedModel) -> str:
    """The codec that a checkpoint names; one that names none is a language model."""
    return getattr(model.config, "codec", TEXT)


def _check_codec(folder: Path, codec: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    if codec_of(model) != codec:
        raise InputError(
            f"{folder}: config.json: codec is {codec_of(model)!r}, this needs {codec!r}; choose another checkpoint"
        )
    if codec == TOKENS and tokenizer.convert_ids_to_tokens(list(range(len(VOCABULARY)))) != list(VOCABULARY):
        raise InputError(
            f"{folder}: tokenizer.json: its words are not those of this version's codec {codec!r}; train it again"
        )
    if len(tokenizer) > model.config.vocab_size:
        raise InputError(
            f"{folder}: tokenizer.json has {len(tokenizer)} words, config.json {model.config.vocab_size}; "
            "take both from one checkpoint"
        )
