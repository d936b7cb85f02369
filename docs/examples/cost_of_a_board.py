"""What a board of a sweep takes, in processor time of one core and in bytes: python docs/examples/cost_of_a_board.py.

Drawn, solved, measured and written; the better of two shards of each cell, after one that compiles.
"""

import tempfile
import time
from contextlib import closing
from pathlib import Path

from lakewright.core_jax.support import cores, keep_compiled_programs
from lakewright.experiments.boards.sweep import SweepSpec, sweep
from lakewright.experiments.jobs.executors import Serial

SIZES, HOLE_RATIOS = (4, 5, 6, 7, 8, 9, 10), (0.0, 0.3, 0.6)
BOARDS = {2: 1 << 14, 3: 1 << 12}  # of a shard, by number of agents
TIMED = 2


def cost(agents: int, size: int, hole_ratio: float, folder: Path) -> tuple[float, float]:
    """Microseconds and bytes of a board."""
    boards = BOARDS[agents]
    spec = SweepSpec(
        sizes=(size,), agents=(agents,), hole_ratios=(hole_ratio,), boards=(1 + TIMED) * boards, shard=boards
    )
    seconds = []
    begun = time.process_time()
    with closing(sweep(spec, Serial(), folder)) as shards:
        for _ in shards:
            seconds.append(time.process_time() - begun)
            begun = time.process_time()
    written = sum(file.stat().st_size for file in (folder / "shards").glob("*.parquet"))
    return min(seconds[1:]) / boards * 1e6, written / (len(seconds) * boards)


def main() -> None:
    """Prints a table for each number of agents."""
    keep_compiled_programs()
    print(f"cores {cores()}")
    with tempfile.TemporaryDirectory() as name:
        for agents in BOARDS:
            costs = {
                (size, ratio): cost(agents, size, ratio, Path(name) / f"{agents}_{size}_{ratio}")
                for size in SIZES
                for ratio in HOLE_RATIOS
            }
            print(f"\n| size, {agents} agents | " + " | ".join(f"hole ratio {ratio:g}" for ratio in HOLE_RATIOS) + " |")
            print("|---" * (1 + len(HOLE_RATIOS)) + "|")
            for size in SIZES:
                cells = [costs[size, ratio] for ratio in HOLE_RATIOS]
                print(f"| {size}x{size} | " + " | ".join(f"{us:.1f} µs, {b:.1f} B" for us, b in cells) + " |")
            mean, length = (sum(column) / len(costs) for column in zip(*costs.values(), strict=True))
            print(f"\nmean {mean:.1f} µs, {length:.1f} B")


if __name__ == "__main__":
    main()
