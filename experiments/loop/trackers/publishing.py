"""The record of the parts of a run that a tracker has: each finished stage is published once, also after interruptions.

Each tracker is imported only when it is asked for.
"""

import hashlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import read_record, write_record
from lakewright.experiments.loop.trackers.figures import Point, points_of

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


class Published(msgspec.Struct, frozen=True):
    """published.json: for each tracker, how many chapters it has: the warm-up and the stages after it."""

    chapters: dict[str, int]


class Publisher:
    """Publishes the finished stages of a run to trackers. Raises InputError if one is not known or not installed."""

    def __init__(self, folder: RunFolder, names: Sequence[str]) -> None:
        for name in names:
            prepare_tracker(name, folder)
        self._folder, self._names = folder, names

    def publish(self) -> dict[str, int]:
        """Publishes what is finished and new; returns how many chapters, warm-up and stages, each tracker now has."""
        for name in self._names:
            new = range(self._chapters().get(name, 0), self._count_finished())
            if new:
                self._send(name, new)
        return {name: self._chapters().get(name, 0) for name in self._names}

    def _send(self, name: str, chapters: range) -> None:
        tracker = TRACKERS[name](self._folder)
        try:
            for chapter in chapters:
                for point in points_of(self._folder, chapter):
                    tracker.log(point)
        finally:
            tracker.close()
        write_record(self._file, Published(self._chapters() | {name: chapters.stop}))

    def _count_finished(self) -> int:
        """The number of finished chapters, in order from the warm-up."""
        return self._folder.warmup.done.exists() + len(self._folder.finished_stages())

    def _chapters(self) -> dict[str, int]:
        return read_record(self._file, Published).chapters if self._file.exists() else {}

    @property
    def _file(self) -> Path:
        return self._folder.folder / "published.json"
