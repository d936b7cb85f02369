"""Makes the missing shards of a sweep.

with Local(workers=2) as executor:
    for shard in sweep(spec, executor, Path("sweeps/a")):
        shard.read()  # the table of its boards
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.experiments.boards.sweep.folder import CLAIM, SweepFolder
from lakewright.experiments.boards.sweep.shards import Record, check_cell, check_file, make_shard
from lakewright.experiments.boards.sweep.spec import Shard, SweepCell, SweepSpec
from lakewright.experiments.jobs.executors.executor import Executor, WorkerDiedError, as_finished
from lakewright.experiments.jobs.resumable.copies import check_address, open_copies

WHOLE = (0, 1)
DIGITS = 9  # of the numbers of a share


@dataclasses.dataclass(frozen=True)
class Finished:
    """A shard on disk. path: its Parquet file. new: whether this call made it."""

    path: Path
    record: Record
    new: bool

    def read(self) -> pa.Table:
        """Its boards, one row for each. Raises InputError if its file was changed."""
        check_file(self.path, self.record)
        return pq.read_table(self.path, partitioning=None)


def sweep(
    spec: SweepSpec, executor: Executor, out: Path, share: tuple[int, int] = WHOLE, copy_to: str = ""
) -> Iterator[Finished]:
    """Yields every shard of a sweep once it is in the folder `out`: first the existing ones, then new ones.

    It may be stopped at any time and called again.

    Args:
        spec: The grid of cells, and the number of boards in each.
        executor: Makes the shards. It is ended if the sweep stops early.
        out: The folder of the sweep.
        share: (i, n) for every n-th shard from the i-th on, so that n processes can share a folder.
        copy_to: An address of fsspec, to which each finished shard is copied, its record last.

    Raises InputError if `out` holds another sweep or a stratum is too rare.
    """
    folder = SweepFolder(out)
    if copy_to:
        check_address(copy_to)
    with folder.working(spec, shared=share != WHOLE):
        mine = spec.shards()[share[0] :: share[1]]
        finished = folder.finished()
        if copy_to:
            there = [file for shard in mine if shard.name in finished for file in folder.files_of(shard.name)]
            open_copies(copy_to, folder.folder / CLAIM.file).add(there, folder.folder)
        for shard in mine:
            if shard.name in finished:
                yield Finished(folder.shards / f"{shard.name}.parquet", folder.record(shard.name), new=False)
        left = [shard for shard in mine if shard.name not in finished]
        # Strata first: one that cannot be drawn is reported before much is made.
        strata = [shard.cell for shard in left if shard.first == 0 and shard.cell.wait_ratio is not None]
        items: list[SweepCell | Shard] = [*strata, *left]
        work = functools.partial(_make_item, folder, spec, copy_to)
        with contextlib.closing(as_finished(executor, work, items)) as finishing:
            for item, done in finishing:
                if (record := _record_of(item, done)) is not None:
                    yield Finished(folder.shards / f"{record.name}.parquet", record, new=True)


def _make_item(folder: SweepFolder, spec: SweepSpec, copy_to: str, item: SweepCell | Shard) -> Record | None:
    if isinstance(item, Shard):
        record = make_shard(folder.shards, spec, item)
        if copy_to:
            open_copies(copy_to, folder.folder / CLAIM.file).add(folder.files_of(item.name), folder.folder, again=True)
        return record
    check_cell(item)
    return None


def _record_of(item: SweepCell | Shard, done: Future[Record | None]) -> Record | None:
    try:
        return done.result()
    except WorkerDiedError as error:
        raise WorkerDiedError(f"{item}: {error}") from None


def share_of(text: str) -> tuple[int, int]:
    """The share `i/n` of a command line. Raises InputError on any other text."""
    place, slash, count = text.partition("/")
    numbers = all(part.isdecimal() and len(part) <= DIGITS for part in (place, count))
    if not (slash and numbers and int(place) < int(count)):
        raise InputError(f"--shard is {text!r:.60}; write i/n with 0 <= i < n, such as 0/100")
    return int(place), int(count)
