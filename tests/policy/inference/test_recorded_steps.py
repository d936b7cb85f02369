"""Steps of decoding that are recorded once and replayed, as on a GPU: here as a list of operations on the same tensors.

Whatever a step took from Python, such as the length of answers so far, would be that of the recording at each replay.
"""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

from lakewright.policy.inference import decoders, sample, sampling
from lakewright.policy.inference.decoders import TransformerDecoder
from lakewright.policy.models import compute_in_bfloat16, use_precision
from tests.policy.inference.test_sampling import LENGTH, MODELS, PROMPTS, decided
from tests.policy.inference.test_unchanged_answers import PRECISIONS
from tests.support.deep import keep_quick
from tests.support.models.tiny_policy import tokenizer

# Operations of a step: in each layer, and besides. They were 55 and 17, for a model that computes in bfloat16.
A_LAYER, BESIDES = 42, 25
OF_ADAPTERS = 21  # of a layer with an adapter of low rank on its seven matrices
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

    @classmethod
    def record(cls, *given: object, **named: object) -> "RecordedOperations":
        return cls(*given, **named)

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
    for module in (decoders, sampling):
        monkeypatch.setattr(module, "uses_graphs", lambda device: True)
    monkeypatch.setattr(decoders, "StepGraph", RecordedOperations)
    monkeypatch.setattr(decoders, "LEAST_TO_RECORD_AGAIN", 2)
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


def test_without_room_for_a_recording_steps_are_not_recorded(recording, monkeypatch):
    how = {"max_new_tokens": LENGTH, "temperature": 0.0, "scored": False}
    model = decided(MODELS["llama"]())
    expected = sample(model, tokenizer(), PROMPTS[:4], **how)
    tries: list[bool] = []
    monkeypatch.setattr(RecordedOperations, "record", lambda *_, **__: tries.append(True))
    assert sample(model, tokenizer(), PROMPTS[:4], **how) == expected
    assert len(tries) == 1, "it is tried once"


def computing_model(layers: int, rank: int = 0) -> PreTrainedModel:
    sizes = {"hidden_size": 48, "intermediate_size": 64, "num_attention_heads": 3, "num_key_value_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=50, num_hidden_layers=layers, head_dim=16, **sizes)).eval()
    compute_in_bfloat16(model)
    if rank:
        return get_peft_model(model, LoraConfig(r=rank, target_modules="all-linear", task_type="CAUSAL_LM"))
    return model


@torch.no_grad()
def count_operations(layers: int, rank: int = 0) -> int:
    model, ids = computing_model(layers, rank), torch.ones(4, 6, dtype=torch.long)
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
    assert count_operations(2, rank=4) - count_operations(1, rank=4) <= A_LAYER + OF_ADAPTERS


SEEN = 12  # operations that find out which answers have ended, once in several tokens


def count_decoding(tokens: int, temperature: float, monkeypatch) -> int:
    """Operations of a decoding whose model does nothing."""
    monkeypatch.setattr(sampling, "uses_graphs", lambda device: True)
    logits = torch.zeros(3, 2, len(tokenizer()))
    still = SimpleNamespace(read_prompts=lambda *_: logits, add_tokens=lambda _: logits)
    still.should_drop_finished = lambda *_: False
    monkeypatch.setattr(sampling, "find_decoder", lambda model: lambda *_: still)
    torch.manual_seed(0)
    with Operations() as operations:
        how = {"copies": 2, "max_new_tokens": tokens, "temperature": temperature, "scored": False, "batch": 8}
        sample(MODELS["llama"](), tokenizer(), PROMPTS[:3], **how)
    return operations.count


@pytest.mark.parametrize(("temperature", "each"), [(0.0, 1), (1.0, 5)])
def test_a_token_takes_few_operations_beside_the_model(temperature, each, monkeypatch):
    seen = sampling.STEPS_UNSEEN
    once, twice = (count_decoding(times * seen, temperature, monkeypatch) for times in (1, 2))
    assert twice - once <= seen * each + SEEN


@pytest.mark.parametrize("kind", MODELS)
def test_greedy_answers_are_the_same_without_log_probabilities_and_if_ends_are_seen_later(kind, monkeypatch):
    model = decided(MODELS[kind]())
    how = {"copies": 2, "max_new_tokens": LENGTH, "temperature": 0.0}
    expected = sample(model, tokenizer(), PROMPTS[:12], **how).answers
    monkeypatch.setattr(sampling, "uses_graphs", lambda device: True)
    monkeypatch.setattr(sampling, "STEPS_UNSEEN", 3)
    for scored in (True, False):
        done: list[int] = []
        found = sample(model, tokenizer(), PROMPTS[:12], **how, scored=scored, on_progress=done.append)
        assert found.answers == expected
        assert [len(scores) for scores in found.log_probs] == [scored * len(answer) for answer in expected]
        assert len(done) > 1, "prompts are reported while others are decoded"
        assert sum(done) == 12


def test_the_same_tokens_are_sampled_without_log_probabilities():
    model, found = decided(MODELS["llama"]()), []
    for scored in (True, False):
        torch.manual_seed(5)
        how = {"copies": 3, "max_new_tokens": LENGTH, "temperature": 3.0, "scored": scored}
        found.append(sample(model, tokenizer(), PROMPTS[:6], **how).answers)
    assert found[0] == found[1]


def test_a_model_that_holds_a_prompt_for_each_answer_is_planned_to(monkeypatch):
    shared: list[int] = []
    monkeypatch.setattr(sampling, "fit_answers", lambda model, prompt, answer, copies: shared.append(copies) or 64)
    for decoder in (sampling.find_decoder, lambda model: None):
        monkeypatch.setattr(sampling, "find_decoder", decoder)
        how = {"copies": 4, "max_new_tokens": 2, "temperature": 0.0, "scored": False, "batch": 0}
        sample(MODELS["llama"](), tokenizer(), PROMPTS[:2], **how)
    assert shared == [4, 1]


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
