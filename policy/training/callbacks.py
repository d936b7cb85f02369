"""Callbacks of TRL's trainer: figures reported, weights averaged, time limits, and a saved state to resume from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel
from transformers import TrainerCallback

from lakewright.policy.training.grpo_loss import PlanTrainer
from lakewright.policy.training.optimizers import build_average
from lakewright.policy.training.training_state import (
    Pause,
    Place,
    SaveTimes,
    StepClock,
    TrainingState,
    read_generators,
    set_generators,
)


class TrainingReport(TrainerCallback):
    """Passes the log of each step on, and ends the training if `on_step` returns True."""

    def __init__(self, on_step: Callable[[dict[str, Any]], bool | None]) -> None:
        self._on_step = on_step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Report the figures of a step. A hook of transformers' Trainer."""
        if not logs or "reward" not in logs:
            return
        # TRL's epochs are passes over place holders, counted from 0 in a resumed training.
        figures = {name: value for name, value in logs.items() if name != "epoch"}
        if self._on_step({"step": state.global_step, **figures}):
            control.should_training_stop = True


class Average(TrainerCallback):
    """Averages the weights after every step, unless `decay` is 0."""

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self.averaged: AveragedModel | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Begin the average. A hook of transformers' Trainer."""
        if self._decay:
            self.averaged = build_average(model, self._decay)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Update the average. A hook of transformers' Trainer."""
        if self.averaged:
            self.averaged.update_parameters(model)

    def load_into(self, model: torch.nn.Module) -> None:
        """Load the averaged weights into `model`; it is not replaced because the trainer has changed its forward."""
        if self.averaged:
            model.load_state_dict(self.averaged.module.state_dict())


class Until(TrainerCallback):
    """Ends the training after some minutes."""

    def __init__(self, minutes: float, clock: StepClock) -> None:
        self._seconds, self._clock = 60 * minutes, clock

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End the training once the time is over. A hook of transformers' Trainer."""
        if self._clock.seconds_at(state.global_step) >= self._seconds:
            control.should_training_stop = True


class StateSaver(TrainerCallback):
    """Loads the saved state, if any, before the first step, and saves the training after steps: see `TrainingState`.

    A training that is killed and run again loses about a minute, and ends with the same weights.

    Args:
        path: path of the state.
        trainer: its model and optimizer are saved.
        average: its averaged weights are saved.
        clock: the seconds of the training.
        notes: gives the caller's text that is saved with the state.
        pause: the time between two saved states.
    """

    def __init__(
        self,
        path: Path,
        trainer: PlanTrainer,
        average: Average,
        clock: StepClock,
        notes: Callable[[], str],
        pause: Pause,
    ) -> None:
        self._path, self._trainer, self._average, self._clock, self._notes = path, trainer, average, clock, notes
        self._boards, self._times = 0, SaveTimes(clock.seconds, pause)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Load the saved state. A hook of transformers' Trainer."""
        if self._path.exists():
            place = self._collect_state().load(self._path)
            self._boards = place.boards
            self._trainer.continue_at(place.step, place.tokens)
            set_generators(place, self._trainer.accelerator.device)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Save the state after a step, once its figures are reported. A hook of transformers' Trainer."""
        if not logs or "reward" not in logs:
            return
        self._boards += round(logs["sampled/groups"])
        if control.should_training_stop or not self._times.is_due():
            return
        random, gpu_random = read_generators(self._trainer.accelerator.device)
        place = Place(
            step=state.global_step,
            boards=self._boards,
            seconds=self._clock.seconds(),
            tokens=round(state.num_input_tokens_seen),
            notes=self._notes(),
            random=random,
            gpu_random=gpu_random,
        )
        with self._times.saving():
            self._collect_state().save(self._path, place)

    def _collect_state(self) -> TrainingState:
        model = self._trainer.accelerator.unwrap_model(self._trainer.model)
        optimizer = getattr(self._trainer.optimizer, "optimizer", self._trainer.optimizer)  # accelerate wraps it
        return TrainingState(model, self._average.averaged, optimizer)
