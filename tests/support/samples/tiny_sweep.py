"""A small sweep, and the files that it makes."""

import contextlib
import functools
import itertools
import tempfile
from pathlib import Path

from lakewright.core_jax.support import keep_compiled_programs
from lakewright.experiments.boards.sweep import SweepSpec, sweep
from lakewright.experiments.boards.sweep.runner import WHOLE, Finished
from lakewright.experiments.jobs.executors import Serial

SPEC = SweepSpec(sizes=(3,), agents=(2,), hole_ratios=(0.0, 0.4), boards=80, shard=32, seed=3)
TOML = "sizes = [3]\nagents = [2]\nhole_ratios = [0.0, 0.4]\nboards = 80\nshard = 32\nseed = 3\n"


def make(spec: SweepSpec, out: Path, share: tuple[int, int] = WHOLE, at_most: int | None = None) -> list[Finished]:
    """Makes a sweep, or some of its shards, in this process; compiling would take longest."""
    keep_compiled_programs()
    with contextlib.closing(sweep(spec, Serial(), out, share)) as shards:
        return list(itertools.islice(shards, at_most))


def data_of(folder: Path) -> dict[str, bytes]:
    """The Parquet files of a sweep."""
    return {path.name: path.read_bytes() for path in (folder / "shards").glob("*.parquet")}


@functools.cache
def expected() -> dict[str, bytes]:
    """The files of SPEC as this process alone makes them."""
    with tempfile.TemporaryDirectory() as folder:
        make(SPEC, Path(folder) / "sweep")
        return data_of(Path(folder) / "sweep")
