"""The cost of a sweep on top of the solver: with workers, with Ray, in memory, and with tiny shards.

python -m tests.campaigns sweeps

Rates of several workers are of the time when all of them were at work: starting and compiling are separate.
"""

import functools
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
import psutil

from lakewright.core_jax.solver import solve
from lakewright.core_jax.support import cores
from lakewright.experiments.bench.measurement import format_markdown, wall_and_processor
from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.boards.sweep.runner import sweep
from lakewright.experiments.boards.sweep.shards import Record, draw_boards, make_shard
from lakewright.experiments.boards.sweep.spec import SweepSpec
from lakewright.experiments.jobs.executors.executor import Executor
from lakewright.experiments.jobs.executors.local_processes import Local
from lakewright.experiments.jobs.executors.ray_cluster import Ray

HOLE_RATIO = 0.3
CASES = ((5, 2, 1 << 14), (8, 2, 1 << 14), (10, 2, 1 << 14), (8, 3, 1 << 10))  # size, agents, boards of a shard
ROUNDS, COLD = 8, 3  # shards of a case, and how many of them still compile
SHARDS = 48  # of the sweeps that workers make
LONG = 160  # of the sweep whose memory is watched
LABELS = ("status", "certificate", "makespan", "sum_of_costs", "wait_required", "plan_length")
TINY, TINY_SHARDS = 16, 3000  # boards of a tiny shard, and how many such shards


class Beside(msgspec.Struct, frozen=True):
    """Boards a second in one process of one core: of `solve` alone, and of whole shards, drawn, measured, written.

    share: the second over the first, the median of shards that were made and solved in turn; cpu_share: the same of
    processor seconds, which other work on the machine disturbs less. labels_share: as cpu_share, of shards that hold
    LABELS only.
    """

    size: int
    agents: int
    solver: float
    shards: float
    share: float
    cpu_share: float
    labels_share: float


class SweepBench(msgspec.Struct, frozen=True):
    """Rates in boards per second, memory in MiB; except for `beside`, of 5x5 boards of two agents.

    local: by workers. ray: with a worker a core, None if it is not installed. first_memory, last_memory: of the
    largest worker when a tenth of `watched` boards was made, and at the end. tiny_shards: shards of a few boards a
    second, one worker; tiny_status, tiny_resume: seconds that `status`, and finding that nothing is left to do, take
    with that number.
    """

    cores: int
    beside: list[Beside]
    local: dict[int, float]
    ray: float | None
    watched: int
    first_memory: float
    last_memory: float
    tiny: int
    tiny_shards: float
    tiny_status: float
    tiny_resume: float


def measure_rates() -> SweepBench:
    """Runs all of it, in folders that are removed."""
    with Local(1) as alone:
        beside = [alone.submit(beside_solver, case).result() for case in CASES]
    local = {workers: measure_rate(Local(workers), workers) for workers in sorted({1, 2, cores()})}
    ray = None
    if find_spec("ray"):
        with Ray(cores()) as cluster:
            ray = measure_rate(cluster, cores())
    return SweepBench(
        cores(), beside, local, ray, LONG * CASES[0][2], *measure_memory(), TINY_SHARDS, *measure_tiny_shards()
    )


def beside_solver(case: tuple[int, int, int]) -> Beside:
    """Makes shards here and solves their boards, in turn."""
    size, agents, count = case
    found = []
    with tempfile.TemporaryDirectory() as folder:
        spec = spec_of(size, agents, count, ROUNDS)
        specs = [spec, msgspec.structs.replace(spec, columns=LABELS)]
        for shard in spec.shards():
            boards = draw_boards(shard)
            steps: list[Callable[[], object]] = [functools.partial(solve, boards)]
            steps += [functools.partial(make_shard, Path(folder), some, shard) for some in specs]
            found.append([wall_and_processor(step)[:2] for step in steps])
    wall, cpu = np.moveaxis(np.array(found[COLD:]), 2, 0)  # [shards, steps]
    solver, shards, _ = count / np.median(wall, axis=0)
    shares, cpu_shares = (np.median(clock[:, :1] / clock, axis=0).tolist() for clock in (wall, cpu))
    return Beside(size, agents, float(solver), float(shards), shares[1], *cpu_shares[1:])


def measure_rate(executor: Executor, workers: int) -> float:
    """Boards a second of a sweep, while all workers were at work."""
    with tempfile.TemporaryDirectory() as folder:
        spec = spec_of(*CASES[0], SHARDS)
        records = [shard.record for shard in sweep(spec, executor, Path(folder) / "sweep")]
    return steady_rate(records, workers)


def steady_rate(records: Iterable[Record], workers: int) -> float:
    """Boards a second from when each worker had finished one shard until the first had none left."""
    spans = sorted((record.finished - record.seconds, record.finished, record.count) for record in records)
    begin = max(end for _, end, _ in spans[:workers])
    end = sorted(end for _, end, _ in spans)[-workers]
    made = sum(count * max(min(last, end) - max(first, begin), 0) / (last - first) for first, last, count in spans)
    return made / (end - begin)


def measure_memory() -> tuple[float, float]:
    """MiB of the largest worker of a long sweep when a tenth of it was made, and at its end."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in sweep(spec_of(*CASES[0], LONG), Local(), Path(folder) / "sweep"):
            children = psutil.Process().children()
            found.append(max(child.memory_info().rss for child in children) / 2**20)
    return found[LONG // 10], found[-1]


def measure_tiny_shards() -> tuple[float, float, float]:
    """Shards of TINY boards a second, and the seconds that `status` and a run with nothing to do take with them."""
    spec = spec_of(3, 2, TINY, TINY_SHARDS)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "sweep"
        records = [shard.record for shard in sweep(spec, Local(1), out)]
        begun = time.perf_counter()
        SweepFolder(out).status()
        seen = time.perf_counter()
        for _ in sweep(spec, Local(1), out):
            pass
        return steady_rate(records, 1) / TINY, seen - begun, time.perf_counter() - seen


def format_table(found: SweepBench) -> str:
    """The benchmark as Markdown."""
    one = found.local[1]
    rows = [
        (f"local, {n} workers", f"{rate:,.0f} boards/s", f"{rate / one:.2f} times one")
        for n, rate in found.local.items()
    ]
    rows += [
        ("Ray", *_against_local(found)),
        (
            f"memory of a worker, {found.watched:,} boards",
            f"{found.last_memory:,.0f} MiB",
            f"{found.last_memory - found.first_memory:+,.0f} MiB since a tenth of them",
        ),
        (f"shards of {TINY} boards", f"{found.tiny_shards:,.0f} shards/s", ""),
        (f"status of {found.tiny:,} shards", f"{found.tiny_status:.2f} s", ""),
        (f"nothing to do, {found.tiny:,} shards", f"{found.tiny_resume:.2f} s", ""),
    ]
    beside = [
        (
            f"{case.size}x{case.size}, {case.agents} agents",
            f"{case.solver:,.0f} boards/s",
            f"{case.shards:,.0f} boards/s",
            f"{case.share:.0%}",
            f"{case.cpu_share:.0%}",
            f"{case.labels_share:.0%}",
        )
        for case in found.beside
    ]
    head = "one core", "solver alone", "end to end", "share", "of processor time", "labels only"
    return "\n".join([*format_markdown(head, beside), "", *format_markdown(("5x5, 2 agents", "found", "beside"), rows)])


def _against_local(found: SweepBench) -> tuple[str, str]:
    if found.ray is None:
        return "not installed: pip install 'lakewright[cluster]'", ""
    return f"{found.ray:,.0f} boards/s", f"{found.ray / found.local[found.cores]:.0%} of local, {found.cores} workers"


def spec_of(size: int, agents: int, shard: int, shards: int) -> SweepSpec:
    """A sweep of one cell.

    Args:
        size: cells on a side.
        agents: on each board.
        shard: boards of a shard.
        shards: how many there are.
    """
    return SweepSpec((size,), (agents,), (HOLE_RATIO,), boards=shards * shard, shard=shard)
