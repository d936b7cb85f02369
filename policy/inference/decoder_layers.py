"""The layers of Qwen3 and Llama as `TransformerDecoder` runs them: few operations, and each in its own precision.

A model that computes in bfloat16 with weights in float32 does here what it does under torch's autocast: products of
matrices in bfloat16, sums, norms and rotations in float32. Autocast converts weights and states at each operation.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values
SMALL = 2**22  # parameters of matrices that are copied next to each other


def computing_dtype(model: PreTrainedModel) -> torch.dtype:
    """Return the type of the products of a model: autocast's if it is on, else the weights'."""
    kind = model.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else model.dtype


class _Matrices:
    """Matrices of the same input, joined into one if that copies little: then calls cost more than the copy."""

    def __init__(self, dtype: torch.dtype, *linears: nn.Linear) -> None:
        weights = [linear.weight for linear in linears]
        self._rows = [len(weight) for weight in weights]
        joined = weights[0].dtype != dtype or sum(weight.numel() for weight in weights) <= SMALL
        parts = [torch.cat([weight.to(dtype) for weight in weights])] if joined else weights
        self._weights = parts

    def multiply(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """Return the product of each matrix with the states [..., hidden]."""
        x = x.to(self._weights[0].dtype)
        if len(self._weights) == 1:
            return functional.linear(x, self._weights[0]).split(self._rows, -1)
        return [functional.linear(x, weight) for weight in self._weights]


class DecoderLayer:
    """One layer of Qwen3 or Llama. dtype: for its products, see `computing_dtype`."""

    def __init__(self, layer: Any, dtype: torch.dtype) -> None:
        self._layer, self._attention, self._mlp, self._dtype = layer, layer.self_attn, layer.mlp, dtype
        self._into = _Matrices(dtype, self._attention.q_proj, self._attention.k_proj, self._attention.v_proj)
        self._gate_up = _Matrices(dtype, self._mlp.gate_proj, self._mlp.up_proj)
        self._out, self._down = self._attention.o_proj.weight.to(dtype), self._mlp.down_proj.weight.to(dtype)

    def forward(
        self,
        x: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        prompt: Pair,
        answer: Pair,
        rows: torch.Tensor,
        bias: torch.Tensor,
    ) -> torch.Tensor:
        """Return the states [B, G, N, hidden] after the layer, and put the keys and values of its tokens in `answer`.

        Args:
            x: [B, G, N, hidden], the states before it.
            cos, sin: [B, G, N, 1, d], the rotary angles of the tokens; the first half of the sines is negated.
            prompt: keys and values of prompts, [B, h, P, d].
            answer: buffers of the keys and values of answers, [B, h, G, T, d].
            rows: int [N], where these are in the buffers.
            bias: [B, N, P + T], minus infinity at what a token does not see.
        """
        attention = self._attention
        parts = self._into.multiply(apply_norm(self._layer.input_layernorm, x))
        query, key, value = (part.unflatten(-1, (-1, attention.head_dim)) for part in parts)  # [B, G, N, heads, d]
        if isinstance(attention, Qwen3Attention):
            query, key = apply_norm(attention.q_norm, query), apply_norm(attention.k_norm, key)
        turned = _apply_rotary(torch.cat([query, key], 3).to(self._dtype), cos, sin)
        query, key = turned.split([query.shape[3], key.shape[3]], 3)
        keys, values = answer
        keys.index_copy_(3, rows, key.to(keys.dtype).permute(0, 3, 1, 2, 4))
        values.index_copy_(3, rows, value.permute(0, 3, 1, 2, 4))
        query = (query * attention.scaling).to(self._dtype).unflatten(3, (-1, attention.num_key_value_groups))
        attended = attend_to_both(query.permute(0, 3, 1, 4, 2, 5), prompt, answer, bias)
        attended = attended.permute(0, 2, 4, 1, 3, 5).flatten(3)  # [B, G, N, h * r * d]
        x = x + functional.linear(attended, self._out)
        gate, up = self._gate_up.multiply(apply_norm(self._layer.post_attention_layernorm, x))
        return x + functional.linear(self._mlp.act_fn(gate) * up, self._down)


def attend_to_both(query: torch.Tensor, prompt: Pair, answer: Pair, bias: torch.Tensor) -> torch.Tensor:
    """Return the attention to a board's prompt and to the answer itself, [B, h, G, r, N, d].

    Args:
        query: [B, h, G, r, N, d].
        prompt: keys and values [B, h, P, d].
        answer: keys and values [B, h, G, T, d].
        bias: [B, N, P + T], minus infinity at what a token does not see.
    """
    each = query.shape[3:5]
    # The prompt of a board is shared by its G answers, so their queries are rows of one matrix product. One softmax
    # over both parts gives the same weights as attention to prompt and answer joined, which are never copied together.
    together = query.flatten(3, 4)  # [B, h, G, r * N, d]
    before = (together.flatten(2, 3) @ prompt[0].mT).unflatten(2, together.shape[2:4])
    scores = torch.cat([before, together @ answer[0].mT], -1).unflatten(3, each) + bias[:, None, None, None]
    weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype).flatten(3, 4)
    of_prompt, of_answer = weights.split([before.shape[-1], scores.shape[-1] - before.shape[-1]], -1)
    attended = (of_prompt.flatten(2, 3) @ prompt[1]).unflatten(2, together.shape[2:4]) + of_answer @ answer[1]
    return attended.unflatten(3, each)


def apply_norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the RMS norm of x in the precision of the norm's weight, in one fused operation."""
    return functional.rms_norm(x.to(norm.weight.dtype), (x.shape[-1],), norm.weight, norm.variance_epsilon)


def _apply_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Return the rotary embedding of [B, G, N, heads, d] by angles [B, G, N, 1, d], see `DecoderLayer.forward`."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin
