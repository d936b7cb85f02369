"""What `lakewright sweep` and its steps do."""

import argparse
import sys
from collections import Counter

import msgspec

from core_jax.errors import InputError
from experiments.cli.commands import tell
from experiments.runtime import progress
from experiments.sweep import BACKENDS, Local, WorkerDiedError


def make(options: argparse.Namespace) -> int:
    """Makes a sweep, or goes on with it."""
    try:
        return _make(options)
    except WorkerDiedError as error:
        print(f"lakewright: {error}", file=sys.stderr)
        return 1


def _make(options: argparse.Namespace) -> int:
    from experiments.sweep import check_memory, read_spec, share_of, sweep

    spec, share = read_spec(options.spec), share_of(options.shard)
    if options.workers is not None and options.workers < 1:
        raise InputError(f"--workers is {options.workers}; choose at least 1")
    executor = BACKENDS[options.backend](options.workers)
    if isinstance(executor, Local):
        check_memory(spec, executor.workers)
    mine = spec.shards()[share[0] :: share[1]]
    left = Counter(shard.cell.name for shard in mine)
    boards, cells, made = sum(shard.count for shard in mine), len(left), 0
    with progress("sweep", boards, "boards") as bar:
        for shard in sweep(spec, executor, options.out, share):
            if shard.new:
                made += 1
                bar.update(shard.record.count)
            else:
                bar.initial = bar.n = bar.n + shard.record.count
            left.subtract([shard.record.cell])
            bar.set_postfix_str(f"{sum(not some for some in left.values())} of {cells} cells")
    tell(options, {"boards": boards, "shards": len(mine), "made": made, "out": str(options.out)})
    return 0


def status(options: argparse.Namespace) -> int:
    """Tells how far a sweep is."""
    from experiments.sweep import SweepFolder

    found = SweepFolder(options.folder).status()
    if options.json:
        print(msgspec.json.encode(found).decode())
        return 0
    rate = f"{found.boards_per_second:,.0f} boards/s" if found.boards_per_second else "nothing in the last ten minutes"
    left = f", about {_duration(found.seconds_left)} left" if found.seconds_left else ""
    print(f"cells   {found.cells_done:,} of {found.cells:,}")
    print(f"shards  {found.shards_done:,} of {found.shards:,}")
    print(f"boards  {found.boards_done:,} of {found.boards:,}")
    print(f"rate    {rate}{left}")
    return 0


def plot(options: argparse.Namespace) -> int:
    """Sums up what is finished of a sweep, and draws it."""
    from experiments.sweep import plot as draw

    pictures = [str(path) for path in draw(options.folder)]
    if options.json:
        print(msgspec.json.encode({"cells": str(options.folder / "cells.json"), "pictures": pictures}).decode())
    else:
        print("\n".join(pictures))
    return 0


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
