"""Log-probabilities of answers and their gradients, recorded once for each shape of a batch on a GPU and then replayed.

The loss is that of TRL, so there are two recordings: the pass up to the log-probabilities, and the pass back from the
gradient of the loss by these. The second adds to the gradients of the weights, as the next part of a batch does too.
"""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from lakewright.policy.inference.step_graph import StepGraph
from lakewright.policy.training.recorded_loss import MOST, WIDTH

Pair = tuple[torch.Tensor, torch.Tensor]  # log-probabilities, and the entropies that tokens were chosen with


class RecordedScores:
    """As `answer_log_probs`, for a model of Qwen3 or Llama on a GPU, see `is_recordable`.

    Args:
        model: that is trained.
        temperature: of the sampling.
        precision: that the model computes in, by autocast; None for that of its weights.
    """

    def __init__(self, model: PreTrainedModel, temperature: float, precision: torch.dtype | None) -> None:
        self._model, self._temperature, self._precision = model, temperature, precision
        self._weights = [weight for weight in model.parameters() if weight.requires_grad]
        self._anchor = torch.zeros((), device=model.device, requires_grad=True)  # what TRL's loss is traced to
        self._recordings: dict[tuple[int, ...], _Recording | None] = {}

    def score(self, ids: torch.Tensor, mask: torch.Tensor, answer: int) -> Pair:
        """Return log-probabilities and entropies of the last `answer` tokens of each row: [B, answer].

        Args: as for `answer_log_probs`.
        """
        if not torch.is_grad_enabled():
            return self.compute(ids, mask, answer)
        before, after = -(ids.shape[1] - answer) % WIDTH, -answer % WIDTH
        ids, mask = (torch.nn.functional.pad(rows, (before, after)) for rows in (ids, mask))
        shape = (*ids.shape, answer + after)
        if shape not in self._recordings:  # the first batch of a shape is computed at once, which loads its kernels
            if len(self._recordings) < MOST:
                self._recordings[shape] = None
            found = self.compute(ids, mask, answer + after)
        else:
            recording = self._recordings[shape]
            if recording is None:
                others = (one for one in self._recordings.values() if one)
                recording = self._recordings[shape] = _Recording(self, ids, mask, answer + after, next(others, None))
            found = _Replay.apply(self._anchor, recording, ids, mask)
        return found[0][:, :answer], found[1][:, :answer]

    def compute(self, ids: torch.Tensor, mask: torch.Tensor, answer: int) -> Pair:
        """As `score`, one operation after another."""
        length, there = ids.shape[1], mask > 0
        every = torch.ones(length, length, dtype=torch.bool, device=ids.device)
        # Padding sees itself: a row that sees nothing has no weights that add up to one.
        seen = there[:, None, None] & every.tril() | torch.eye(length, dtype=torch.bool, device=ids.device)
        # Without a cache, in which autocast would keep rounded weights beyond a recording.
        kind, on = ids.device.type, self._precision is not None
        with torch.autocast(kind, self._precision or torch.bfloat16, enabled=on, cache_enabled=False):
            model: Any = self._model
            states = model.base_model(
                input_ids=ids,
                attention_mask=seen,
                position_ids=(mask.cumsum(1) - 1).clamp(min=0),
                use_cache=False,
            ).last_hidden_state[:, -answer - 1 : -1]
            logits = model.get_output_embeddings()(states).float() / self._temperature
        log_probs = logits.log_softmax(-1)
        with torch.no_grad():
            entropies = -(log_probs.exp() * log_probs).sum(-1) * there[:, -answer:]
        taken = log_probs.gather(-1, ids[:, -answer:, None]).squeeze(-1)
        return taken * there[:, -answer:], entropies

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


class _Recording:
    """Both passes of a shape. Args: as for `RecordedScores.compute`; beside: shares its memory."""

    def __init__(
        self, owner: RecordedScores, ids: torch.Tensor, mask: torch.Tensor, answer: int, beside: "_Recording | None"
    ) -> None:
        self._owner, self._ids, self._mask, self._answer = owner, ids.clone(), mask.clone(), answer
        self._found: list[Pair] = []
        self._gradient = torch.zeros(len(ids), answer, device=ids.device)
        # What a recorded pass adds to is the gradient that a weight has while it is recorded.
        others = owner.exchange_gradients(owner.gradients)
        self._forward: StepGraph = StepGraph(self._read, ids.device, beside._forward if beside else None, whole=True)
        self._backward = StepGraph(self._push, ids.device, self._forward)
        owner.exchange_gradients(others)

    def _read(self) -> torch.Tensor:
        with torch.enable_grad():
            self._found.append(self._owner.compute(self._ids, self._mask, self._answer))
        return torch.stack(self._found[-1]).detach()

    def _push(self) -> torch.Tensor:
        log_probs, _ = self._found.pop()
        torch.autograd.backward(log_probs, self._gradient)
        return self._gradient

    def read(self, ids: torch.Tensor, mask: torch.Tensor) -> Pair:
        """Return the scores of a batch."""
        self._ids.copy_(ids)
        self._mask.copy_(mask)
        log_probs, entropies = self._forward.replay().clone()
        return log_probs, entropies

    def add_gradients(self, gradient: torch.Tensor) -> None:
        """Add the gradients of the weights for that of the scores of the last batch."""
        self._owner.place_gradients()
        self._gradient.copy_(gradient)
        self._backward.replay()


class _Replay(torch.autograd.Function):
    """The two passes as one function, which gives no gradient to its own arguments."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, recording: _Recording, ids: torch.Tensor, mask: torch.Tensor) -> Pair:
        ctx.recording = recording
        log_probs, entropies = recording.read(ids, mask)
        ctx.mark_non_differentiable(entropies)
        return log_probs, entropies

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> tuple[None, None, None, None]:
        ctx.recording.add_gradients(gradient)
        return None, None, None, None
