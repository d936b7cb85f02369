"""Makes the missing shards of a sweep.

for shard in sweep(spec, Local(workers=2), Path("sweeps/a")):
    shard.read()  # the table of its boards
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.experiments.sweep.executors import Executor
from lakewright.experiments.sweep.folder import SweepFolder
from lakewright.experiments.sweep.shards import Record, check_cell, check_file, make_shard
from lakewright.experiments.sweep.spec import Shard, SweepCell, SweepSpec

WHOLE = (0, 1)
DIGITS = 9  # of the numbers of a share


@dataclasses.dataclass(frozen=True)
class Finished:
    """A shard on disk. path: of its Parquet file. new: whether this call made it."""

    path: Path
    record: Record
    new: bool

    def read(self) -> pa.Table:
        """Its boards, one row for each. Raises InputError where its file was changed."""
        check_file(self.path, self.record)
        return pq.read_table(self.path, partitioning=None)


def sweep(spec: SweepSpec, executor: Executor, out: Path, share: tuple[int, int] = WHOLE) -> Iterator[Finished]:
    """Yields every shard of a sweep once it is in the folder `out`: first the existing ones, then new ones.

    It may be stopped at any time and called again.

    Args:
        spec: The grid of cells, and how many boards each has.
        executor: Makes the shards.
        out: The folder of the sweep.
        share: (i, n) for every n-th shard from the i-th on, so that n processes can share a folder.

    Raises InputError where `out` holds another sweep or a stratum is too rare.
    """
    folder = SweepFolder(out)
    with folder.working(spec, shared=share != WHOLE):
        mine = spec.shards()[share[0] :: share[1]]
        finished = folder.finished()
        for shard in mine:
            if shard.name in finished:
                yield Finished(folder.shards / f"{shard.name}.parquet", folder.record(shard.name), new=False)
        left = [shard for shard in mine if shard.name not in finished]
        # Strata first: one that cannot be drawn is reported before much is made.
        strata = [shard.cell for shard in left if shard.first == 0 and shard.cell.wait_ratio is not None]
        work = functools.partial(_make_item, folder.shards, spec)
        with contextlib.closing(executor.map(work, [*strata, *left])) as records:
            for record in records:
                if record is not None:
                    yield Finished(folder.shards / f"{record.name}.parquet", record, new=True)


def _make_item(folder: Path, spec: SweepSpec, item: SweepCell | Shard) -> Record | None:
    if isinstance(item, Shard):
        return make_shard(folder, spec, item)
    check_cell(item)
    return None


def share_of(text: str) -> tuple[int, int]:
    """The share `i/n` of a command line. Raises InputError on any other text."""
    place, slash, count = text.partition("/")
    numbers = all(part.isdecimal() and len(part) <= DIGITS for part in (place, count))
    if not (slash and numbers and int(place) < int(count)):
        raise InputError(f"--shard is {text!r:.60}; write i/n with 0 <= i < n, such as 0/100")
    return int(place), int(count)
