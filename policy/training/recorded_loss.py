"""The loss of a batch and its gradients, recorded once for each shape of batches on a GPU and then replayed.

A step of a small language model is thousands of small kernels, which a processor core starts more slowly than a GPU
runs them. Batches are padded to few shapes; gradients stay in the same memory and are set to zero by the recording.
"""

import functools
from collections.abc import Callable

import torch
from transformers import PreTrainedModel

from lakewright.policy.inference.decoders import has_known_layers
from lakewright.policy.inference.step_graph import StepGraph, uses_graphs

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
        loss_of: what is minimised; it must not wait for the GPU.
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
