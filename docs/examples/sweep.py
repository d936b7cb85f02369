"""A sweep from Python, as in a notebook: python docs/examples/sweep.py [FOLDER]. Run it again: it goes on."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.experiments.boards.sweep import SweepSpec, sweep
from lakewright.experiments.jobs.executors import Local

SPEC = SweepSpec(sizes=(4, 6), agents=(2,), hole_ratios=(0.0, 0.2, 0.4, 0.6), boards=8192, shard=4096)


def main(folder: Path) -> None:
    """Prints what is solvable, and how often somebody must wait, by size and hole ratio."""
    tables = []
    with Local() as executor:
        for shard in sweep(SPEC, executor, folder):
            print(f"{shard.path.name}: {shard.record.count / shard.record.seconds:,.0f} boards/s")
            tables.append(shard.read().select(["size", "hole_ratio", "status", "wait_required"]))
    boards = pa.concat_tables(tables)
    boards = boards.append_column("solvable", pc.equal(boards["status"].cast(pa.string()), "solvable"))
    cells = boards.group_by(["size", "hole_ratio"]).aggregate([("solvable", "mean"), ("wait_required", "mean")])
    for cell in cells.sort_by([("size", "ascending"), ("hole_ratio", "ascending")]).to_pylist():
        print("{size}x{size}, holes {hole_ratio:.1f}: solvable {solvable_mean:.1%}, ".format(**cell), end="")
        print("of these with a forced wait {wait_required_mean:.1%}".format(**cell))


if __name__ == "__main__":  # the workers import this file
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sweeps/example"))
