"""The progress of a run: finished stages, the step in progress, its speed, and the time it will take."""

import math
import os
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.support import is_locked
from lakewright.experiments.jobs.resumable.driver import ALIVE, read_clock
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Done, Resumed, read_record
from lakewright.experiments.loop.records.token_budget import count_left
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.viewer.catalogue.discovery import files_of
from lakewright.experiments.viewer.catalogue.run_space import LAKE

LINE = msgspec.json.Decoder(dict[str, Any])


class Limits(msgspec.Struct, frozen=True):
    """The limits that end a training, whichever comes first; None for no limit. tokens: that may still be generated."""

    steps: int
    seconds: float | None = None
    tokens: float | None = None


class Work(msgspec.Struct, frozen=True):
    """The progress of a training, and the seconds it took. tokens: generated; 0 in a warm-up."""

    steps: int = 0
    tokens: float = 0.0
    seconds: float = 0.0


class TrainingPace(msgspec.Struct, frozen=True):
    """A training in progress: all its work, and the part that earlier processes did."""

    limits: Limits
    done: Work = Work()
    before: Work = Work()

    @property
    def steps_per_second(self) -> float | None:
        """Of this process; None if too little is done to estimate it."""
        steps, seconds = self.done.steps - self.before.steps, self.done.seconds - self.before.seconds
        return steps / seconds if steps > 1 and seconds > 0 else None

    @property
    def tokens_per_second(self) -> float | None:
        """Likewise; None in a warm-up."""
        tokens = self.done.tokens - self.before.tokens
        return tokens / (self.done.seconds - self.before.seconds) if tokens and self.steps_per_second else None

    @property
    def share(self) -> float:
        """The share of the training that is done, by the limit that will end it."""
        return min(1.0, max(self._list_shares(self.done)))

    @property
    def seconds_left(self) -> float | None:
        """Of the training, at the pace of this process; None if too little is done to estimate it."""
        gained, share = max(
            (now - then, now)
            for now, then in zip(self._list_shares(self.done), self._list_shares(self.before), strict=True)
            if now >= self.share
        )
        if not self.steps_per_second or gained <= 0:
            return None
        return (self.done.seconds - self.before.seconds) * max(0.0, 1 - share) / gained

    def _list_shares(self, work: Work) -> list[float]:
        """Of work, by each limit."""
        parts = [
            (work.steps, max(self.limits.steps, 1)),
            (work.seconds, self.limits.seconds),
            (work.tokens, self.limits.tokens),
        ]
        return [part / limit for part, limit in parts if limit and limit > 0]

    @property
    def words(self) -> str:
        """The work done, by the limit that will end it, as text."""
        limits, done = self.limits, self.done
        if limits.seconds and done.seconds / limits.seconds >= done.steps / max(limits.steps, 1):
            return f"training, step {done.steps}, {done.seconds / 60:.1f} of {limits.seconds / 60:.1f} min"
        return f"training, step {done.steps} of {limits.steps}"


def pace_of(log: Path, limits: Limits, resumed: Resumed = Resumed(0, 0.0)) -> TrainingPace:  # noqa: B008 - it is frozen
    """The pace of a training by the log that it is writing. Its folder last changed when the log was begun.

    resumed: how far it was when its process began; the log holds those steps too.
    """
    try:
        lines, written = log.read_bytes().split(b"\n")[:-1], log.stat().st_mtime
        seconds = max(0.0, written - os.stat(log.parent).st_mtime)
    except OSError:  # not begun, or just finished
        return TrainingPace(limits)
    tokens = [_count_tokens(line) for line in lines]
    before = Work(resumed.steps, sum(tokens[: resumed.steps]), resumed.seconds)
    return TrainingPace(limits, Work(len(lines), sum(tokens), resumed.seconds + seconds), before)


def _count_tokens(line: bytes) -> float:
    try:
        found = LINE.decode(line).get("sampled/tokens", 0)
    except msgspec.DecodeError:
        return 0.0
    return float(found) if isinstance(found, int | float) else 0.0


class StageProgress(msgspec.Struct, frozen=True):
    """A stage, or the warm-up. state: done, current or waiting. pace: the training's pace, while it runs."""

    name: str
    number: int
    state: str
    doing: str
    pace: TrainingPace | None = None


class RunProgress(msgspec.Struct, frozen=True):
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


def progress_of(folder: RunFolder, settings: RunSettings) -> RunProgress:
    """The progress of a run. Cheap: it reads only names, times, and the logs of a run in progress."""
    parts = [("warm-up", -1, folder.warmup), *((f"stage {n}", n, folder.stage(n)) for n in range(settings.stages))]
    first = next((place for place, (_, _, stage) in enumerate(parts) if not stage.done.exists()), len(parts))
    stages = [StageProgress(name, number, "done", "done") for name, number, _ in parts[:first]]
    over = first == len(parts) or _is_spent(folder, settings, first - 1)
    if not over:
        stages.append(_describe_current(folder, settings, *parts[first]))
    later = "not reached: the budget is spent" if over else "to come"
    stages += [StageProgress(name, number, "waiting", later) for name, number, _ in parts[len(stages) :]]
    written = find_newest(folder.folder)
    running = over or is_locked(folder.folder) or read_clock(folder.folder) - written < ALIVE
    state = "finished" if over else "running" if running else "stopped"
    return RunProgress(state, written, stages, _estimate_left(folder, stages))


def find_newest(folder: Path) -> float:
    """When something was last written into a run folder."""
    return max((entry.stat().st_mtime for entry in files_of(folder)), default=0.0)


def _is_spent(folder: RunFolder, settings: RunSettings, number: int) -> bool:
    """Whether a run ends before stage `number`, as its tokens are generated."""
    if number <= 0 or settings.budget is None or folder.stage(number).folder.exists():
        return False
    return count_left(folder, number) <= 0


def _describe_current(folder: RunFolder, settings: RunSettings, name: str, number: int, stage: Stage) -> StageProgress:
    if stage.checkpoint.exists():
        return StageProgress(name, number, "current", _name_activity(stage, settings))
    log = stage.train_log.with_name(f".{stage.train_log.name}.part")  # where it is while it is written
    resumed = read_record(stage.resumed, Resumed) if stage.resumed.exists() else Resumed(0, 0.0)
    pace = pace_of(log, _read_limits(folder, settings, number), resumed)
    return StageProgress(name, number, "current", pace.words if pace.done.steps else "preparing", pace)


def _read_limits(folder: RunFolder, settings: RunSettings, number: int) -> Limits:
    """The limits of the training of a stage, or of the warm-up."""
    training = settings.grpo.of_stage(number) if number >= 0 else settings.warmup
    tokens = count_left(folder, number + 1) if number >= 0 else math.inf  # what drew the problems is spent, too
    seconds = 60 * training.minutes if training.minutes else None
    return Limits(training.steps, seconds, tokens if math.isfinite(tokens) else None)


def _name_activity(stage: Stage, settings: RunSettings) -> str:
    """The step that a stage in training is at, as text, by the files that exist."""
    problems = "boards" if settings.environment == LAKE else "problems"
    if stage.proposal.exists():
        return f"deciding on the next {problems}"
    if stage.validation.exists():
        return "asking the engineer"
    return f"validating on the held-out {problems}"


def _estimate_left(folder: RunFolder, stages: list[StageProgress]) -> float | None:
    """Stages to come take as long as finished ones did on average; before that, as the training of this one."""
    now = next((stage for stage in stages if stage.state == "current"), None)
    here = now.pace.seconds_left if now and now.pace else None
    if now is None or now.pace is None or here is None:
        return None
    waiting = sum(stage.state == "waiting" for stage in stages)
    if now.number < 0:
        return None if waiting else here
    done = [read_record(folder.stage(number).done, Done).seconds for number in range(now.number)]
    return here + waiting * (sum(done) / len(done) if done else here + now.pace.done.seconds)
