"""The source: problems of the present version of a design, each place pinned to the version it was first drawn from."""

import functools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Problem
from lakewright.experiments.trainers.appending import append_whole, open_appended
from lakewright.experiments.trainers.versions import VersionFiles

RECENT = 4096  # problems that are not drawn again when asked for again
TRIES = 100  # of pinning, which fails only while others leave torn lines


class Pin(msgspec.Struct, frozen=True):
    """A line of `pins-SEED.jsonl`: the version that the problem of a place is of. The first line of a place counts."""

    place: int
    version: int


class ProblemSource:
    """The problems of a folder and a seed, by place: 0, 1, 2, ...

    A place is pinned to the present version when it is first asked for. Asked again, in any process, it gives the same
    problem: so a group never spans two versions, and a trainer that resumes gets the problems it had.

    position: the place of the next problem of `take`.
    """

    def __init__(self, path: str | Path, seed: int = 0, position: int = 0) -> None:
        """Opens the source of a folder.

        Raises InputError without an engineer, or if the seed is also the held-out problems'.
        """
        self._files = VersionFiles(path)
        self.path, self.seed, self.position = self._files.folder, seed, position
        self.environment = self._files.load_environment()
        if seed == self._files.read_setup().held_out_seed:
            raise InputError(f"seed is {seed}, that of the held-out problems; choose another")
        self._pins_path = self.path / f"pins-{seed}.jsonl"
        self._pins: dict[int, int] = {}
        self._read = 0  # bytes of the pins
        self._descriptor = open_appended(self._pins_path)
        self._stamp: tuple[int, ...] = ()
        self._version = 0
        self._design = functools.cache(self._read_design)
        self._problem = functools.lru_cache(RECENT)(self._draw_problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the folder again."""
        return type(self), (self.path, self.seed, self.position)

    def __del__(self) -> None:
        """Closes its file."""
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    @property
    def version(self) -> int:
        """The present version; asking costs a look at the time of `design.json`."""
        try:
            seen = os.stat(self._files.design_path)
        except FileNotFoundError:
            raise InputError(f"{self._files.design_path}: is missing; lakewright engineer next writes it") from None
        stamp = (seen.st_mtime_ns, seen.st_ino, seen.st_size)
        if stamp != self._stamp:
            self._version, self._stamp = self._files.newest(), stamp
        return self._version

    def __getitem__(self, place: int) -> Problem:
        """The problem of a place."""
        return self.problems([place])[0]

    def take(self, count: int) -> list[Problem]:
        """The problems of the next places."""
        problems = self.problems(range(self.position, self.position + count))
        self.position += count
        return problems

    def problems(self, places: Sequence[int]) -> list[Problem]:
        """The problems of some places. Raises InputError on anything but whole numbers from 0."""
        for place in places:
            if not isinstance(place, SupportsIndex) or not 0 <= place < 2**63:
                raise InputError(f"place is {place!r:.30}; give a whole number, at least 0, below 2^63")
        self._pin_places(places)
        return [self._problem(place, self._pins[place]) for place in places]

    def find_pinned(self, place: int) -> Problem | None:
        """The problem of a place that some process has asked for; None for any other."""
        self._read_pins()
        return self._problem(place, self._pins[place]) if place in self._pins else None

    def _pin_places(self, places: Iterable[int]) -> None:
        """Pins places; if two processes pin one at the same time, the line that comes first in the file counts."""
        for _ in range(TRIES):
            missing = [place for place in places if place not in self._pins]
            if missing and self._read_pins():
                missing = [place for place in missing if place not in self._pins]
            if not missing:
                return
            version = self.version
            lines = b"".join(msgspec.json.encode(Pin(place, version)) + b"\n" for place in missing)
            append_whole(self._descriptor, lines, self._pins_path)
            self._read_pins()
        raise InputError(f"{self._pins_path}: place {missing[0]} cannot be pinned; move the file away")

    def _read_pins(self) -> bool:
        """Reads what was appended since; whether there was something."""
        size = os.fstat(self._descriptor).st_size
        text = os.pread(self._descriptor, max(0, size - self._read), self._read)
        whole = text[: text.rfind(b"\n") + 1]
        for line in whole.splitlines():
            try:
                pin = msgspec.json.decode(line, type=Pin)
            except (msgspec.MsgspecError, UnicodeDecodeError):  # torn
                continue
            self._pins.setdefault(pin.place, pin.version)
        self._read += len(whole)
        return bool(whole)

    def _read_design(self, version: int) -> Design:
        return self._files.read_version(version).design

    def _draw_problem(self, place: int, version: int) -> Problem:
        return self.environment.draw(self._design(version), 1, self.seed, first=place)[0]
