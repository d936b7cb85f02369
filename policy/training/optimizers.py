"""Optimizers, their learning rates over time, and averaged weights.

Muon (Jordan et al. 2024) is momentum whose matrices are orthogonalised before they are applied. `torch.optim.Muon`
orthogonalises in bfloat16, which processors without such instructions emulate: 0.65 s a step for the tiny model,
against 0.03 s in the parameters' own type and for all matrices of one shape together, as here.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

RISE = 50  # steps until the rates reach their full value
LEAST = 0.1  # share of the rates at the end
# The quintic of the paper: it raises small singular values fast and brings all of them near one.
A, B, C = 3.4445, -4.7750, 2.0315
ITERATIONS = 5
Weights = tuple[torch.Tensor, ...] | list[torch.Tensor]


class CombinedOptimizer(torch.optim.Optimizer):
    """Several optimizers as one, as trainers expect it. It shares the parameter groups of its parts."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        groups = [group for part in parts for group in part.param_groups]
        self.parts = parts
        super().__init__(groups, {})
        self.param_groups = groups  # those of the parts, not copies: a rate that is set here is theirs
        for group in groups:
            group["initial_lr"] = group["lr"]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state as every optimizer does, and give the new groups to the parts. Launchers call this to place the
        state.
        """
        super().load_state_dict(state_dict)
        groups = iter(self.param_groups)
        for part in self.parts:
            part.param_groups = [next(groups) for _ in part.param_groups]

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Make a step of each part."""
        for part in self.parts:
            part.step()

    def scale_rates(self, scale: float) -> None:
        """Set every rate to a share of its initial value."""
        for group in self.param_groups:
            group["lr"] = scale * group["initial_lr"]


def build_muon_and_adamw(model: torch.nn.Module, matrix_rate: float, other_rate: float) -> CombinedOptimizer:
    """Return Muon for matrices and the kernels of convolutions, AdamW for embeddings, head and the rest."""
    matrices, others = _split_weights(model)
    return CombinedOptimizer([Muon(matrices, lr=matrix_rate), _build_adamw_part(others, other_rate)])


def build_adamw(model: torch.nn.Module, matrix_rate: float, other_rate: float) -> CombinedOptimizer:
    """Return AdamW for all weights, with the same two rates."""
    matrices, others = _split_weights(model)
    parts = [_build_adamw_part(matrices, matrix_rate, fused=True), _build_adamw_part(others, other_rate, fused=True)]
    return CombinedOptimizer(parts)


def _build_adamw_part(
    weights: list[torch.nn.Parameter], rate: float, fused: bool | None = None
) -> torch.optim.Optimizer:
    """Return AdamW for some weights. fused: all in one pass over the weights, which is faster for many weights."""
    return torch.optim.AdamW(weights, lr=rate, weight_decay=0.0, betas=(0.9, 0.95), fused=fused)


def _split_weights(model: torch.nn.Module) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
    """Return the weights that are trained: matrices and kernels, and embeddings, head and the rest."""
    trained = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    matrices = [weight for name, weight in trained if is_matrix(name, weight)]
    chosen = {id(weight) for weight in matrices}
    return matrices, [weight for _, weight in trained if id(weight) not in chosen]


def is_matrix(name: str, parameter: torch.Tensor) -> bool:
    """Return True if Muon trains a parameter of that name."""
    return parameter.ndim >= 2 and not any(table in name for table in ("embed", "head"))


def rate_scale(step: int, done: float) -> float:
    """Return a short linear rise, then a cosine down to a tenth.

    `done` is the share of the training that is over.
    """
    rise = min(1.0, (step + 1) / RISE)
    return rise * (LEAST + (1 - LEAST) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0))))


def build_average(model: torch.nn.Module, decay: float) -> AveragedModel:
    """Return an exponential average of a model's weights, to be updated after each step.

    The decay after n steps is min(decay, (1 + n) / (10 + n)), as in TensorFlow's ExponentialMovingAverage with
    num_updates. With a constant decay, the average of a short training is close to its first steps.
    """

    def update_average(averaged: Weights, current: Weights, count: torch.Tensor | int) -> None:
        steps = int(count)
        get_ema_multi_avg_fn(min(decay, (1 + steps) / (10 + steps)))(averaged, current, count)

    return AveragedModel(model, multi_avg_fn=update_average)


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised, scaled by 0.2 sqrt(max(rows, columns)) to the size of an AdamW update.

    The kernel of a convolution counts as a matrix of its output channels by all that each of them reads.

    Args:
        params: matrices and kernels.
        lr: learning rate.
        momentum: weight of the old average of gradients, 0 to 1.
        weight_decay: as in AdamW.
    """

    def __init__(self, params: Iterable[torch.Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.01):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    by_shape[matrix.shape].append(matrix)
            for shape, matrices in by_shape.items():
                # Matrices of one shape are orthogonalised in one call, which costs far less than one call each.
                momenta = torch.stack([self._update_momentum(m, group["momentum"]) for m in matrices])
                updates = orthogonalise_matrices(momenta.flatten(2))
                scale = 0.2 * max(updates.shape[1:]) ** 0.5
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, list(updates.view(-1, *shape)), alpha=-group["lr"] * scale)

    def _update_momentum(self, matrix: torch.Tensor, momentum: float) -> torch.Tensor:
        state = self.state[matrix]
        buffer = state.setdefault("momentum", torch.zeros_like(matrix))
        gradient = matrix.grad
        assert gradient is not None
        buffer.lerp_(gradient, 1 - momentum)
        return gradient.lerp(buffer, momentum)


def orthogonalise_matrices(matrices: torch.Tensor) -> torch.Tensor:
    """Return approximately the nearest orthogonal matrices, by Newton-Schulz iterations: [M, rows, columns]."""
    # Of x and its transpose the wide one has the smaller Gram matrix.
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    x = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x if matrices.shape[1] <= matrices.shape[2] else x.mT
