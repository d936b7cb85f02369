"""A built benchmark as a folder that `datasets.load_dataset` reads and `hf upload` pushes.

    DIR/README.md  DIR/data/wr0.25/test.parquet  DIR/data/wr0.5/test.parquet ...

One config for each wait ratio, as the published benchmark has them, and `default` for all of them together.
"""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import replacing_folder
from lakewright.experiments.benchmark.builder import BenchmarkManifest, read_benchmark
from lakewright.experiments.benchmark.cells import BENCHMARK_SCHEMA
from lakewright.experiments.interop.hugging_face.dataset_card import ConfigFile, card_text

CARD = "README.md"


class Exported(msgspec.Struct, frozen=True):
    """What an export holds: its boards, and how many each config has."""

    boards: int
    configs: dict[str, int]
    out: str


def export_benchmark(benchmark: Path, out: Path) -> Exported:
    """Writes the benchmark in the folder `benchmark` to the new folder `out`.

    Raises InputError where the benchmark is not complete, one of its files was changed, or `out` exists.
    """
    if out.exists():
        raise InputError(f"{out}: exists already; name a folder that does not, or remove it")
    manifest, rows = read_benchmark(benchmark)
    with replacing_folder(out) as folder:
        files = [_write(folder, config, part) for config, part in _configs(rows)]
        (folder / CARD).write_text(_card(manifest, rows, files), encoding="utf-8")
    return Exported(len(rows), {file.config: file.rows for file in files}, str(out))


def _configs(rows: pa.Table) -> list[tuple[str, pa.Table]]:
    """The rows of each wait ratio, in their order."""
    ratios = sorted(pc.unique(rows["wait_ratio"]).to_pylist())
    return [(f"wr{ratio:g}", rows.filter(pc.equal(rows["wait_ratio"], ratio))) for ratio in ratios]


def _write(folder: Path, config: str, rows: pa.Table) -> ConfigFile:
    path = folder / "data" / config / "test.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(rows.combine_chunks(), path)
    return ConfigFile(config, str(path.relative_to(folder)), len(rows), rows.nbytes, path.stat().st_size)


def _card(manifest: BenchmarkManifest, rows: pa.Table, files: list[ConfigFile]) -> str:
    certificates = {str(pair["values"]): pair["counts"] for pair in pc.value_counts(rows["certificate"]).to_pylist()}
    return card_text(manifest, BENCHMARK_SCHEMA, files, certificates)
