"""The seconds of a training at each of its steps, so that one that the clock ends can be resumed as the same run.

A training that is killed repeats the steps since its last saved state. They count with the seconds that they took at
first: so it takes as many steps as it would have without the kill, at the same rates, and its second start costs no
step.
"""

import time
from collections.abc import Callable
from pathlib import Path

TIMES = "seconds.txt"  # beside a saved state: a step and its seconds in each line


class StepClock:
    """The seconds of a training, those before an interruption included.

    Args:
        before: seconds up to the saved state that a training resumes from.
        state_file: for the training; seconds at each step are in a file beside it, which may end within a line.
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
