"""The folder of a sweep: manifest.json, and in shards/ a Parquet file and a record for each finished shard."""

import contextlib
import functools
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import content_hash, prng, versions
from lakewright.core_jax.support import in_threads, read_config
from lakewright.experiments.boards.sweep.shards import REMEDY, Record, check_file, seal_record
from lakewright.experiments.boards.sweep.spec import SweepCell, SweepSpec
from lakewright.experiments.jobs.resumable.claims import Claim

FORMAT = 1
RECENT = 600.0  # seconds over which the rate is taken


class SweepManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """manifest.json: all that the shards depend on. cells: for `spec`, hardest first."""

    format: int
    versions: dict[str, str]
    prng: str
    spec: SweepSpec
    spec_hash: str
    cells: dict[str, SweepCell]


CLAIM = Claim("sweep", "manifest.json", SweepManifest, FORMAT, "lakewright sweep")


class SweepStatus(msgspec.Struct, frozen=True):
    """The progress of a sweep. boards_per_second: rate of the last ten minutes, None if nothing was finished."""

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
        """Claims this folder for `spec` and keeps other processes out, except those that share the work.

        Raises InputError if it holds something else.
        """
        cells = {cell.name: cell for cell in spec.cells()}
        work = SweepManifest(FORMAT, versions(), prng(), spec, content_hash(spec), cells)
        with CLAIM.hold_folder(self.folder, work, shared=shared):
            self.shards.mkdir(exist_ok=True)
            try:
                yield
            finally:
                if not shared:
                    self._tidy()

    def manifest(self) -> SweepManifest:
        """The manifest. Raises InputError if this is not the folder of a sweep."""
        return CLAIM.read_work(self.folder)

    def finished(self) -> set[str]:
        """The names of the finished shards."""
        if not self.shards.exists():
            return set()
        files = {entry.name for entry in os.scandir(self.shards)}
        names = {name.removesuffix(".json") for name in files if name.endswith(".json")}
        return {name for name in names if f"{name}.parquet" in files}

    def files_of(self, name: str) -> list[Path]:
        """The files of a finished shard; its record, which makes it count, is the last."""
        return [self.shards / f"{name}.parquet", self.shards / f"{name}.json"]

    def record(self, name: str) -> Record:
        """The record of a finished shard. Raises InputError if it was changed."""
        path = self.shards / f"{name}.json"
        record = read_config(path, Record)
        if record.name != name or (record.sha256 and record != seal_record(record, self.spec_hash)):
            raise InputError(f"{path}: was changed after it was written, or belongs to another sweep; {REMEDY}")
        return record

    def files(self) -> list[Path]:
        """The files of the finished shards, by name. Raises InputError if one was changed."""
        names = sorted(self.finished())
        return in_threads(lambda name: check_file(self.shards / f"{name}.parquet", self.record(name)), names)

    @functools.cached_property
    def spec_hash(self) -> str:
        """The content hash of the spec."""
        return content_hash(self.manifest().spec)

    def status(self) -> SweepStatus:
        """The progress of the sweep, also while other processes work on it."""
        spec = self.manifest().spec
        shards, finished = spec.shards(), self.finished()
        done = [shard for shard in shards if shard.name in finished]
        left = Counter(shard.cell.name for shard in shards if shard.name not in finished)
        boards, boards_done = (sum(shard.count for shard in some) for some in (shards, done))
        rate = _measure_rate([self.record(shard.name) for shard in done])
        return SweepStatus(
            cells=len(spec.cells()),
            cells_done=len(spec.cells()) - len(left),
            shards=len(shards),
            shards_done=len(done),
            boards=boards,
            boards_done=boards_done,
            boards_per_second=rate,
            seconds_left=(boards - boards_done) / rate if rate else None,
        )

    def _tidy(self) -> None:
        """Removes incomplete files of processes that were killed."""
        for left in self.shards.glob(".*part"):
            left.unlink()


def _measure_rate(records: list[Record]) -> float | None:
    now = time.time()
    recent = [record for record in records if record.finished > now - RECENT]
    if not recent:
        return None
    begun = max(now - RECENT, min(record.finished - record.seconds for record in recent))
    return sum(record.count for record in recent) / (now - begun)
