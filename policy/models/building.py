"""Models in memory: built with random weights, set to train or to answer, and saved."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast, Qwen3Config
from transformers import Qwen3ForCausalLM as Qwen3

from lakewright.core_jax.support import record_listing, replacing_folder
from lakewright.policy.model_settings import ModelName, ModelSettings, resolve_shape
from lakewright.policy.models.devices import check_device, place_on_device
from lakewright.policy.models.weights import check_weight_memory
from lakewright.policy.networks.board_network import BoardConfig, BoardNetwork

TOKENS, TEXT = "tokens", "text"  # codecs, as config.json names them


@contextmanager
def use_torch_defaults() -> Iterator[None]:
    """Float32 and gradients in the block, because code of an environment may have set torch to something else."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(before)


@use_torch_defaults()
def build_model(
    settings: ModelSettings | ModelName, tokenizer: PreTrainedTokenizerFast, seed: int, device: str = "auto"
) -> PreTrainedModel:
    """Return a model with random weights for the tokenizer's vocabulary; its codec is `tokens`.

    Args:
        settings: the model's shape, or the name of a shape.
        tokenizer: the tokenizer whose vocabulary it reads.
        seed: seed of the weights.
        device: see `load_model`.
    """
    check_device(device)
    torch.manual_seed(seed)
    shape, special = resolve_shape(settings), _map_special_words(tokenizer)
    if shape.architecture == "board":
        return place_on_device(
            device, BoardNetwork(BoardConfig(**msgspec.structs.asdict(shape.board), **special, codec=TOKENS))
        )
    return place_on_device(device, _build_qwen3(shape, special))


def answers_only_plans(model: PreTrainedModel) -> bool:
    """Return True if a model answers nothing but plans, so that it cannot be the engineer."""
    return isinstance(model, BoardNetwork)


def _build_qwen3(settings: ModelSettings, special: dict[str, Any]) -> PreTrainedModel:
    config = Qwen3Config(
        hidden_size=settings.hidden,
        intermediate_size=settings.mlp,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        head_dim=settings.hidden // settings.heads,
        max_position_embeddings=settings.positions,
        tie_word_embeddings=False,
        codec=TOKENS,
        **special,
    )
    return Qwen3(config)


def _map_special_words(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    """Return the size of a vocabulary and its special words, by their names in configs."""
    return {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def save_checkpoint(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write model (safetensors, its config names the codec) and tokenizer to `folder`, completely or not at all."""
    model.config.codec = get_codec(model)
    with replacing_folder(folder) as beside:
        model.save_pretrained(beside)
        tokenizer.save_pretrained(beside)
        record_listing(beside)


def check_shape(settings: ModelSettings | ModelName, tokenizer: PreTrainedTokenizerFast) -> None:
    """Raise InputError if the memory of this machine cannot hold a model of that shape."""
    with torch.device("meta"):
        model = build_model(settings, tokenizer, 0, "cpu")
    check_weight_memory("model", model.num_parameters())


def get_codec(model: PreTrainedModel) -> str:
    """Return the codec that a checkpoint names; a checkpoint that names no codec is a language model."""
    return getattr(model.config, "codec", TEXT)


@contextmanager
def set_mode(model: PreTrainedModel, *, training: bool = False) -> Iterator[None]:
    """Within the context the model answers, or trains (with dropout); afterwards it is in its earlier mode again."""
    before = model.training
    model.train(training)
    try:
        yield
    finally:
        model.train(before)


def compute_in_bfloat16(model: PreTrainedModel) -> None:
    """Mark a model, so that `use_precision` makes it compute in bfloat16. Copies of the model are marked too."""
    model.computes_in = torch.bfloat16


def computes_in_bfloat16(model: PreTrainedModel) -> bool:
    """Return True if a model is marked by `compute_in_bfloat16`."""
    return getattr(model, "computes_in", None) is torch.bfloat16


def use_precision(model: PreTrainedModel) -> AbstractContextManager:
    """A context in which a marked model computes in bfloat16, its weights rounded once."""
    if computes_in_bfloat16(model):
        return torch.autocast(model.device.type, torch.bfloat16)
    return nullcontext()
