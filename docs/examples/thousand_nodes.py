"""The load of a study on its driver and its folder, on up to a thousand nodes: python docs/examples/thousand_nodes.py.

A small study is run here, and what it does to its folder is counted; then many such runs are played on nodes that are
not there: when each ends its stages, where all began together, and so what the folder sees in its busiest ten seconds.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from lakewright.experiments.jobs.executors import as_finished
from lakewright.experiments.studies.runner import run_study, sum_up

SPEC = """
budget = 1000000
[settings]
stages = 4
horizon = 8
model = { hidden = 32, layers = 1, heads = 2, mlp = 32 }
warmup = { steps = 2, boards = 24, batch = 8 }
grpo = { steps = 1, prompts = 4, group = 2 }
trial = { boards = 8, samples = 2, share = 0 }
validation = { boards = 4, hole_ratios = [0.2], wait_ratios = [0.5] }
[arms]
rules = { teacher = "rules" }
"""
EVENTS = {"os.listdir": "listings", "os.scandir": "listings", "os.rename": "renamings", "os.link": "links"}
STAGES, STAGE_SECONDS, SPREAD = 4, 600.0, 0.3  # of a run; the deviation of the logarithm of a stage's seconds
RUNS_PER_NODE, ROUNDS = 8, 3  # runs at a time, and how many of them one after another
STAGE_BYTES = 4.4e6  # of a run of a small language model
WINDOW = 10.0  # seconds
NODES = (1, 10, 100, 1000)
TASKS = 50_000


@contextmanager
def counting(folder: Path) -> Iterator[Counter[str]]:
    """Counts operations on what is below a folder, as Python sees them."""
    found, active = Counter[str](), [True]

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if active and given and isinstance(given[0], str | Path) and str(given[0]).startswith(str(folder)):
            if event == "open":
                found["openings"] += 1
            elif event in EVENTS:
                found[EVENTS[event]] += 1

    sys.addaudithook(hook)  # there is no way to remove one
    yield found
    active.clear()


def count_operations() -> tuple[Counter[str], Counter[str], int]:
    """Of one run, and of the driver for each run when it sums up; and the files of a run."""
    with tempfile.TemporaryDirectory() as scratch:
        spec, out = Path(scratch) / "spec.toml", Path(scratch) / "study"
        spec.write_text(SPEC)
        with counting(out / "runs") as run:
            run_study(spec, out)
        with counting(out / "runs") as driver:
            sum_up(spec, out)
        return run - driver, driver, sum(path.is_file() for path in (out / "runs").rglob("*"))


def busiest(nodes: int, operations: float) -> tuple[float, float, float]:
    """Operations a second on average and in the busiest window, and bytes a second, on so many nodes."""
    rng = np.random.default_rng(0)
    seconds = STAGE_SECONDS * rng.lognormal(0, SPREAD, (nodes * RUNS_PER_NODE, ROUNDS * STAGES))
    ends = seconds.cumsum(axis=1)
    until = float(ends[:, -1].min())  # all nodes are at work until then
    most = np.histogram(ends[ends < until], bins=int(until / WINDOW))[0].max() * operations / STAGES / WINDOW
    stages = (ends < until).sum() / until
    return stages * operations / STAGES, float(most), stages * STAGE_BYTES


class AtOnce:
    """An executor whose tasks are done as soon as they are submitted: what is left is the driver's own time."""

    def submit(self, function: Any, item: Any, /) -> Future[Any]:
        """As `concurrent.futures.Executor.submit`."""
        done: Future[Any] = Future()
        done.set_result(item)
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `concurrent.futures.Executor.shutdown`."""


def main() -> None:
    """Prints the counts, the load by nodes, and the driver's own rate."""
    run, driver, files = count_operations()
    print(f"a run of {STAGES} stages: {files} files, {dict(run)}; summing it up: {dict(driver)}")
    rows = []
    for nodes in NODES:
        mean, most, size = busiest(nodes, sum(run.values()))
        runs = nodes * RUNS_PER_NODE
        begun = runs / (STAGES * STAGE_SECONDS)
        opened = runs * ROUNDS * sum(driver.values())
        rows.append((nodes, runs, f"{begun:.2f}", f"{mean:,.0f}", f"{most:,.0f}", f"{size / 1e6:,.1f}", f"{opened:,}"))
    head = ("nodes", "runs at a time", "tasks/s", "operations/s", "in the busiest 10 s", "MB/s", "to sum up")
    print(tabulate(rows, head, tablefmt="github", disable_numparse=True))
    begun = time.perf_counter()
    for _ in as_finished(AtOnce(), str, range(TASKS)):
        pass
    print(f"the driver's own work: {TASKS / (time.perf_counter() - begun):,.0f} tasks/s")


if __name__ == "__main__":
    main()
