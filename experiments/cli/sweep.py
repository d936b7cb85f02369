"""`lakewright sweep`: boards of a grid of cells, measured by many workers."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import BACKENDS, Json
from lakewright.experiments.cli.conventions.output import print_error, print_found, print_summary
from lakewright.experiments.runtime.progress_bars import progress

if TYPE_CHECKING:
    from lakewright.experiments.sweep.folder import Status

EXAMPLE = "example: lakewright sweep spec.toml --out sweeps/a --workers 2"

app = App(
    name="sweep",
    help="Measure the boards of a grid of cells; `sweep SPEC` is short for `sweep run SPEC`.",
    help_epilogue=EXAMPLE,
)


@app.default
@app.command(help_epilogue="example: lakewright sweep run spec.toml --out sweeps/a --shard 0/4")
def run(
    spec: Annotated[Path, Parameter(name="SPEC")],
    /,
    *,
    out: Annotated[Path, Parameter(metavar="DIR")],
    backend: Annotated[str, Parameter(choices=BACKENDS)] = "local",
    workers: int | None = None,
    shard: Annotated[str, Parameter(metavar="i/n")] = "0/1",
    json: Json = False,
) -> int:
    """Run a sweep, or resume it.

    Args:
        spec: The axes and the number of boards, .toml or .json.
        out: The folder of the sweep.
        backend: Who works.
        workers: Processes, one core each; without it one for each core.
        shard: Make only every n-th shard, from the i-th on, as one job of an array.
    """
    from lakewright.experiments.resumable.worker_processes import WorkerDiedError

    if workers is not None and workers < 1:
        raise InputError(f"--workers is {workers}; give at least 1")
    try:
        summary = _run_sweep(spec, out, backend, workers, shard)
    except WorkerDiedError as error:
        print_error(str(error))
        return 1
    print_summary(summary, json)
    return 0


def _run_sweep(path: Path, out: Path, backend: str, workers: int | None, share_text: str) -> dict[str, object]:
    from lakewright.experiments.sweep.executors import BACKENDS, Local
    from lakewright.experiments.sweep.runner import share_of, sweep
    from lakewright.experiments.sweep.spec import check_memory, read_spec

    spec, share = read_spec(path), share_of(share_text)
    executor = BACKENDS[backend](workers)
    if isinstance(executor, Local):
        check_memory(spec, executor.workers)
    mine = spec.shards()[share[0] :: share[1]]
    left = Counter(shard.cell.name for shard in mine)
    boards, cells, made = sum(shard.count for shard in mine), len(left), 0
    with progress("sweep", boards, "boards") as bar:
        for shard in sweep(spec, executor, out, share):
            if shard.new:
                made += 1
                bar.update(shard.record.count)
            else:
                bar.initial = bar.n = bar.n + shard.record.count
            left.subtract([shard.record.cell])
            bar.set_postfix_str(f"{sum(not some for some in left.values())} of {cells} cells")
    return {"boards": boards, "shards": len(mine), "made": made, "out": str(out)}


@app.command(help_epilogue="example: lakewright sweep status sweeps/a")
def status(folder: Annotated[Path, Parameter(name="DIR")], /, *, json: Json = False) -> None:
    """Show how far a sweep is, while it runs.

    Args:
        folder: The folder of the sweep.
    """
    from lakewright.experiments.sweep.folder import SweepFolder

    print_found(SweepFolder(folder).status(), json, _status_text)


@app.command(help_epilogue="example: lakewright sweep plot sweeps/a")
def plot(folder: Annotated[Path, Parameter(name="DIR")], /, *, json: Json = False) -> None:
    """Summarise the finished cells of a sweep and draw its pictures.

    Args:
        folder: The folder of the sweep.
    """
    from lakewright.experiments.sweep.plots import plot as draw

    found = {"cells": str(folder / "cells.json"), "pictures": [str(path) for path in draw(folder)]}
    print_found(found, json, lambda found: "\n".join(found["pictures"]))


def _status_text(found: "Status") -> str:
    from tabulate import tabulate

    rate = f"{found.boards_per_second:,.0f} boards/s" if found.boards_per_second else "nothing in the last ten minutes"
    left = f", about {_format_duration(found.seconds_left)} left" if found.seconds_left else ""
    rows = [
        ("cells", f"{found.cells_done:,} of {found.cells:,}"),
        ("shards", f"{found.shards_done:,} of {found.shards:,}"),
        ("boards", f"{found.boards_done:,} of {found.boards:,}"),
        ("rate", f"{rate}{left}"),
    ]
    return tabulate(rows, tablefmt="plain", disable_numparse=True)


def _format_duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
