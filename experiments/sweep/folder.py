"""The folder of a sweep: manifest.json, and in shards/ a Parquet file and a record for each finished shard."""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from core_jax.errors import InputError
from core_jax.generator import content_hash, prng, versions
from core_jax.support import locked, read_config, read_raw, write_atomically
from experiments.resumable import difference
from experiments.sweep.shards import Record, writer
from experiments.sweep.spec import Cell, SweepSpec

FORMAT = 1
RECENT = 600.0  # seconds that the rate is taken of


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """manifest.json: all that the shards depend on. cells: of `spec`, hardest first."""

    format: int
    versions: dict[str, str]
    prng: str
    spec: SweepSpec
    spec_hash: str
    cells: dict[str, Cell]


class Status(msgspec.Struct, frozen=True):
    """How far a sweep is. boards_per_second: of the last ten minutes, None where nothing was finished in them."""

    cells: int
    cells_done: int
    shards: int
    shards_done: int
    boards: int
    boards_done: int
    boards_per_second: float | None
    seconds_left: float | None


class SweepFolder:
    """A sweep on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.shards = self.folder / "shards"

    @contextlib.contextmanager
    def working(self, spec: SweepSpec, shared: bool) -> Iterator[None]:
        """Makes this the folder of `spec`, and keeps other processes away but those that share the work.

        Raises InputError where it holds something else.
        """
        told = f"{self.folder}: another process makes this sweep; wait for it, or choose another --out"
        self._check_place()
        with locked(self.folder, told, shared):
            self._claim(spec)
            self.shards.mkdir(exist_ok=True)
            try:
                yield
            finally:
                if not shared:
                    self._tidy()

    def manifest(self) -> Manifest:
        """Raises InputError where this is no folder of a sweep."""
        if not self._manifest.exists():
            raise InputError(f"{self.folder}: holds no sweep; give a folder made by `lakewright sweep`")
        form = read_raw(self._manifest).get("format")
        if form != FORMAT:
            raise InputError(
                f"{self._manifest}: format is {form!r}, this version reads {FORMAT}; use the version that wrote it"
            )
        return read_config(self._manifest, Manifest)

    def finished(self) -> set[str]:
        """The names of the finished shards."""
        if not self.shards.exists():
            return set()
        files = {entry.name for entry in os.scandir(self.shards)}
        names = {name.removesuffix(".json") for name in files if name.endswith(".json")}
        return {name for name in names if f"{name}.parquet" in files}

    def record(self, name: str) -> Record:
        """The record of a finished shard."""
        return read_config(self.shards / f"{name}.json", Record)

    def status(self) -> Status:
        """How far the sweep is, also while others work at it."""
        spec = self.manifest().spec
        shards, finished = spec.shards(), self.finished()
        done = [shard for shard in shards if shard.name in finished]
        left = Counter(shard.cell.name for shard in shards if shard.name not in finished)
        boards, boards_done = (sum(shard.count for shard in some) for some in (shards, done))
        rate = _rate([self.record(shard.name) for shard in done])
        return Status(
            cells=len(spec.cells()),
            cells_done=len(spec.cells()) - len(left),
            shards=len(shards),
            shards_done=len(done),
            boards=boards,
            boards_done=boards_done,
            boards_per_second=rate,
            seconds_left=(boards - boards_done) / rate if rate else None,
        )

    @property
    def _manifest(self) -> Path:
        return self.folder / "manifest.json"

    def _tidy(self) -> None:
        """Removes what processes that were killed, here or before, have left half written."""
        for left in self.shards.glob(".*part"):
            left.unlink()

    def _check_place(self) -> None:
        if self.folder.is_dir() and not self._manifest.exists() and any(self.folder.iterdir()):
            raise InputError(f"{self.folder}: holds no sweep, but something else; choose another folder")

    def _claim(self, spec: SweepSpec) -> None:
        cells = {cell.name: cell for cell in spec.cells()}
        here = Manifest(FORMAT, versions(), prng(), spec, content_hash(spec), cells)
        if not self._manifest.exists():
            write_atomically(self._manifest, msgspec.json.format(msgspec.json.encode(here)) + b"\n", writer())
        elif (there := self.manifest()) != here:
            raise InputError(
                f"{self.folder}: holds the shards of another sweep ({difference(there, here)}); choose another --out, "
                "or repeat that sweep"
            )


def _rate(records: list[Record]) -> float | None:
    now = time.time()
    recent = [record for record in records if record.finished > now - RECENT]
    if not recent:
        return None
    begun = max(now - RECENT, min(record.finished - record.seconds for record in recent))
    return sum(record.count for record in recent) / (now - begun)
