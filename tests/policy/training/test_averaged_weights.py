"""Averaged weights: close behind a short training, and as slow as they were asked to be behind a long one."""

import pytest
import torch

from lakewright.policy.training.optimizers import build_average


def average_after(steps: int, decay: float) -> float:
    """Of a weight that is k after step k."""
    model = torch.nn.Linear(1, 1, bias=False)
    averaged = build_average(model, decay)
    for step in range(1, steps + 1):
        torch.nn.init.constant_(model.weight, float(step))
        averaged.update_parameters(model)
    return float(averaged.module.weight)


@pytest.mark.parametrize("decay", [0.9, 0.99])
@pytest.mark.parametrize("steps", [1, 5, 20])
def test_an_average_of_few_steps_keeps_most_of_what_they_learned(steps, decay):
    assert average_after(steps, decay) > 0.7 * steps


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_after_many_steps_it_lags_behind_as_asked(decay):
    lag = decay / (1 - decay)
    assert average_after(400, decay) == pytest.approx(400 - lag, rel=1e-3)


def test_without_decay_it_is_the_last():
    assert average_after(5, 0.0) == 5
