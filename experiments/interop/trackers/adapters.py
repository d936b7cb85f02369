"""The trackers themselves. Each is imported only when it is asked for."""

import hashlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.experiments.interop.trackers.figures import Point
from lakewright.experiments.loop.records.run_folder import RunFolder

PROJECT = "lakewright"


class Tracker(Protocol):
    """Takes points of rising steps."""

    def log(self, point: Point) -> None:
        """Takes a point."""
        ...

    def close(self) -> None:
        """Returns once everything is stored."""
        ...


class TensorBoard:
    """Event files in `RUN/tensorboard/loop`, beside which TRL writes its own."""

    def __init__(self, folder: RunFolder) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(folder.folder / "tensorboard" / "loop")

    def log(self, point: Point) -> None:
        """As `Tracker`."""
        for name, value in point.figures.items():
            self._writer.add_scalar(name, value, point.step)
        for name, picture in point.pictures.items():
            self._writer.add_image(name, picture, point.step, dataformats="HWC")

    def close(self) -> None:
        """As `Tracker`."""
        self._writer.close()


class WandbLike:
    """Weights & Biases, and trackio, which has its interface: one run in a group of its own, resumed by its name."""

    def __init__(self, module: Any, **given: Any) -> None:
        self._module = module
        module.init(project=PROJECT, resume="allow", **given)

    def log(self, point: Point) -> None:
        """As `Tracker`."""
        pictures = {name: self._module.Image(picture) for name, picture in point.pictures.items()}
        self._module.log({**point.figures, **pictures}, step=point.step)

    def close(self) -> None:
        """As `Tracker`."""
        self._module.finish()


def _open_tensorboard(folder: RunFolder) -> Tracker:
    return TensorBoard(folder)


def _open_wandb(folder: RunFolder) -> Tracker:
    """WANDB_MODE=offline keeps it in `RUN/wandb`."""
    import wandb

    name = _name_run(folder)
    settings = folder.config.read_bytes()
    identity = hashlib.sha256(name.encode() + settings).hexdigest()[:16]
    config = msgspec.json.decode(settings)
    return WandbLike(wandb, id=identity, name=name, group=name, dir=str(folder.folder), config=config)


def _open_trackio(folder: RunFolder) -> Tracker:
    import trackio

    name = _name_run(folder)
    return WandbLike(trackio, name=name, group=name, config=msgspec.json.decode(folder.config.read_bytes()))


def _name_run(folder: RunFolder) -> str:
    return folder.folder.resolve().name


TRACKERS: dict[str, Callable[[RunFolder], Tracker]] = {
    "tensorboard": _open_tensorboard,
    "wandb": _open_wandb,
    "trackio": _open_trackio,
}


def prepare_tracker(name: str, folder: RunFolder) -> None:
    """Makes TRL's own runs of the stages join the group. Raises InputError without such a tracker here."""
    if name not in TRACKERS:
        raise InputError(f"tracker {name!r:.40} is not known; choose from {', '.join(TRACKERS)}")
    if importlib.util.find_spec(name) is None:
        raise InputError(f"tracker {name} is not installed; pip install {name}")
    if name == "wandb":
        os.environ.setdefault("WANDB_RUN_GROUP", _name_run(folder))
