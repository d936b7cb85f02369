"""A training between two steps, in one file of safetensors: weights, their average, optimizer, place, losses.

A training that resumes from there ends with the same weights as one that was never interrupted. On a CPU they are equal
bit for bit if processor, threads and versions are the same and its length does not depend on the clock.

The seconds of a training at each of its steps, so that one that the clock ends can be resumed as the same run.

A training that is killed repeats the steps since its last saved state. They count with the seconds that they took at
first: so it takes as many steps as an uninterrupted run, at the same rates, and its second start costs no
step.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.optim.swa_utils import AveragedModel

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import check_digest, listed, replacing
from lakewright.policy.models.weights import check_weights, compare_shapes
from lakewright.policy.training.optimizers import CombinedOptimizer

T = TypeVar("T")
PLACE, LOSSES, AVERAGES = "place", "losses", "averages"
NAMES = "names"  # in the metadata: all tensors of the file; those of an optimizer are unknown before it steps
REMEDY = "remove it to begin again"
SECONDS = 60.0  # of training, at least, between two saved states
SHARE = 0.05  # of the time, at most, that saving may take
Pause: TypeAlias = Callable[[float], float]
"""The seconds until a training is saved again, by the seconds that saving took."""
TIMES = "seconds.txt"  # beside a saved state: a step and its seconds in each line


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The progress of a training.

    Args:
        step: updates so far.
        boards: tasks taken so far.
        seconds: seconds of training so far.
        random: the state of the random generator.
        replaced: tasks that took the place of excluded ones.
        tokens: tokens read and generated so far.
        notes: a text of the caller.
        gpu_random: the state of the GPU's generator, which draws answers there; empty for a training on the CPU.
    """

    step: int = 0
    boards: int = 0
    seconds: float = 0.0
    random: str = ""
    replaced: int = 0
    tokens: int = 0
    notes: str = ""
    gpu_random: str = ""


class TrainingState:
    """The changing parts of a training, to be saved to a file and loaded from it."""

    def __init__(
        self, model: torch.nn.Module, averaged: AveragedModel | None, optimizer: torch.optim.Optimizer
    ) -> None:
        self._model, self._averaged = model, averaged
        self._optimizers = optimizer.parts if isinstance(optimizer, CombinedOptimizer) else [optimizer]
        self.losses: list[float] = []

    def save(self, path: Path, place: Place) -> None:
        """Write all of it and the place, completely or not at all."""
        tensors = {
            name: tensor.detach().cpu().clone() for name, tensor in (*self._list_weights(), *self._list_moments())
        }
        if self._averaged:
            tensors[AVERAGES] = torch.as_tensor(self._averaged.n_averaged).clone()
        tensors[LOSSES] = torch.tensor(self.losses, dtype=torch.float64)
        fields = {PLACE: place, NAMES: sorted(tensors)}
        with listed(path), replacing(path) as beside:
            save_file(tensors, beside, {name: msgspec.json.encode(value).decode() for name, value in fields.items()})

    @torch.no_grad()
    def load(self, path: Path) -> Place:
        """Load a saved state and return its place.

        Raises InputError if the file is not of this training, or lacks a tensor, or has one that is not finite.
        """
        place = _read_place(path)
        try:
            with safe_open(path, "pt") as file:
                self._check_names(path, file)
                for name, tensor in self._list_weights():
                    tensor.copy_(file.get_tensor(name))
                if self._averaged:
                    self._averaged.n_averaged.copy_(file.get_tensor(AVERAGES))
                self.losses = file.get_tensor(LOSSES).tolist()
                self._load_moments(file)
        except (OSError, SafetensorError, RuntimeError) as error:
            raise _not_readable(path, error) from error
        check_weights(path, [*self._list_weights(), *self._list_moments()], remedy=REMEDY)
        return place

    def _check_names(self, path: Path, file: Any) -> None:
        """Check the tensors of an open file by name and shape, before any weight changes."""
        there = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 - not a dictionary
        needed = {name: tensor.shape for name, tensor in self._list_weights()}
        if self._averaged:
            needed[AVERAGES] = self._averaged.n_averaged.shape
        trained = self._map_trained()
        moments = {name: trained[of][0].shape for name in there if (of := name.rpartition(".")[0]) in trained}
        listed = _read_metadata(path, NAMES, list[str]) if NAMES in file.metadata() else []  # not in earlier versions
        check_weights(
            path,
            (),
            missing={*needed, LOSSES, *listed} - {*there},
            unexpected={*there} - {*needed, *moments, LOSSES},
            # A moment is a number, such as the count of steps, or has the shape of its parameter.
            mismatched=compare_shapes(there, needed | {name: of for name, of in moments.items() if there[name]}),
            owner="this training",
            remedy=REMEDY,
        )

    def _list_weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        averaged = {"averaged": self._averaged.module} if self._averaged else {}
        for kind, module in {"model": self._model, **averaged}.items():
            for name, parameter in module.named_parameters():  # weights that are shared come once
                yield f"{kind}.{name}", parameter

    def _list_moments(self) -> Iterator[tuple[str, torch.Tensor]]:
        for place, (_, state) in self._map_trained().items():
            for name, tensor in state.items():
                yield f"{place}.{name}", tensor

    def _load_moments(self, file: Any) -> None:
        trained = self._map_trained()
        for name in file.keys():  # noqa: SIM118 - not a dictionary
            place, _, field = name.rpartition(".")
            if place in trained:
                (parameter, state), tensor = trained[place], file.get_tensor(name)
                # The count of steps stays on the CPU, where AdamW has it.
                state[field] = tensor.to(parameter.device) if tensor.ndim else tensor

    def _map_trained(self) -> dict[str, tuple[torch.Tensor, dict[str, torch.Tensor]]]:
        """Return the parameters and the optimizer's state of each, by part of the optimizer and number in it."""
        return {
            f"optimizer.{part}.{number}": (parameter, optimizer.state[parameter])
            for part, optimizer in enumerate(self._optimizers)
            for number, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"])
        }


def read_generators(device: torch.device) -> tuple[str, str]:
    """Return the states of torch's generators, `random` and `gpu_random` of a `Place`. device: where the model is."""
    gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.empty(0, dtype=torch.uint8)
    random, gpu_random = (state.numpy().tobytes().hex() for state in (torch.get_rng_state(), gpu))
    return random, gpu_random


def set_generators(place: Place, device: torch.device) -> None:
    """Set torch's generators to the states in a place. device: where the model is."""
    torch.set_rng_state(_read_bytes(place.random))
    if place.gpu_random and device.type == "cuda":
        torch.cuda.set_rng_state(_read_bytes(place.gpu_random), device)


def _read_bytes(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)


def load_place(path: Path | None) -> Place:
    """Return the place of the training that is saved in a file; the beginning if the file does not exist."""
    return _read_place(path) if path is not None and path.exists() else Place()


def _read_place(path: Path) -> Place:
    check_digest(path)
    return _read_metadata(path, PLACE, Place)


def _read_metadata(path: Path, name: str, kind: type[T]) -> T:
    """Read a field of the metadata of a file. Raises InputError if the file has no such field."""
    try:
        with safe_open(path, "pt") as file:
            return msgspec.json.decode(file.metadata()[name], type=kind)
    except (OSError, SafetensorError, msgspec.MsgspecError, KeyError, TypeError) as error:
        raise _not_readable(path, error) from error


def _not_readable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: not a saved state of this training ({str(error).splitlines()[0]}); {REMEDY}")


def choose_pause(took: float) -> float:
    """Return the usual pause: about a minute, longer if saving takes long."""
    return max(SECONDS, took / SHARE)


class SaveTimes:
    """The times at which a training is saved. clock: gives seconds. pause: between two saved states."""

    def __init__(self, clock: Callable[[], float], pause: Pause) -> None:
        self._clock, self._pause = clock, pause
        self._next = clock() + pause(0.0)

    def is_due(self) -> bool:
        """Return True if the training is to be saved now."""
        return self._clock() >= self._next

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Measure the time of the block, which saves the training."""
        begun = self._clock()
        yield
        self._next = self._clock() + self._pause(self._clock() - begun)


class StepClock:
    """The seconds of a training, those before an interruption included.

    Args:
        before: seconds up to the saved state that a training resumes from.
        state_file: the training's state file; a file beside it has the seconds of each step; its last line may be cut.
        now: gives seconds.
    """

    def __init__(
        self, before: float = 0.0, state_file: Path | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now, self._file = now, state_file.with_name(TIMES) if state_file else None
        self._known = dict(_read_lines(self._file)) if self._file and self._file.exists() else dict[int, float]()
        self._begun = now() - before

    def seconds(self) -> float:
        """Return the seconds so far."""
        return self._now() - self._begun

    def seconds_at(self, step: int) -> float:
        """Return the seconds at a step: from the first time that the training came there, which is now if not
        before.
        """
        if step in self._known:
            self._begun = self._now() - self._known[step]
            return self._known[step]
        self._known[step] = self.seconds()
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with open(self._file, "ab", buffering=0) as lines:
                lines.write(f"{step} {self._known[step]!r}\n".encode())
        return self._known[step]


def _read_lines(file: Path) -> list[tuple[int, float]]:
    """Return the whole lines: step and seconds. A kill may have left a part of one."""
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        step, _, seconds = line.partition(" ")
        if line.endswith("\n") and step.isdigit():
            found.append((int(step), float(seconds)))
    return found
