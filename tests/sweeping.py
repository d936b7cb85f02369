"""A small sweep, and the files that it makes."""

import functools
import tempfile
from pathlib import Path

from experiments.programs import keep_programs
from experiments.sweep.executors import Here
from experiments.sweep.spec import SweepSpec
from experiments.sweep.sweeping import sweep

SPEC = SweepSpec(sizes=(3,), agents=(2,), hole_ratios=(0.0, 0.4), boards=80, shard=32, seed=3)
TOML = "sizes = [3]\nagents = [2]\nhole_ratios = [0.0, 0.4]\nboards = 80\nshard = 32\nseed = 3\n"


def data_of(folder: Path) -> dict[str, bytes]:
    """The Parquet files of a sweep."""
    return {path.name: path.read_bytes() for path in (folder / "shards").glob("*.parquet")}


@functools.cache
def expected() -> dict[str, bytes]:
    """The files of SPEC as this process alone makes them."""
    keep_programs()
    with tempfile.TemporaryDirectory() as folder:
        for _ in sweep(SPEC, Here(), Path(folder) / "sweep"):
            pass
        return data_of(Path(folder) / "sweep")
