"""The closed loop in TensorBoard, Weights & Biases and trackio, read from the files of a run.

A record lists the published stages: each finished stage is published once, also after interruptions. A tracker is
imported only when it is asked for.
"""

import hashlib
import importlib.util
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, read_all
from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.engineer.trial import Trial
from lakewright.experiments.boards.episodes.pictures import as_pixels
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Done, Validation, read_record, write_record

COUNTERS = ("step", "epoch")  # of TRL's log, whose steps start from one in each stage
LAKE_NAMES = {
    "eval/optimal_sum_of_costs": "eval/optimal",
    "eval/optimal_makespan": "",
    "eval/wait_ratio": "eval/forced_wait",
    **{f"engineer/{name}_ratio": f"engineer/{name}" for name in ("data", "hole", "wait")},
}
"""What figures of the lake are called, which were there before there were other environments; a figure without a name
is left out."""
PROJECT = "lakewright"


class TrackedPoint(NamedTuple):
    """Figures by name, and pictures uint8 [height, width, 3] by name, at a step of the whole run."""

    step: int
    figures: dict[str, float]
    pictures: dict[str, np.ndarray]


def points_of(folder: RunFolder, chapter: int) -> Iterator[TrackedPoint]:
    """The points of a finished chapter: 0 is the warm-up, 1 the first stage; steps go on from the chapters before."""
    stages = [folder.warmup, *(folder.stage(number) for number in range(chapter))]
    *earlier, stage = stages
    begun, lines = sum(len(_read_lines(before)) for before in earlier), _read_lines(stage)
    for number, line in enumerate(lines, 1):
        yield TrackedPoint(
            begun + number, {f"{'train' if chapter else 'warmup'}/{name}": line[name] for name in line}, {}
        )
    figures = dict(_list_validation(read_record(stage.validation, Validation)))
    if chapter:
        figures |= _read_redesign(stage)
    if not folder.settings().lake:
        yield TrackedPoint(begun + len(lines), figures, {})
        return
    yield TrackedPoint(begun + len(lines), dict(_rename_figures(figures)), _render_boards(stage) if chapter else {})


def _rename_figures(figures: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Figures such as `eval/wait_ratio/5` by their names on the lake."""
    for name, value in figures.items():
        group, figure, *stratum = name.split("/")
        if own := LAKE_NAMES.get(f"{group}/{figure}", f"{group}/{figure}"):
            yield "/".join([own, *stratum]), value


def _read_lines(stage: Stage) -> list[dict[str, float]]:
    """The numbers of each step of the training."""
    return [{name: value for name, value in line.items() if _is_figure(name, value)} for line in stage.read_steps()]


def _is_figure(name: str, value: object) -> bool:
    return name not in COUNTERS and type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _list_validation(found: Validation) -> Iterator[tuple[str, float]]:
    """Shares of the held-out problems, of each stratum and of all: valid, of each grade, and valid with each trait."""
    parts: dict[str, Tally] = {f"/{stratum}": part for stratum, part in found.outcomes.items()}
    for ending, part in itertools.chain(parts.items(), [("", pool_tallies(found.outcomes.values()))]):
        yield f"eval/valid{ending}", part.valid_rate
        for name, count in part.grades.items():
            yield f"eval/{name}{ending}", part.rate(count)
        for name, having in part.traits.items():
            yield f"eval/{name}{ending}", having.valid_rate


def _read_redesign(stage: Stage) -> dict[str, float]:
    """The engineer's changes for the stage that follows, the result of the trial, and their cost."""
    rolled_back, done = stage.rolled_back() is not None, read_record(stage.done, Done)
    figures = {"loop/taken_back": float(rolled_back), "loop/seconds": done.seconds}
    for stratum, row in stage.read_next().design.strata.items():
        figures |= {f"engineer/{name}/{stratum}": float(value) for name, value in row.items()}
    if groups := stage.engineer_figures():
        names = ("reward", "distinct", "refused")
        figures |= {f"train/engineer/{name}": groups[-1][name] for name in names}
        figures["train/engineer/reward_before"] = groups[0]["reward"]
    if known := stage.read_calibration():
        figures |= {"difficulty/brier": known.brier, "difficulty/brier_of_constant": known.baseline}
    if stage.trial.exists():
        trial = read_record(stage.trial, Trial)
        scores = [candidate.score for candidate in trial.candidates]
        figures |= {
            "trial/score": max(scores[1:]),
            "trial/current": scores[0],
            "trial/accepted": float(trial.chosen > 0),
            "trial/tokens": float(trial.tokens),
        }
    return figures


def _render_boards(stage: Stage) -> dict[str, np.ndarray]:
    """A picture of the first board of each size that the stage trained on."""
    first: dict[int, Row] = {}
    for row in read_all(stage.boards):
        first.setdefault(row.size, row)
    return {f"boards/{size}": _render_board(row) for size, row in sorted(first.items())}


def _render_board(row: Row) -> np.ndarray:
    holes = np.array([[cell == "H" for cell in line] for line in row.grid])
    return as_pixels(holes, np.array(row.starts), np.array(row.goals))


class Tracker(Protocol):
    """Takes points of rising steps."""

    def log(self, point: TrackedPoint) -> None:
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

    def log(self, point: TrackedPoint) -> None:
        """See `Tracker`."""
        for name, value in point.figures.items():
            self._writer.add_scalar(name, value, point.step)
        for name, picture in point.pictures.items():
            self._writer.add_image(name, picture, point.step, dataformats="HWC")

    def close(self) -> None:
        """See `Tracker`."""
        self._writer.close()


class WandbLike:
    """Weights & Biases, and trackio, which has its interface: one run in a group of its own, resumed by its name."""

    def __init__(self, module: Any, **given: Any) -> None:
        self._module = module
        module.init(project=PROJECT, resume="allow", **given)

    def log(self, point: TrackedPoint) -> None:
        """See `Tracker`."""
        pictures = {name: self._module.Image(picture) for name, picture in point.pictures.items()}
        self._module.log({**point.figures, **pictures}, step=point.step)

    def close(self) -> None:
        """See `Tracker`."""
        self._module.finish()


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
    "tensorboard": TensorBoard,
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
