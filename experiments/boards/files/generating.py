"""A file of certified boards, drawn part by part, with its manifest."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import Acceptance, check_count, generate, manifest_of, manifest_path, prng
from lakewright.core_jax.rows import SCHEMA, columns_in_turn
from lakewright.core_jax.support import write_json
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.executors.executor import Task, in_order
from lakewright.experiments.jobs.resumable.parts import AHEAD, Pace, Part, job_of, parts_of
from lakewright.experiments.jobs.runtime.progress_bars import UNWATCHED, Watch


def generate_file(
    config: EnvConfig, seed: int, count: int, out: Path, watch: Watch = UNWATCHED, where: ExecutorChoice = HERE
) -> None:
    """Draws the first `count` boards of the set of `config` and `seed` into `out`, or continues it.

    Args:
        config: What boards are drawn.
        seed: The same seed gives the same boards.
        count: How many there are.
        out: The file to write; its manifest is written beside it.
        watch: Gets the progress.
        where: Where they are drawn.

    Raises as `generate`, and InputError if the file cannot be made.
    """
    check_count(count)
    drawn_from = {"config": msgspec.to_builtins(config, str_keys=True), "prng": prng()}
    job = job_of("generate", {}, {**drawn_from, "seed": seed, "count": count})
    with parts_of(out, job, SCHEMA) as parts, where.open(Task("part", spreads=True)) as executor:
        watch.on_resume(parts.consumed)
        pace = Pace()
        ranges = _split_range(parts.consumed, count, pace)
        for drawn in in_order(executor, partial(_draw_range, config, seed), ranges, AHEAD):
            parts.add_part(Part(len(drawn.rows), acceptance=drawn.acceptance), drawn.rows)
            watch.on_progress(len(drawn.rows))
            pace.adapt(drawn.seconds, drawn.kinds)
        manifest = manifest_of(config, seed, count, parts.acceptance)
        manifest_path(out).unlink(missing_ok=True)  # the manifest of another file is worse than none
        parts.assemble(lambda: write_json(manifest_path(out), manifest))


class Drawn(NamedTuple):
    """The rows of a part. kinds: the kinds of board among them."""

    rows: pa.RecordBatch
    acceptance: list[Acceptance]
    kinds: int
    seconds: float


def _split_range(first: int, end: int, pace: Pace) -> Iterator[range]:
    while first < end:
        some = range(first, min(first + pace.rows, end))
        yield some
        first = some.stop


def _draw_range(config: EnvConfig, seed: int, some: range) -> Drawn:
    begun = time.monotonic()
    batches = generate(config, seed, len(some), first=some.start)
    acceptance = [stratum for batch in batches.values() for stratum in batch.acceptance]
    rows = columns_in_turn([batches], [config])
    return Drawn(rows, acceptance, len(batches), time.monotonic() - begun)
