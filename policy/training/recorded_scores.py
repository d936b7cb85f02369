"""Log-probabilities of answers and their gradients, recorded once for each shape of a batch on a GPU and then replayed.

Each prompt is read once for its answers. The loss is TRL's, so there are two recordings: the pass up to the
log-probabilities, and the pass back from the gradient of the loss by these. The second adds to the gradients of the
weights because the next part of a batch does too.

The loss of a batch and its gradients, recorded once for each shape of batches on a GPU and then replayed.

A step of a small language model is thousands of small kernels, which a processor core starts more slowly than a GPU
runs them. Batches are padded to few shapes; gradients stay in the same memory and are set to zero by the recording.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from lakewright.policy.inference.decoders import cache_rows, has_known_layers
from lakewright.policy.inference.step_graph import StepGraph, uses_graphs

STEP = 16  # tokens, and prompts, by which the shapes of batches differ

Pair = tuple[torch.Tensor, torch.Tensor]  # log-probabilities, and the entropies that tokens were chosen with


class RecordedScores:
    """Like `answer_log_probs`, for a model of Qwen3 or Llama on a GPU, see `is_recordable`.

    Args:
        model: the model under training.
        temperature: sampling temperature.
        precision: the type that the model computes in, by autocast; None for the type of its weights.
    """

    def __init__(self, model: PreTrainedModel, temperature: float, precision: torch.dtype | None) -> None:
        self._model, self._temperature, self._precision = model, temperature, precision
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._anchor = torch.zeros((), device=model.device, requires_grad=True)  # what TRL's loss is traced to
        self._recordings: dict[tuple[int, ...], _Recording | None] = {}

    def score(self, ids: torch.Tensor, mask: torch.Tensor, answer: int) -> Pair:
        """Return log-probabilities and entropies of the last `answer` tokens of each row: [B, answer].

        Args: see `answer_log_probs`.
        """
        batch = _split_prompts(ids, mask, answer)
        if not torch.is_grad_enabled():
            found = self.compute(batch)
        elif batch.shape not in self._recordings:  # the first batch of a shape is computed, which loads its kernels
            if len(self._recordings) < MOST:
                self._recordings[batch.shape] = None
            found = self.compute(batch)
        else:
            recording = self._recordings[batch.shape]
            if recording is None:
                others = (one for one in self._recordings.values() if one)
                recording = self._recordings[batch.shape] = _Recording(self, batch, next(others, None))
            found = _Replay.apply(self._anchor, recording, batch)
        return found[0][:, :answer], found[1][:, :answer]

    def compute(self, batch: "PackedBatch") -> Pair:
        """Return log-probabilities and entropies of all answers [B, T], one operation after another."""
        # Without a cache of autocast, which would keep rounded weights beyond a recording.
        kind, on = batch.prompts.device.type, self._precision is not None
        with torch.autocast(kind, self._precision or torch.bfloat16, enabled=on, cache_enabled=False):
            cache = DynamicCache(config=self._model.config)
            states = self._read(batch.prompts, batch.prompt_mask, cache)[:, -1:].index_select(0, batch.which)
            if batch.answers.shape[1] > 1:
                # The last state of the prompt predicts the first token; the last token predicts nothing.
                mask = torch.cat([batch.prompt_mask.index_select(0, batch.which), batch.answer_mask[:, :-1]], 1)
                later = self._read(batch.answers[:, :-1], mask, cache_rows(cache, batch.which))
                states = torch.cat([states, later], 1)
            logits = self._model.get_output_embeddings()(states).float() / self._temperature
        log_probs, entropies = score_tokens(logits, batch.answers)
        return log_probs * batch.answer_mask, entropies * batch.answer_mask

    def _read(self, ids: torch.Tensor, mask: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        """Return the last hidden states of tokens int [B, N] that follow the cached ones; mask [B, L] covers both."""
        places, columns = torch.arange(mask.shape[1], device=ids.device), ids.shape[1]
        earlier = places <= places[-columns:, None]
        # Padding sees itself, as a row that sees nothing has no weights that add up to one. The mask is whole because
        # transformers looks at the values of another one, for which a recording cannot wait.
        seen = (mask[:, None, None] > 0) & earlier | (places == places[-columns:, None])
        model: Any = self._model
        return model.base_model(
            input_ids=ids,
            attention_mask=seen,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0)[:, -columns:],
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state

    @functools.cached_property
    def gradients(self) -> list[torch.Tensor | None]:
        """A gradient of each weight that stays where it is."""
        return [torch.zeros_like(weight) for weight in self._weights]

    def exchange_gradients(self, gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Give the weights other gradients, and return those that they had."""
        before = [weight.grad for weight in self._weights]
        for weight, gradient in zip(self._weights, gradients, strict=True):
            weight.grad = gradient
        return before

    def place_gradients(self) -> None:
        """Make the gradients of the weights those that recordings add to; what others have left is added to them."""
        for weight, held in zip(self._weights, self.gradients, strict=True):
            assert held is not None
            if weight.grad is None:
                weight.grad = held.zero_()
            elif weight.grad is not held:
                weight.grad = held.copy_(weight.grad)


@dataclasses.dataclass(frozen=True)
class PackedBatch:
    """The rows of a batch with each prompt once: sizes that differ little are made equal.

    Args:
        prompts, prompt_mask: int [U, P], padded on the left and, by prompts of padding, to few sizes.
        which: the prompt of each row, int [B].
        answers, answer_mask: int [B, T], padded on the right.
    """

    prompts: torch.Tensor
    prompt_mask: torch.Tensor
    which: torch.Tensor
    answers: torch.Tensor
    answer_mask: torch.Tensor

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All of it."""
        return [self.prompts, self.prompt_mask, self.which, self.answers, self.answer_mask]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes that batches of one recording share."""
        return (*self.prompts.shape, *self.answers.shape)


def _split_prompts(ids: torch.Tensor, mask: torch.Tensor, answer: int) -> PackedBatch:
    """Return the batch of rows. Args: see `answer_log_probs`."""
    before, after = -(ids.shape[1] - answer) % STEP, -answer % STEP
    ids, mask = (torch.nn.functional.pad(rows, (before, after)) for rows in (ids, mask))
    prompts, which = torch.unique(torch.stack([ids, mask], -1)[:, : -answer - after], dim=0, return_inverse=True)
    prompts = torch.nn.functional.pad(prompts, (0, 0, 0, 0, 0, -len(prompts) % STEP))
    return PackedBatch(prompts[..., 0], prompts[..., 1], which, ids[:, -answer - after :], mask[:, -answer - after :])


class _Recording:
    """Both passes of a shape. Args: see `RecordedScores.compute`; beside: shares its memory."""

    def __init__(self, owner: RecordedScores, batch: PackedBatch, beside: "_Recording | None") -> None:
        self._owner, self._batch = owner, PackedBatch(*(part.clone() for part in batch.tensors))
        self._found: list[Pair] = []
        device = batch.answers.device
        self._gradient = torch.zeros(batch.answers.shape, device=device)
        # What a recorded pass adds to is the gradient that a weight has while it is recorded.
        others = owner.exchange_gradients(owner.gradients)
        self._forward: StepGraph = StepGraph(self._read, device, beside._forward if beside else None, whole=True)
        self._backward = StepGraph(self._push, device, self._forward)
        owner.exchange_gradients(others)

    def _read(self) -> torch.Tensor:
        with torch.enable_grad():
            self._found.append(self._owner.compute(self._batch))
        return torch.stack(self._found[-1]).detach()

    def _push(self) -> torch.Tensor:
        log_probs, _ = self._found.pop()
        torch.autograd.backward(log_probs, self._gradient)
        return self._gradient

    def read(self, batch: PackedBatch) -> Pair:
        """Return the scores of a batch."""
        for mine, part in zip(self._batch.tensors, batch.tensors, strict=True):
            mine.copy_(part)
        log_probs, entropies = self._forward.replay().clone()
        return log_probs, entropies

    def add_gradients(self, gradient: torch.Tensor) -> None:
        """Add the gradients of the weights for the scores of the last batch."""
        self._owner.place_gradients()
        self._gradient.copy_(gradient)
        self._backward.replay()


class _Replay(torch.autograd.Function):
    """The two passes as one function, which gives no gradient to its own arguments."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, recording: _Recording, batch: PackedBatch) -> Pair:
        ctx.recording = recording
        log_probs, entropies = recording.read(batch)
        ctx.mark_non_differentiable(entropies)
        return log_probs, entropies

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> tuple[None, None, None]:
        ctx.recording.add_gradients(gradient)
        return None, None, None


def score_tokens(logits: torch.Tensor, tokens: torch.Tensor) -> Pair:
    """Return the log-probability of each token, and the entropy that it was chosen with: [B, T]."""
    log_probs = logits.log_softmax(-1)
    with torch.no_grad():
        entropies = -(log_probs.exp() * log_probs).sum(-1)
    return log_probs.gather(-1, tokens[..., None]).squeeze(-1), entropies


WIDTH = 32  # tokens by which the shapes of batches differ
MOST = 12  # shapes that are recorded; batches of others are computed without

TokenLoss = Callable[[PreTrainedModel, torch.Tensor, torch.Tensor, int], torch.Tensor]
"""The loss by the model, token ids and labels int [B, L], and the number of first tokens without a label."""


def is_recordable(model: PreTrainedModel) -> bool:
    """Return True if the steps of a model are recorded: Qwen3 or Llama on a GPU, without random numbers of its own."""
    return uses_graphs(model.device) and has_known_layers(model) and not model.config.attention_dropout


class RecordedLoss:
    """Losses of batches whose gradients are left in `grad` of the weights, where they replace the last batch's.

    Args:
        model: see `is_recordable`.
        loss_of: the loss to minimise; it must not wait for the GPU.
    """

    def __init__(self, model: PreTrainedModel, loss_of: TokenLoss) -> None:
        self._model, self._loss_of = model, loss_of
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._inputs: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor]] = {}  # of shapes seen so far
        self._graphs: dict[tuple[int, ...], StepGraph] = {}

    def backward(self, ids: torch.Tensor, labels: torch.Tensor, known: int) -> torch.Tensor:
        """Return the loss of a batch. Args: as `TokenLoss`; shapes that come again should be few."""
        shape = (*ids.shape, known)
        if shape not in self._inputs:  # the first batch of a shape is computed at once, which loads its kernels
            if len(self._inputs) < MOST:
                self._inputs[shape] = ids.to(self._model.device), labels.to(self._model.device)
            return self._compute(ids.to(self._model.device), labels.to(self._model.device), known)
        mine, answers = self._inputs[shape]
        mine.copy_(ids)
        answers.copy_(labels)
        if shape not in self._graphs:
            beside = next(iter(self._graphs.values()), None)
            step = functools.partial(self._compute, mine, answers, known)
            self._graphs[shape] = StepGraph(step, mine.device, beside, whole=True)
        return self._graphs[shape].replay()

    def _compute(self, ids: torch.Tensor, labels: torch.Tensor, known: int) -> torch.Tensor:
        if gradients := [weight.grad for weight in self._weights if weight.grad is not None]:
            torch._foreach_zero_(gradients)
        loss = self._loss_of(self._model, ids, labels, known)
        loss.backward()
        return loss.detach()
