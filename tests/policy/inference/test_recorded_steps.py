"""Steps of decoding that are recorded once and replayed, as on a GPU: here as a list of operations on the same tensors.

Whatever a step took from Python, such as the length of answers so far, would be that of the recording at each replay.
"""

from collections.abc import Callable

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from lakewright.policy.inference import decoders, sample
from lakewright.policy.inference.decoders import TransformerDecoder
from lakewright.policy.models import compute_in_bfloat16, use_precision
from tests.policy.inference.test_sampling import LENGTH, MODELS, PROMPTS, decided
from tests.policy.inference.test_unchanged_answers import PRECISIONS
from tests.support.deep import keep_quick
from tests.support.models.tiny_policy import tokenizer

# Operations of a step: in each layer, and besides. They were 55 and 17, for a model that computes in bfloat16.
A_LAYER, BESIDES = 42, 25
VIEWS = {"view", "t", "transpose", "expand", "slice", "select", "unsqueeze", "permute", "detach", "alias", "split"}
VIEWS |= {"_unsafe_view", "split_with_sizes", "unbind", "_reshape_alias", "new_zeros", "empty", "arange", "zeros"}


class RecordedOperations:
    """A `StepGraph` for the CPU: the operations of a step on fixed tensors.

    Unlike a GPU's, a recording runs the step; so what it made is the result of the first replay.
    """

    recorded = 0

    def __init__(self, step: Callable[[], torch.Tensor], *others: object, whole: bool = False) -> None:
        RecordedOperations.recorded += 1
        self._first: list[torch.Tensor] = []

        def run() -> torch.Tensor:
            self._first.append(step())
            return self._first[-1]

        self._operations = make_fx(run, tracing_mode="real")()

    def replay(self) -> torch.Tensor:
        return self._first.pop() if self._first else self._operations()


class Operations(TorchDispatchMode):
    """Counts the operations that start work."""

    count = 0

    def __torch_dispatch__(self, function, types, given=(), named=None):
        self.count += function.__name__.split(".")[0] not in VIEWS
        return function(*given, **(named or {}))


@pytest.fixture
def recording(monkeypatch):
    monkeypatch.setattr(decoders, "uses_graphs", lambda device: True)
    monkeypatch.setattr(decoders, "StepGraph", RecordedOperations)
    monkeypatch.setattr(decoders, "WORTH_RECORDING_AGAIN", 2)
    monkeypatch.setattr(decoders, "FIRST", 4)
    monkeypatch.setattr(RecordedOperations, "recorded", 0)


@pytest.mark.parametrize("precision", keep_quick(PRECISIONS, list(PRECISIONS)[:1]))
@pytest.mark.parametrize("kind", MODELS)
def test_recorded_steps_answer_as_others_do(kind, precision, monkeypatch, request):
    model = PRECISIONS[precision](decided(MODELS[kind]()))
    how = {"copies": 2, "max_new_tokens": LENGTH, "temperature": 0.0, "scored": False}
    expected = sample(model, tokenizer(), PROMPTS[:12], **how)
    request.getfixturevalue("recording")
    assert sample(model, tokenizer(), PROMPTS[:12], **how) == expected
    assert RecordedOperations.recorded


def computing_model(layers: int) -> PreTrainedModel:
    sizes = {"hidden_size": 48, "intermediate_size": 64, "num_attention_heads": 3, "num_key_value_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_hidden_layers=layers, head_dim=16, **sizes)).eval()
    compute_in_bfloat16(model)
    return model


@torch.no_grad()
def count_operations(layers: int) -> int:
    model, ids = computing_model(layers), torch.ones(4, 6, dtype=torch.long)
    with use_precision(model):
        decoder = TransformerDecoder(model, 2, 8, steady=True)
        decoder.read_prompts(ids, ids)
        with Operations() as operations:
            decoder.add_tokens(ids[:, :2])
    return operations.count


def test_a_decoded_token_takes_few_operations():
    one, two = count_operations(1), count_operations(2)
    assert two - one <= A_LAYER
    assert one - (two - one) <= BESIDES


def test_several_tokens_are_read_together_as_one_after_another():
    model, ids = decided(MODELS["grouped queries"]()), torch.tensor([PROMPTS[0], PROMPTS[0]])
    tokens = torch.tensor(PROMPTS[1][:6]).expand(2, 1, -1)
    found = []
    with torch.inference_mode():
        for parts in ([6], [1, 5], [1] * 6):
            decoder = TransformerDecoder(model, 1, 8)
            decoder.read_prompts(ids, torch.ones_like(ids))
            for part in tokens.split(parts, -1):
                logits = decoder.add_runs(part)
            found.append(logits)
    for logits in found[1:]:
        assert torch.allclose(logits, found[0], atol=1e-4)


def test_answers_that_are_forgotten_leave_no_trace():
    model, ids = decided(MODELS["llama"]()), torch.tensor(PROMPTS[:1])
    with torch.inference_mode():
        decoder = TransformerDecoder(model, 1, 8)
        decoder.read_prompts(ids, torch.ones_like(ids))
        expected = decoder.add_tokens(ids[:, :1]).clone()
        decoder.add_runs(ids[:, None, 2:6])
        decoder.rewind(0)
        assert torch.equal(decoder.add_tokens(ids[:, :1]), expected)
