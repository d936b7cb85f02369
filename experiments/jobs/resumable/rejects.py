"""Rows that a command leaves out, unchanged, in a file of their own, so that no refused row is lost.

Each part saves the rows left out of it beside its record, such as 000000.rejected, so that a command that was
killed continues with them too. The file is written from the parts in one go, just before the output takes its place.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import ending
from lakewright.core_jax.support import check_digest, replacing


def rejects_option(path: Path | None) -> dict[str, Any]:
    """The entry of a file of rejects in a job's options; empty without one, as in jobs of older versions."""
    return {"rejects": os.path.abspath(path)} if path else {}


class Rejects:
    """The rows of `source` that are left out, saved in `folder` until they are written to `path`.

    Raises InputError if `path` has another format than `source`: the rows are not to be changed.
    """

    def __init__(self, path: Path, source: Path, folder: Path) -> None:
        if ending(path) != ending(source):
            raise InputError(
                f"{path}: --rejects has the same format as {source.name}; its name must end in {source.suffix}"
            )
        if path.is_dir():
            raise InputError(f"{path}: is a folder; choose a file for --rejects")
        self._path, self._source, self._folder = path, source, folder

    def save_rows(self, number: int, left_out: Sequence[list[bytes] | pa.RecordBatch], writer: str = "") -> Path:
        """Saves the rows left out of part `number`, in pieces as `Chunk.take` has them; returns their file.

        writer: see `replacing`.
        """
        with replacing(self.part_file(number), writer) as beside, open(beside, "wb") as file:
            for rows in left_out:
                if isinstance(rows, list):
                    file.writelines(rows)
            if left_out and not isinstance(left_out[0], list):
                with pa.ipc.new_file(file, left_out[0].schema) as batches:
                    for rows in left_out:
                        batches.write(rows)
        return self.part_file(number)

    def assemble(self, parts: int) -> None:
        """Writes the rows left out of the first `parts` parts to the file, which appears whole."""
        there = [part for part in map(self.part_file, range(parts)) if part.exists()]
        for part in there:
            check_digest(part)
        kept = [part for part in there if part.stat().st_size]
        with replacing(self._path) as beside:
            if self._source.suffix == ".jsonl":
                with open(beside, "wb") as lines:
                    for part in kept:
                        with open(part, "rb") as some:
                            shutil.copyfileobj(some, lines)
                return
            with pq.ParquetWriter(beside, pq.read_schema(self._source)) as parquet:
                for part in kept:
                    with pa.memory_map(str(part)) as file, pa.ipc.open_file(file) as batches:
                        for place in range(batches.num_record_batches):
                            parquet.write_batch(batches.get_batch(place))

    def part_file(self, number: int) -> Path:
        """The file of the rows left out of a part."""
        return self._folder / f"{number:06d}.rejected"
