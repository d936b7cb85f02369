"""Plays a sweep of a billion boards on a hundred machines: python docs/examples/hundred_machines.py [FOLDER].

Every shard of experiments/presets/sweeps/billion.toml is made, each with a few boards only, in a hundred shares one
after another; the first of them is killed in mind: it leaves the second half of its shards to a second call.
"""

import itertools
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pyarrow.dataset as ds

from lakewright.core_jax.support import keep_compiled_programs
from lakewright.experiments.boards.sweep import SweepFolder, SweepSpec, read_spec, sweep
from lakewright.experiments.jobs.executors import Serial

PLAN = Path(__file__).parents[2] / "experiments" / "presets" / "sweeps" / "billion.toml"
MACHINES = 100
FEW = 32  # boards in a shard


def small(plan: SweepSpec) -> SweepSpec:
    """A sweep of as many shards, each of FEW boards."""
    assert isinstance(plan.boards, int)
    assert isinstance(plan.shard, int)
    return msgspec.structs.replace(plan, boards=-(-plan.boards // plan.shard) * FEW, shard=FEW)


def main(out: Path) -> None:
    """Makes all shares, and checks what is there."""
    keep_compiled_programs()
    plan = read_spec(PLAN)
    spec = small(plan)
    assert len(spec.shards()) == len(plan.shards())
    begun = time.perf_counter()
    with closing(sweep(spec, Serial(), out, (0, MACHINES))) as first:
        made = len(list(itertools.islice(first, len(spec.shards()) // MACHINES // 2)))
    for i in range(MACHINES):
        made += sum(shard.new for shard in sweep(spec, Serial(), out, (i, MACHINES)))
    seconds = time.perf_counter() - begun
    assert made == len(spec.shards()), "each shard is made once"
    begun = time.perf_counter()
    status = SweepFolder(out).status()
    told = time.perf_counter() - begun
    assert (status.cells_done, status.boards_done) == (status.cells, status.boards)
    boards = ds.dataset(out / "shards", exclude_invalid_files=True, format="parquet").count_rows()
    assert boards == status.boards
    print(f"{made:,} shards in {MACHINES} shares, {seconds / made * 1e3:.1f} ms each; status takes {told:.2f} s")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder) / "sweep")
