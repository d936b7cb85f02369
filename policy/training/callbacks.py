"""What happens after each step of TRL's trainer: figures are reported, weights averaged, time limits kept."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel
from transformers import TrainerCallback

from policy.training.optimizers import averaged_model


class Report(TrainerCallback):
    """Passes the log of each step on, and ends the training where `on_step` returns True."""

    def __init__(self, on_step: Callable[[dict[str, Any]], bool | None]) -> None:
        self._on_step = on_step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if logs and "reward" in logs and self._on_step({"step": state.global_step, **logs}):
            control.should_training_stop = True


class Average(TrainerCallback):
    """Averages the weights after every step, unless `decay` is 0."""

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self._averaged: AveragedModel | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if self._decay:
            self._averaged = averaged_model(model, self._decay)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if self._averaged:
            self._averaged.update_parameters(model)

    def keep(self, model: torch.nn.Module) -> None:
        """Loads the averaged weights into `model`; it is not replaced, as the trainer has changed its forward."""
        if self._averaged:
            model.load_state_dict(self._averaged.module.state_dict())


class Until(TrainerCallback):
    """Ends the training after some minutes."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A hook of transformers' Trainer."""
        if time.monotonic() >= self._end:
            control.should_training_stop = True
