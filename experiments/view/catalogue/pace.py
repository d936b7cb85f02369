"""The speed and the expected end of a training, by its log and the limits of its settings."""

import os
from pathlib import Path
from typing import Any

import msgspec

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
