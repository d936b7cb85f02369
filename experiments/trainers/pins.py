"""Pins, in `pins-SEED.jsonl`: for each place of a source the version of its problem, and the choice of a sampler."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from lakewright.core_jax.support import holding_file
from lakewright.engineer.samplers import Sampled, Sampling
from lakewright.experiments.trainers.outcome_lines import append_whole, open_appended


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of `pins-SEED.jsonl`. The first line of a place counts; the cost is in all lines.

    version: version of the problem. turn: which problem of the stratum the sampler chose, 0 for the first. barren:
    whether no problem with signal was found. scored, tokens: the groups rolled out to find out, and their tokens.
    """

    place: int
    version: int
    turn: int = 0
    barren: bool = False
    scored: int = 0
    tokens: int = 0


def describe_choice(places: Sequence[int], version: int, drawn: Sampled, done: Sampling) -> list[Pin]:
    """The pins of some places, which share the cost.

    Args:
        places: the source's places.
        version: the version of their design.
        drawn, done: the sampler's choice for them, and its work.
    """
    barren, count = set(drawn.barren), len(places)
    return [
        Pin(
            place,
            version,
            turn,
            index in barren,
            *(share_out(part, index, count) for part in (done.scored, done.tokens)),
        )
        for index, (place, turn) in enumerate(zip(places, drawn.turns, strict=True))
    ]


def share_out(total: int, index: int, count: int) -> int:
    """The part of a whole number for an index of `count`; the parts differ by 1 at most, and add up to it."""
    return total * (index + 1) // count - total * index // count


class PinFile:
    """The pins of a folder and a seed, which several processes append to. pins: those that count, by place."""

    def __init__(self, path: Path) -> None:
        self.path, self.pins = path, dict[int, Pin]()
        self._read = 0  # bytes
        self._descriptor = open_appended(path)

    def __del__(self) -> None:
        """Closes the file."""
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def hold(self) -> AbstractContextManager[None]:
        """Lets other processes wait that hold the file, too."""
        return holding_file(self._descriptor, self.path)

    def append(self, pins: Sequence[Pin]) -> None:
        """Appends pins, and reads what was appended meanwhile."""
        append_whole(self._descriptor, b"".join(msgspec.json.encode(pin) + b"\n" for pin in pins), self.path)
        self.read()

    def read(self) -> bool:
        """Reads what was appended since; whether there was something."""
        size = os.fstat(self._descriptor).st_size
        text = os.pread(self._descriptor, max(0, size - self._read), self._read)
        whole = text[: text.rfind(b"\n") + 1]
        for pin in read_pins(whole):
            self.pins.setdefault(pin.place, pin)
        self._read += len(whole)
        return bool(whole)


def read_pins(text: bytes) -> Iterator[Pin]:
    """The pins of some lines, without torn ones."""
    for line in text.splitlines():
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            yield msgspec.json.decode(line, type=Pin)


def count_sampling(folder: Path) -> tuple[int, Sampling]:
    """The places of all sources of a folder, and the work of its sampler."""
    places, total = 0, Sampling()
    for path in sorted(folder.glob("pins-*.jsonl")):
        pins = dict[int, Pin]()
        for pin in read_pins(path.read_bytes()):
            pins.setdefault(pin.place, pin)
            total = total.add(Sampling(scored=pin.scored, tokens=pin.tokens))
        again, barren = sum(pin.turn > 0 for pin in pins.values()), sum(pin.barren for pin in pins.values())
        places, total = places + len(pins), total.add(Sampling(again, barren))
    return places, total
