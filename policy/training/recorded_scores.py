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
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache, PreTrainedModel

from lakewright.policy.inference.decoders import cache_rows, has_known_layers
from lakewright.policy.inference.device_limits import fit_rows, training_bytes
from lakewright.policy.inference.step_graph import StepGraph, uses_graphs
from lakewright.policy.models.building import computes_in_bfloat16

STEP = 16  # tokens, and prompts, by which the shapes of batches differ

ScorePair = tuple[torch.Tensor, torch.Tensor]  # log-probabilities, and the entropies that tokens were chosen with
WIDTH = 32  # tokens by which the shapes of batches differ
MOST = 12  # shapes that are recorded; batches of others are computed without
TokenLoss = Callable[[PreTrainedModel, torch.Tensor, torch.Tensor, int], torch.Tensor]
"""The loss by the model, token ids and labels int [B, L], and the number of first tokens without a label."""


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
        self._has_room = True  # for recordings
        self._at_once: dict[tuple[int, ...], int] = {}  # rows of each shape that are read together
        self.last: PackedBatch | None = None  # whose forward pass was the last that a recording made

    def score(self, ids: torch.Tensor, mask: torch.Tensor, answer: int) -> ScorePair:
        """Return log-probabilities and entropies of the last `answer` tokens of each row: [B, answer].

        Args: see `answer_log_probs`.
        """
        number = 2 if self._precision is torch.bfloat16 else self._model.dtype.itemsize
        shape = *_round_up(ids.shape[1] - answer, answer), len(ids)
        if shape not in self._at_once:  # decided once, so that the shapes of batches stay few
            each = training_bytes(self._model, number, ids.shape[1], shape[1])
            self._at_once[shape] = fit_rows(ids.device, each, on_cpu=len(ids), most=len(ids))
        parts = split_evenly(len(ids), self._at_once[shape])
        found = [self._score_part(ids[rows], mask[rows], answer, alone=len(parts) == 1) for rows in parts]
        log_probs, entropies = (torch.cat(part) if len(part) > 1 else part[0] for part in zip(*found, strict=True))
        return log_probs, entropies

    def _score_part(self, ids: torch.Tensor, mask: torch.Tensor, answer: int, *, alone: bool) -> ScorePair:
        """Return the scores of some rows.

        Args:
            ids, mask, answer: see `score`.
            alone: whether these are all rows; otherwise nothing is held for their gradients but what they are computed
            from again, because the GPU has no room for all.
        """
        batch = _split_prompts(ids, mask, answer)
        if not torch.is_grad_enabled():
            found = self.compute(batch)
        elif recording := self._find_recording(batch):
            found = _Replay.apply(self._anchor, recording, batch)
        elif alone:
            found = self.compute(batch)
        else:
            found = checkpoint(self.compute, batch, use_reentrant=False, preserve_rng_state=False)
        return found[0][:, :answer], found[1][:, :answer]

    def _find_recording(self, batch: "PackedBatch") -> "_Recording | None":
        """Return the recording for a batch; None if it is the first of its shape, or memory is short."""
        if batch.shape not in self._recordings:  # the first one is computed, which loads its kernels
            if len(self._recordings) < MOST:
                self._recordings[batch.shape] = None
            return None
        if self._recordings[batch.shape] is None and self._has_room:
            others = (one for one in self._recordings.values() if one)
            self._recordings[batch.shape] = _Recording.make(self, batch, next(others, None))
            self._has_room = self._recordings[batch.shape] is not None
        return self._recordings[batch.shape]

    def compute(self, batch: "PackedBatch") -> ScorePair:
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
    prompt = ids.shape[1] - answer
    before, after = (
        longer - length for longer, length in zip(_round_up(prompt, answer), (prompt, answer), strict=True)
    )
    ids, mask = (torch.nn.functional.pad(rows, (before, after)) for rows in (ids, mask))
    prompts, which = torch.unique(torch.stack([ids, mask], -1)[:, : -answer - after], dim=0, return_inverse=True)
    prompts = torch.nn.functional.pad(prompts, (0, 0, 0, 0, 0, -len(prompts) % STEP))
    return PackedBatch(prompts[..., 0], prompts[..., 1], which, ids[:, -answer - after :], mask[:, -answer - after :])


def _round_up(*lengths: int) -> tuple[int, ...]:
    """Return the lengths that batches are padded to."""
    return tuple(-(-length // STEP) * STEP for length in lengths)


def split_evenly(rows: int, most: int) -> list[slice]:
    """Return parts of `rows` rows, of at most `most` each, that are as equal as possible."""
    size = -(-rows // -(-rows // most))
    return [slice(begin, begin + size) for begin in range(0, rows, size)]


class _Recording:
    """Both passes of a shape, see `make`."""

    def __init__(self, owner: RecordedScores, batch: PackedBatch) -> None:
        self._owner, self._batch = owner, PackedBatch(*(part.clone() for part in batch.tensors))
        self._found: list[ScorePair] = []
        self._gradient = torch.zeros(batch.answers.shape, device=batch.answers.device)
        self._forward: StepGraph | None = None
        self._backward: StepGraph | None = None

    @classmethod
    def make(cls, owner: RecordedScores, batch: PackedBatch, beside: "_Recording | None") -> "_Recording | None":
        """Return the recording of a batch, or None if memory is short.

        Args:
            owner, batch: see `RecordedScores.compute`.
            beside: shares its memory.
        """
        made, device = cls(owner, batch), batch.answers.device
        # What a recorded pass adds to is the gradient that a weight has while it is recorded.
        others = owner.exchange_gradients(owner.gradients)
        try:
            made._forward = StepGraph.record(made._read, device, beside._forward if beside else None, whole=True)
            made._backward = made._forward and StepGraph.record(made._push, device, made._forward)
        finally:
            owner.exchange_gradients(others)
        return made if made._backward else None

    def _read(self) -> torch.Tensor:
        with torch.enable_grad():
            self._found.append(self._owner.compute(self._batch))
        return torch.stack(self._found[-1]).detach()

    def _push(self) -> torch.Tensor:
        log_probs, _ = self._found.pop()
        torch.autograd.backward(log_probs, self._gradient)
        return self._gradient

    def read(self, batch: PackedBatch) -> ScorePair:
        """Return the scores of a batch."""
        assert self._forward
        for mine, part in zip(self._batch.tensors, batch.tensors, strict=True):
            mine.copy_(part)
        log_probs, entropies = self._forward.replay().clone()
        self._owner.last = batch
        return log_probs, entropies

    def add_gradients(self, batch: PackedBatch, gradient: torch.Tensor) -> None:
        """Add the gradients of the weights for the scores of a batch, read again if another was read after it."""
        assert self._backward
        if self._owner.last is not batch:
            self.read(batch)
        self._owner.place_gradients()
        self._gradient.copy_(gradient)
        self._backward.replay()


class _Replay(torch.autograd.Function):
    """The two passes as one function, which gives no gradient to its own arguments."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, recording: _Recording, batch: PackedBatch) -> ScorePair:
        ctx.recording, ctx.batch = recording, batch
        log_probs, entropies = recording.read(batch)
        ctx.mark_non_differentiable(entropies)
        return log_probs, entropies

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: torch.Tensor) -> tuple[None, None, None]:
        ctx.recording.add_gradients(ctx.batch, gradient)
        return None, None, None


def score_tokens(logits: torch.Tensor, tokens: torch.Tensor) -> ScorePair:
    """Return the log-probability of each token, and the entropy that it was chosen with: [B, T]."""
    log_probs = logits.log_softmax(-1)
    with torch.no_grad():
        entropies = -(log_probs.exp() * log_probs).sum(-1)
    return log_probs.gather(-1, tokens[..., None]).squeeze(-1), entropies


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
        self._inputs: dict[tuple[int, ...], list[torch.Tensor]] = {}  # of shapes seen so far
        self._graphs: dict[tuple[int, ...], StepGraph] = {}
        self._at_once: dict[tuple[int, ...], int] = {}  # rows of each shape that are read together
        self._has_room = True  # for recordings

    def backward(self, ids: torch.Tensor, labels: torch.Tensor, known: int) -> torch.Tensor:
        """Return the loss of a batch. Args: as `TokenLoss`; shapes that come again should be few.

        If the GPU has no room for all rows, parts of them follow each other, whose gradients are added up.
        """
        shape, device = (*ids.shape, known), self._model.device
        if shape not in self._at_once:
            number = 2 if computes_in_bfloat16(self._model) else self._model.dtype.itemsize
            each = training_bytes(self._model, number, ids.shape[1], ids.shape[1] - known)
            self._at_once[shape] = fit_rows(device, each, on_cpu=len(ids), most=len(ids))
        parts = split_evenly(len(ids), self._at_once[shape])
        if len(parts) == 1:
            return self._push([ids, labels], known)
        self._zero_gradients()
        tokens = (labels[:, known:] >= 0).sum(1)
        # The loss is a mean over tokens, so that of a part counts by its share of them.
        losses = [self._push([ids[rows], labels[rows], tokens[rows].sum() / tokens.sum()], known) for rows in parts]
        return torch.stack(losses).sum()

    def _push(self, batch: list[torch.Tensor], known: int) -> torch.Tensor:
        """Return the loss of rows, in new memory: ids, labels and, of a part, its share of the tokens."""
        shape, device = (*batch[0].shape, known, len(batch)), self._model.device
        if shape not in self._inputs:  # the first batch of a shape is computed at once, which loads its kernels
            if len(self._inputs) < MOST:
                self._inputs[shape] = [part.to(device) for part in batch]
            return self._compute(*(part.to(device) for part in batch), known=known)
        for mine, part in zip(self._inputs[shape], batch, strict=True):
            mine.copy_(part)
        step = functools.partial(self._compute, *self._inputs[shape], known=known)
        if shape not in self._graphs and self._has_room:
            beside = next(iter(self._graphs.values()), None)
            if made := StepGraph.record(step, device, beside, whole=True):
                self._graphs[shape] = made
            self._has_room = made is not None
        return self._graphs[shape].replay().clone() if shape in self._graphs else step()

    def _zero_gradients(self) -> None:
        if gradients := [weight.grad for weight in self._weights if weight.grad is not None]:
            torch._foreach_zero_(gradients)

    def _compute(
        self, ids: torch.Tensor, labels: torch.Tensor, share: torch.Tensor | None = None, *, known: int
    ) -> torch.Tensor:
        if share is None:
            self._zero_gradients()
        loss = self._loss_of(self._model, ids, labels, known)
        loss = loss if share is None else loss * share
        loss.backward()
        return loss.detach()
