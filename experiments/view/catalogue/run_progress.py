"""The progress of a run: finished stages, the step in progress, its speed, and the time it will take."""

import math
import os
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.support import is_locked
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Done, read_record
from lakewright.experiments.loop.records.token_budget import count_remaining_tokens, count_run_tokens
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.resumable.driver import ALIVE, read_clock
from lakewright.experiments.view.catalogue.discovery import files_of
from lakewright.experiments.view.catalogue.run_space import LAKE

LINE = msgspec.json.Decoder(dict[str, Any])


class Limits(msgspec.Struct, frozen=True):
    """The limits that end a training, whichever comes first; None for no limit. tokens: that may still be generated."""

    steps: int
    seconds: float | None = None
    tokens: float | None = None


class Pace(msgspec.Struct, frozen=True):
    """A training in progress: what it has done, and how long it has taken."""

    limits: Limits
    steps: int = 0
    tokens: float = 0.0
    seconds: float = 0.0

    @property
    def steps_per_second(self) -> float | None:
        """None where too little is done to estimate it."""
        return self.steps / self.seconds if self.steps > 1 and self.seconds > 0 else None

    @property
    def tokens_per_second(self) -> float | None:
        """Generated tokens; None in a warm-up, which generates none."""
        return self.tokens / self.seconds if self.tokens and self.steps_per_second else None

    @property
    def share(self) -> float:
        """The share of the training that is done, by the limit that will end it."""
        done = [self.steps / max(self.limits.steps, 1)]
        done += [self.seconds / self.limits.seconds] if self.limits.seconds else []
        done += [self.tokens / self.limits.tokens] if self.limits.tokens and self.limits.tokens > 0 else []
        return min(1.0, max(done))

    @property
    def seconds_left(self) -> float | None:
        """Of the training, at the pace so far; None where too little is done to estimate it."""
        if not self.steps_per_second or not self.share:
            return None
        return self.seconds * (1 - self.share) / self.share

    @property
    def words(self) -> str:
        """The work done, by the limit that will end it, as text."""
        limits = self.limits
        if limits.seconds and self.seconds / limits.seconds >= self.steps / max(limits.steps, 1):
            return f"training, step {self.steps}, {self.seconds / 60:.1f} of {limits.seconds / 60:.1f} min"
        return f"training, step {self.steps} of {limits.steps}"


def pace_of(log: Path, limits: Limits) -> Pace:
    """The pace of a training by the log that it is writing. Its folder last changed when the log was begun."""
    try:
        lines, written = log.read_bytes().split(b"\n")[:-1], log.stat().st_mtime
        seconds = max(0.0, written - os.stat(log.parent).st_mtime)
    except OSError:  # not begun, or just finished
        return Pace(limits)
    return Pace(limits, len(lines), sum(map(_count_tokens, lines)), seconds)


def _count_tokens(line: bytes) -> float:
    try:
        found = LINE.decode(line).get("sampled/tokens", 0)
    except msgspec.DecodeError:
        return 0.0
    return float(found) if isinstance(found, int | float) else 0.0


class StageProgress(msgspec.Struct, frozen=True):
    """A stage, or the warm-up. state: done, current or waiting. pace: of the training, while it runs."""

    name: str
    number: int
    state: str
    doing: str
    pace: Pace | None = None


class Progress(msgspec.Struct, frozen=True):
    """A run. state: finished, running or stopped. written: when something last was, in seconds since 1970.

    seconds_left: until the last stage is finished, estimated from the finished ones and the pace of this one.
    """

    state: str
    written: float
    stages: list[StageProgress]
    seconds_left: float | None

    @property
    def now(self) -> StageProgress | None:
        """The stage in progress."""
        return next((stage for stage in self.stages if stage.state == "current"), None)


def progress_of(folder: RunFolder, settings: RunSettings) -> Progress:
    """The progress of a run. Cheap: it reads only names, times, and the logs of a run in progress."""
    parts = [("warm-up", -1, folder.warmup), *((f"stage {n}", n, folder.stage(n)) for n in range(settings.stages))]
    first = next((place for place, (_, _, stage) in enumerate(parts) if not stage.done.exists()), len(parts))
    stages = [StageProgress(name, number, "done", "done") for name, number, _ in parts[:first]]
    over = first == len(parts) or _is_spent(folder, settings, first - 1)
    if not over:
        stages.append(_describe_current(folder, settings, *parts[first]))
    later = "the budget was spent before" if over else "to come"
    stages += [StageProgress(name, number, "waiting", later) for name, number, _ in parts[len(stages) :]]
    written = find_newest(folder.folder)
    running = over or is_locked(folder.folder) or read_clock(folder.folder) - written < ALIVE
    state = "finished" if over else "running" if running else "stopped"
    return Progress(state, written, stages, _estimate_left(folder, stages))


def find_newest(folder: Path) -> float:
    """When something was last written into a run folder."""
    return max((entry.stat().st_mtime for entry in files_of(folder)), default=0.0)


def _is_spent(folder: RunFolder, settings: RunSettings, number: int) -> bool:
    """Whether a run ends before stage `number`, as its tokens are generated."""
    if number <= 0 or settings.budget is None or folder.stage(number).folder.exists():
        return False
    return count_remaining_tokens(settings.budget, count_run_tokens(folder, number)) <= 0


def _describe_current(folder: RunFolder, settings: RunSettings, name: str, number: int, stage: Stage) -> StageProgress:
    if stage.checkpoint.exists():
        return StageProgress(name, number, "current", _name_activity(stage, settings))
    log = stage.train_log.with_name(f".{stage.train_log.name}.part")  # where it is while it is written
    pace = pace_of(log, _read_limits(folder, settings, number))
    return StageProgress(name, number, "current", pace.words if pace.steps else "preparing", pace)


def _read_limits(folder: RunFolder, settings: RunSettings, number: int) -> Limits:
    """The limits of the training of a stage, or of the warm-up."""
    training = settings.grpo.of_stage(number) if number >= 0 else settings.warmup
    tokens = count_remaining_tokens(settings.budget, count_run_tokens(folder, number)) if number >= 0 else math.inf
    seconds = 60 * training.minutes if training.minutes else None
    return Limits(training.steps, seconds, tokens if math.isfinite(tokens) else None)


def _name_activity(stage: Stage, settings: RunSettings) -> str:
    """The step of a stage in training, as text, by which of its files exist."""
    problems = "boards" if settings.environment == LAKE else "problems"
    if stage.proposal.exists():
        return f"deciding on the next {problems}"
    if stage.validation.exists():
        return "asking the engineer"
    return f"validating on the held-out {problems}"


def _estimate_left(folder: RunFolder, stages: list[StageProgress]) -> float | None:
    """Stages to come take as long as finished ones did on average; where none is, as the training of this one."""
    now = next((stage for stage in stages if stage.state == "current"), None)
    here = now.pace.seconds_left if now and now.pace else None
    if now is None or now.pace is None or here is None:
        return None
    waiting = sum(stage.state == "waiting" for stage in stages)
    if now.number < 0:
        return None if waiting else here
    done = [read_record(folder.stage(number).done, Done).seconds for number in range(now.number)]
    return here + waiting * (sum(done) / len(done) if done else here + now.pace.seconds)
