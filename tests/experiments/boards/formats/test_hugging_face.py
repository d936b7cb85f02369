"""The exported benchmark, loaded by the real `datasets` library."""

import json

import pytest
import yaml
from datasets import get_dataset_config_names, load_dataset

from lakewright.core_jax.rows import Row, read_rows, verify_rows
from lakewright.experiments.boards.benchmark.cells import BenchmarkRow
from lakewright.experiments.boards.formats.hugging_face import export_benchmark
from lakewright.experiments.cli import main
from tests.support.processes.killable_work import SMALL_TIER as SMALL
from tests.support.refusals import refused
from tests.support.samples.small_benchmark import build_small


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return build_small(tmp_path_factory.mktemp("benchmark"))


@pytest.fixture(scope="module")
def exported(benchmark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "hub"
    export_benchmark(benchmark, folder)
    return folder


@pytest.fixture(scope="module")
def loaded(exported, tmp_path_factory):
    """Every config, as `load_dataset` reads it, by name."""
    cache = str(tmp_path_factory.mktemp("cache"))
    names = get_dataset_config_names(str(exported))
    return {name: load_dataset(str(exported), name, split="test", cache_dir=cache) for name in names}


def test_datasets_finds_a_config_for_each_wait_ratio_and_all_of_them(loaded):
    assert {name: len(rows) for name, rows in loaded.items()} == {"default": 48, "wr0.25": 24, "wr0.75": 24}
    for ratio in SMALL.wait_ratios:
        assert set(loaded[f"wr{ratio:g}"]["wait_ratio"]) == {ratio}


def test_datasets_reads_the_rows_of_the_benchmark(benchmark, loaded):
    rows = [row for chunk in read_rows(benchmark / "benchmark.jsonl", BenchmarkRow, pytest.fail) for row in chunk]
    back = {found["id"]: BenchmarkRow(**found) for found in map(with_cells, loaded["default"])}
    assert back == {row.id: row for row in rows}


def with_cells(found: dict) -> dict:
    """A row of `datasets` with pairs for cells."""
    return found | {name: [tuple(cell) for cell in found[name]] for name in ("starts", "goals")}


def test_what_is_loaded_is_verified_as_it_is(loaded):
    rows = [
        Row(**{name: found[name] for name in Row.__struct_fields__}) for found in map(with_cells, loaded["default"])
    ]
    verdicts = verify_rows(rows, [row.plan or [] for row in rows])
    assert all(verdict.optimal_sum_of_costs for verdict in verdicts)


def test_the_card_has_what_the_hub_asks_for_and_what_people_need(exported, benchmark):
    _, metadata, text = (exported / "README.md").read_text().split("---\n", 2)
    told = yaml.safe_load(metadata)
    assert (told["license"], told["size_categories"]) == ("mit", ["n<1K"])
    assert {"mapf", "planning"} <= set(told["tags"])
    assert [config["config_name"] for config in told["configs"]] == ["default", "wr0.25", "wr0.75"]
    manifest = json.loads((benchmark / "manifest.json").read_text())
    assert manifest["files"]["benchmark.parquet"]["sha256"] in text
    assert "lakewright benchmark build --out benchmark --tier small --seed 0" in text
    assert "\n| 2        | 5x5    | 24       |" in text
    counted = [int(line.split("|")[2]) for line in text.splitlines() if line.startswith(("| `bound`", "| `flood`"))]
    assert sum(counted) == 48, text


def test_the_command_exports_and_says_how_much(benchmark, tmp_path, capsys):
    assert main(["benchmark", "export", str(benchmark), "--to", str(tmp_path / "hub"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["configs"] == {"wr0.25": 24, "wr0.75": 24}


def test_a_folder_without_a_benchmark_and_one_that_exists_are_refused(benchmark, tmp_path):
    with refused("(manifest.json", "missing)"):
        export_benchmark(tmp_path, tmp_path / "hub")
    with refused("already exists"):
        export_benchmark(benchmark, tmp_path)


def test_a_benchmark_that_was_changed_is_not_exported(benchmark, tmp_path):
    for file in benchmark.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "benchmark.jsonl").write_text("{}\n")
    with refused("manifest.json"):
        export_benchmark(tmp_path, tmp_path / "hub")
    assert not (tmp_path / "hub").exists()
