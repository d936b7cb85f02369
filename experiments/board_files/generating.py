"""A file of certified boards, drawn part by part, with its manifest."""

import time
from pathlib import Path

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import check_count, generate, manifest_of, manifest_path, prng
from lakewright.core_jax.rows import SCHEMA, drawn_columns
from lakewright.core_jax.support import write_json
from lakewright.experiments.board_files.watch import UNWATCHED, Watch
from lakewright.experiments.resumable.parts import Pace, Part, job_of, parts_of


def generate_file(config: EnvConfig, seed: int, count: int, out: Path, watch: Watch = UNWATCHED) -> None:
    """Draws the first `count` boards of the set of `config` and `seed` into `out`, or continues it.

    Raises as `generate`, and InputError where the file cannot be made.
    """
    check_count(count)
    drawn_from = {"config": msgspec.to_builtins(config, str_keys=True), "prng": prng()}
    job = job_of("generate", {}, {**drawn_from, "seed": seed, "count": count})
    with parts_of(out, job, SCHEMA) as parts:
        watch.on_resume(parts.consumed)
        pace = Pace()
        while parts.consumed < count:
            begun = time.monotonic()
            some = min(pace.rows, count - parts.consumed)
            batches = generate(config, seed, some, watch.on_progress, parts.consumed)
            acceptance = [stratum for batch in batches.values() for stratum in batch.acceptance]
            parts.add_part(Part(some, acceptance=acceptance), drawn_columns([batches], [config]))
            pace.adapt(time.monotonic() - begun, kinds=len(batches))
        manifest = manifest_of(config, seed, count, parts.acceptance)
        manifest_path(out).unlink(missing_ok=True)  # the manifest of another file is worse than none
        parts.assemble(lambda: write_json(manifest_path(out), manifest))
