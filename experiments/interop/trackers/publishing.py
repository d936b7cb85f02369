"""The record of what a tracker has of a run: each finished stage is published once, also after interruptions."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lakewright.experiments.interop.trackers.adapters import TRACKERS, prepare_tracker
from lakewright.experiments.interop.trackers.figures import points_of
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import read_record, write_record


class Published(msgspec.Struct, frozen=True):
    """published.json: for each tracker, how many chapters it has: the warm-up and the stages after it."""

    chapters: dict[str, int]


class Publisher:
    """Publishes the finished stages of a run to trackers. Raises InputError where one is not known or not installed."""

    def __init__(self, folder: RunFolder, names: Sequence[str]) -> None:
        for name in names:
            prepare_tracker(name, folder)
        self._folder, self._names = folder, names

    def publish(self) -> dict[str, int]:
        """Publishes what is finished and new; returns how many chapters, warm-up and stages, each tracker now has."""
        for name in self._names:
            new = range(self._chapters().get(name, 0), self._finished())
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

    def _finished(self) -> int:
        """The number of finished chapters, in order from the warm-up."""
        return self._folder.warmup.done.exists() + len(self._folder.finished_stages())

    def _chapters(self) -> dict[str, int]:
        return read_record(self._file, Published).chapters if self._file.exists() else {}

    @property
    def _file(self) -> Path:
        return self._folder.folder / "published.json"
