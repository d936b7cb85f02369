"""A Llama in miniature as a GGUF file, with the tokenizer of the small language model in it."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tests.support.models.small_language_model import TEMPLATE, language

HIDDEN, HEADS, MLP, LAYERS = 32, 2, 32, 1
SHAPES = {"attn_q": (HIDDEN, HIDDEN), "attn_k": (HIDDEN, HIDDEN), "attn_v": (HIDDEN, HIDDEN)}
SHAPES |= {"attn_output": (HIDDEN, HIDDEN)}
SHAPES |= {"ffn_gate": (MLP, HIDDEN), "ffn_up": (MLP, HIDDEN), "ffn_down": (HIDDEN, MLP)}
SHAPES |= {"attn_norm": (HIDDEN,), "ffn_norm": (HIDDEN,)}


def write_gguf(
    path: Path, architecture: str = "llama", template: str | None = TEMPLATE, lacks: str = "", **claimed: int
) -> Path:
    """Random weights, the same each time.

    lacks: the tensor that is left out. claimed: sizes in the header that are not those of the weights.
    """
    writer = gguf.GGUFWriter(path, architecture)
    sizes = {"block_count": LAYERS, "embedding_length": HIDDEN, "feed_forward_length": MLP, **claimed}
    for name, size in sizes.items():
        writer.add_uint32(f"{architecture}.{name}", size)
    writer.add_context_length(512)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    _add_tokenizer(writer, template)
    chance = np.random.default_rng(0)
    words = len(language())
    for name, shape in _tensors(words).items():
        if name == lacks:
            continue
        writer.add_tensor(name, (0.3 * chance.standard_normal(shape)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors(words: int) -> dict[str, tuple[int, ...]]:
    blocks = {f"blk.{layer}.{name}.weight": shape for layer in range(LAYERS) for name, shape in SHAPES.items()}
    return {"token_embd.weight": (words, HIDDEN), **blocks, "output_norm.weight": (HIDDEN,)}


def _add_tokenizer(writer: Any, template: str | None) -> None:
    tokenizer = language()
    made = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    by_id = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    special = {tokenizer.eos_token, tokenizer.pad_token, "<|im_start|>"}
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(by_id)
    kinds = (gguf.TokenType.CONTROL if word in special else gguf.TokenType.NORMAL for word in by_id)
    writer.add_token_types(list(kinds))
    writer.add_token_merges([" ".join(merge) for merge in made["merges"]])
    writer.add_bos_token_id(tokenizer.get_vocab()["<|im_start|>"])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_pad_token_id(tokenizer.pad_token_id)
    if template:
        writer.add_chat_template(template)
