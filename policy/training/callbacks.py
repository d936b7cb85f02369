"""What happens after each step of TRL's trainer: figures are reported, weights averaged, time limits kept."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel
from transformers import TrainerCallback

from lakewright.policy.training.optimizers import averaged_model


class Report(TrainerCallback):
    """Passes the log of each step on, and ends the training where `on_step` returns True."""

    def __init__(self, on_step: Callable[[dict[str, Any]], bool | None]) -> None:
        self._on_step = on_step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if not logs or "reward" not in logs:
            return
        # TRL's epochs are passes over place holders, counted anew where a training goes on.
        figures = {name: value for name, value in logs.items() if name != "epoch"}
        if self._on_step({"step": state.global_step, **figures}):
            control.should_training_stop = True


class Clock:
    """The seconds of a training, those before it was interrupted included."""

    def __init__(self, before: float) -> None:
        self._begun = time.monotonic() - before

    def seconds(self) -> float:
        """So far."""
        return time.monotonic() - self._begun


class Average(TrainerCallback):
    """Averages the weights after every step, unless `decay` is 0."""

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self.averaged: AveragedModel | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if self._decay:
            self.averaged = averaged_model(model, self._decay)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if self.averaged:
            self.averaged.update_parameters(model)

    def keep(self, model: torch.nn.Module) -> None:
        """Loads the averaged weights into `model`; it is not replaced, as the trainer has changed its forward."""
        if self.averaged:
            model.load_state_dict(self.averaged.module.state_dict())


class Until(TrainerCallback):
    """Ends the training after some minutes."""

    def __init__(self, minutes: float, clock: Clock) -> None:
        self._seconds, self._clock = 60 * minutes, clock

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if self._clock.seconds() >= self._seconds:
            control.should_training_stop = True
