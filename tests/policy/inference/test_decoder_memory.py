"""The buffers of answers, the largest part of the memory of decoding."""

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from lakewright.policy.inference.decoders import FIRST, TransformerDecoder
from tests.support.processes.tensor_memory import peak_of_tensors

LAYERS, BOARDS, COPIES = 8, 2, 4


@torch.inference_mode()
def test_buffers_that_grow_are_never_all_there_twice():
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": LAYERS, "vocab_size": 16}
    model = Qwen3ForCausalLM(Qwen3Config(**sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=16))
    decoder = TransformerDecoder(model, COPIES, 4 * FIRST)
    ids = torch.ones(BOARDS, 4, dtype=torch.long)
    with peak_of_tensors() as peak:
        decoder.read_prompts(ids, ids)
        decoder._make_room(FIRST + 1)
    assert decoder._answers[0][0].shape[3] == 2 * FIRST
    layer = 2 * BOARDS * COPIES * FIRST * 16 * 4  # bytes of keys and values before they grow
    assert 2 * LAYERS <= peak.bytes / layer <= 2 * LAYERS + 2.5, "one layer at a time is there before and after"
