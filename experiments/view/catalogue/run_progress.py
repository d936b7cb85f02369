"""How far a run is: what each stage has finished, what is being done now, how fast, and how long it will take."""

import time
from pathlib import Path

import msgspec

from experiments.loop.records import RunFolder, Stage
from experiments.loop.settings import RunSettings

ALIVE = 120.0  # seconds without a write after which a run that is not finished counts as stopped


class StageProgress(msgspec.Struct, frozen=True):
    """A stage, or the warm-up. state: done, current or waiting. steps: of the training, done and planned."""

    name: str
    number: int
    state: str
    doing: str
    steps: int
    planned: int
    per_second: float | None
    seconds_left: float | None


class Progress(msgspec.Struct, frozen=True):
    """A run. state: finished, running or stopped. silent: seconds since its last write."""

    state: str
    silent: float
    stages: list[StageProgress]

    @property
    def now(self) -> StageProgress | None:
        """What is being done."""
        return next((stage for stage in self.stages if stage.state == "current"), None)


def progress_of(folder: RunFolder, settings: RunSettings) -> Progress:
    """Where a run is. Cheap: it looks at names, times and the log that is being written."""
    parts = [("warm-up", -1, folder.warmup, settings.warmup.steps)]
    parts += [(f"stage {n}", n, folder.stage(n), settings.grpo.steps) for n in range(settings.stages)]
    done = [stage.done.exists() for _, _, stage, _ in parts]
    first = done.index(False) if False in done else len(parts)
    stages = [_stage(*part, place - first) for place, part in enumerate(parts)]
    silent = max(0.0, time.time() - newest(folder.folder))
    state = "finished" if all(done) else "running" if silent < ALIVE else "stopped"
    return Progress(state, silent, stages)


def newest(folder: Path) -> float:
    """When something was last written into a run folder."""
    return max((entry.stat().st_mtime for entry in _files(folder)), default=0.0)


def stamp_of(folder: Path) -> str:
    """A text that changes whenever a file of a run does; logs that grow are among them."""
    found = [f"{path.name}:{(stat := path.stat()).st_mtime_ns}:{stat.st_size}" for path in _files(folder)]
    return f"{hash(tuple(found)) & (1 << 64) - 1:x}"


def _files(folder: Path) -> list[Path]:
    try:
        names = [path for path in folder.iterdir() if path.name not in (".lock", "report.html")]
        inner = [path for part in names if part.is_dir() for path in part.iterdir() if path.name != ".scratch"]
        return [path for path in (*names, *inner) if path.exists()]
    except OSError:
        return []


def _stage(name: str, number: int, stage: Stage, planned: int, after: int) -> StageProgress:
    if after < 0:
        return StageProgress(name, number, "done", "done", planned, planned, None, None)
    if after > 0:
        return StageProgress(name, number, "waiting", "to come", 0, planned, None, None)
    begun = stage.train_log.with_name(f".{stage.train_log.name}.part")
    steps, rate = _speed(begun)
    left = (planned - steps) / rate if rate else None
    doing = _doing(stage, steps, planned)
    return StageProgress(name, number, "current", doing, steps, planned, rate, left)


def _speed(log: Path) -> tuple[int, float | None]:
    """The lines of a log that is being written, and how many come a second."""
    try:
        lines, stat = log.read_bytes().count(b"\n"), log.stat()
    except OSError:
        return 0, None
    seconds = stat.st_mtime - getattr(stat, "st_birthtime", stat.st_ctime)
    return lines, lines / seconds if lines > 1 and seconds > 0 else None


def _doing(stage: Stage, steps: int, planned: int) -> str:
    """In words, by which of its files are there."""
    if stage.proposal.exists():
        return "deciding on the next boards"
    if stage.validation.exists():
        return "asking the engineer"
    if stage.checkpoint.exists():
        return "validating on the held-out boards"
    if steps:
        return f"training, step {steps} of {planned}"
    return "preparing"
