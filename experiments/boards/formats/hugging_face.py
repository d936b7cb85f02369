"""A benchmark as a data set of the Hugging Face Hub: its folder, and the card that describes it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import DatasetInfo, Features, SplitDict, SplitInfo
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCardData
from tabulate import tabulate

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import replacing_folder
from lakewright.experiments.boards.benchmark.builder import BenchmarkManifest, read_benchmark
from lakewright.experiments.boards.benchmark.cells import BENCHMARK_SCHEMA

CARD = "README.md"
SIZE_CATEGORIES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
TAGS = ["mapf", "planning", "multi-agent", "path-finding", "frozenlake", "reinforcement-learning"]
COLUMNS = {
    "id": "agents, size, hole ratio, and a number",
    "size": "cells on a side",
    "agents": "how many there are",
    "grid": "one string for each row of the board: `.` frozen, `H` hole",
    "starts": "[row, column] of each agent, from 0, from the top left",
    "goals": "[row, column] of each agent's goal",
    "hole_ratio": "holes / (cells that are neither start nor goal), of the cell",
    "status": "`solvable`, of all boards here",
    "makespan": "the optimal makespan: the last arrival",
    "sum_of_costs": "the optimal sum of costs: each agent's final arrival, waits included",
    "wait_required": "whether every plan of optimal sum of costs waits before a final arrival",
    "plan": "a plan of optimal sum of costs: one string of U D L R W for each agent",
    "makespan_plan": "null: no separate plan for the makespan is stored",
    "certificate": "why the labels are certain",
    "sample_id": "`id`, under the published name",
    "num_agents": "`agents`, under the published name",
    "text": "the prompt",
    "wait_ratio": "share of boards that force a wait, of the cell",
    "drawn_hole_ratio": "what the boards were drawn with",
    "drawn_wait_ratio": "what the boards were drawn with",
}
CERTIFICATES = {
    "bound": "the plan meets a proven lower bound",
    "flood": "an exhaustive search of all joint states",
    "search": "a completed search of the joint states that the bounds leave",
}
TEXT = """
# Lakewright benchmark, tier `{tier}`

```python
from datasets import load_dataset

boards = load_dataset("{here}", "{first}", split="test")
print(boards[0]["text"])
```

{boards} boards of multi-agent FrozenLake, a case of multi-agent path finding (MAPF): agents cross a square lake with
holes, all at once, each to its own goal, without meeting. Every board is certified solvable and has its optimal
makespan, its optimal sum of costs, a plan that reaches the latter, and a prompt for language models. Load it from its
own folder, or from where it was pushed.

## Configs

{configs}

All have one split, `test`, and the same columns. `default` is all of them together.

## Boards

{counts}

## Columns

{columns}

## How labels are certified

A label without a certificate does not exist: a board that the solver leaves undecided is not in the set. `certificate`
says why the labels of a board are certain.

{certificates}

An answer is checked by playing it: no agent leaves the lake or enters a hole, no two are in one cell after a step, no
two exchange cells in a step, an agent that has arrived stays in the way, and in the end each is on its goal.

## Reproduce

    {command}

gives the same bytes with the same versions: {versions}. SHA-256 of its Parquet file:
`{sha256}`.

## Licence

MIT, as the program that draws the boards. They are drawn, not taken from any other data.
"""


class ConfigFile(NamedTuple):
    """The file of a config: rows, bytes in memory, bytes on disk."""

    config: str
    path: str
    rows: int
    memory: int
    disk: int


class Exported(msgspec.Struct, frozen=True):
    """The contents of an export: its boards, and their number by config."""

    boards: int
    configs: dict[str, int]
    out: str


def export_benchmark(benchmark: Path, out: Path) -> Exported:
    """Writes the benchmark in the folder `benchmark` to the new folder `out`.

    Raises InputError if the benchmark is not complete, one of its files was changed, or `out` exists.
    """
    if out.exists():
        raise InputError(f"{out}: already exists; choose a new folder, or remove it")
    manifest, rows = read_benchmark(benchmark)
    with replacing_folder(out) as folder:
        files = [_write_config(folder, config, part) for config, part in _split_configs(rows)]
        (folder / CARD).write_text(_write_card(manifest, rows, files), encoding="utf-8")
    return Exported(len(rows), {file.config: file.rows for file in files}, str(out))


def _split_configs(rows: pa.Table) -> list[tuple[str, pa.Table]]:
    """The rows of each wait ratio, in their order."""
    ratios = sorted(pc.unique(rows["wait_ratio"]).to_pylist())
    return [(f"wr{ratio:g}", rows.filter(pc.equal(rows["wait_ratio"], ratio))) for ratio in ratios]


def _write_config(folder: Path, config: str, rows: pa.Table) -> ConfigFile:
    path = folder / "data" / config / "test.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(rows.combine_chunks(), path)
    return ConfigFile(config, str(path.relative_to(folder)), len(rows), rows.nbytes, path.stat().st_size)


def _write_card(manifest: BenchmarkManifest, rows: pa.Table, files: list[ConfigFile]) -> str:
    certificates = {str(pair["values"]): pair["counts"] for pair in pc.value_counts(rows["certificate"]).to_pylist()}
    return card_text(manifest, BENCHMARK_SCHEMA, files, certificates)


def card_text(
    manifest: BenchmarkManifest, schema: pa.Schema, files: Sequence[ConfigFile], certificates: Mapping[str, int]
) -> str:
    """README.md of the data set.

    Args:
        manifest: the benchmark's manifest.
        schema: the rows' schema.
        files: the files of each config of the data set.
        certificates: the number of boards for each kind.
    """
    request = manifest.request
    text = TEXT.format(
        tier=request.tier,
        here=".",
        first=files[0].config,
        boards=manifest.boards,
        configs=_format_table(
            ("config", "boards", "bytes of Parquet"), [(f"`{file.config}`", file.rows, file.disk) for file in files]
        ),
        counts=_format_table(
            ("agents", "size", "boards", "with a forced wait"),
            [
                (count.agents, f"{count.size}x{count.size}", count.boards, count.wait_required)
                for count in manifest.counts
            ],
        ),
        columns=_format_table(
            ("column", "type", "what"),
            [(f"`{field.name}`", f"`{field.type}`", COLUMNS[field.name]) for field in schema],
        ),
        certificates=_format_table(
            ("certificate", "boards", "what"),
            [(f"`{name}`", count, CERTIFICATES[name]) for name, count in sorted(certificates.items())],
        ),
        command=f"lakewright benchmark build --out benchmark --tier {request.tier} --seed {request.seed}",
        versions=", ".join(f"{name} {version}" for name, version in request.versions.items()),
        sha256=manifest.files["benchmark.parquet"].sha256,
    )
    return f"---\n{_write_metadata(manifest, schema, files)}\n---\n{text}"


def _write_metadata(manifest: BenchmarkManifest, schema: pa.Schema, files: Sequence[ConfigFile]) -> str:
    """The YAML that the hub and `load_dataset` read."""
    parts = [(file.config, [file]) for file in files]
    everything = ("default", list(files))
    data = DatasetCardData(
        pretty_name=f"Lakewright benchmark, tier {manifest.request.tier}",
        license="mit",
        language=["en"],
        task_categories=["text-generation", "reinforcement-learning"],
        tags=TAGS,
        size_categories=[next((name for most, name in SIZE_CATEGORIES if manifest.boards < most), "1M<n<10M")],
        annotations_creators=["machine-generated"],
        configs=[
            {"config_name": config, "data_files": [{"split": "test", "path": [file.path for file in some]}]}
            | ({"default": True} if config == "default" else {})
            for config, some in (everything, *parts)
        ],
    )
    DatasetInfosDict(
        {config: _describe_dataset(schema, some) for config, some in (everything, *parts)}
    ).to_dataset_card_data(data)
    return str(data)


def _describe_dataset(schema: pa.Schema, files: Sequence[ConfigFile]) -> DatasetInfo:
    memory, rows = sum(file.memory for file in files), sum(file.rows for file in files)
    return DatasetInfo(
        features=Features.from_arrow_schema(schema),
        splits=SplitDict({"test": SplitInfo("test", memory, rows)}),
        download_size=sum(file.disk for file in files),
        dataset_size=memory,
    )


def _format_table(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)
