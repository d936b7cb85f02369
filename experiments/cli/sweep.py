"""`lakewright sweep`: boards of a grid of cells, measured by many workers."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from lakewright.experiments.cli.conventions.options import ExecutorOptions, Json
from lakewright.experiments.cli.conventions.output import print_found, print_summary
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.preset_files import list_presets

if TYPE_CHECKING:
    from lakewright.experiments.boards.sweep.folder import SweepStatus

EXAMPLE = "example: lakewright sweep spec.toml --out sweeps/a --workers 2"

app = App(
    name="sweep",
    help="Measure the boards of a grid of cells; `sweep SPEC` is short for `sweep run SPEC`.",
    help_epilogue=EXAMPLE,
)


@app.default
@app.command(help_epilogue="example: lakewright sweep run spec.toml --out sweeps/a --shard 0/4")
def run(
    spec: Annotated[Path | None, Parameter(name="SPEC")] = None,
    /,
    *,
    preset: Annotated[str | None, Parameter(choices=list_presets("sweeps"))] = None,
    boards: Annotated[int | None, Parameter(metavar="N")] = None,
    out: Annotated[Path, Parameter(metavar="DIR")],
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    shard: Annotated[str, Parameter(metavar="i/n")] = "0/1",
    gpus_per_shard: Annotated[float | None, Parameter(metavar="N")] = None,
    copy_to: Annotated[str, Parameter(metavar="ADDRESS", show_default=False)] = "",
    json: Json = False,
) -> None:
    """Run a sweep, or resume it.

    Args:
        spec: The axes and the number of boards, .toml or .json.
        preset: A sweep that comes with the package, instead of SPEC.
        boards: Make only this many boards in each cell, to try a sweep out.
        out: The folder of the sweep.
        shard: i/n: make only every n-th shard, from the i-th on; for one job of an array.
        gpus_per_shard: The GPUs that a shard takes with --executor ray, which hides all others from it.
        copy_to: Also copy each finished shard to an address of fsspec, such as s3://bucket/sweeps/a.
    """
    from lakewright.core_jax.support import cores
    from lakewright.experiments.boards.sweep.runner import WHOLE, share_of, sweep
    from lakewright.experiments.boards.sweep.spec import check_sweep_memory, choose_spec, count_memory
    from lakewright.experiments.jobs.executors.choice import has_gpu
    from lakewright.experiments.jobs.executors.executor import Task

    grid, share = choose_spec(spec, preset, boards), share_of(shard)
    chosen = where.chosen(None if has_gpu() else cores())
    if chosen.name == "local":
        check_sweep_memory(grid, chosen.workers or 1)
    mine = grid.shards()[share[0] :: share[1]]
    left = Counter(one.cell.name for one in mine)
    count, cells, made = sum(one.count for one in mine), len(left), 0
    with (
        chosen.open(
            Task("shard", gpus=gpus_per_shard, memory=count_memory(grid), spreads=True), out if share == WHOLE else None
        ) as executor,
        progress("sweep", count, "boards") as bar,
    ):
        for finished in sweep(grid, executor, out, share, copy_to):
            if finished.new:
                made += 1
                bar.update(finished.record.count)
            else:
                bar.initial = bar.n = bar.n + finished.record.count
            left.subtract([finished.record.cell])
            bar.set_postfix_str(f"{sum(not some for some in left.values())} of {cells} cells")
    print_summary({"boards": count, "shards": len(mine), "made": made, "out": str(out)}, json)


@app.command(help_epilogue="example: lakewright sweep status sweeps/a")
def status(folder: Annotated[Path, Parameter(name="DIR")], /, *, json: Json = False) -> None:
    """Show how far a sweep is, while it runs.

    Args:
        folder: The folder of the sweep.
    """
    from lakewright.experiments.boards.sweep.folder import SweepFolder

    print_found(SweepFolder(folder).status(), json, _status_text)


@app.command(help_epilogue="example: lakewright sweep plot sweeps/a")
def plot(folder: Annotated[Path, Parameter(name="DIR")], /, *, json: Json = False) -> None:
    """Summarise the finished cells of a sweep and draw its pictures.

    Args:
        folder: The folder of the sweep.
    """
    from lakewright.experiments.viewer.charts.sweep_plots import plot as draw

    found = {"cells": str(folder / "cells.json"), "pictures": [str(path) for path in draw(folder)]}
    print_found(found, json, lambda found: "\n".join(found["pictures"]))


def _status_text(found: "SweepStatus") -> str:
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
