"""Each of our files that was changed, or is of another run, is refused where it is read; older folders are read."""

import shutil

import pytest

from lakewright.core_jax.support import LISTING
from lakewright.experiments import preset_files
from lakewright.experiments.boards.sweep.cells import summarize_sweep
from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.viewer.catalogue.board_table import boards_of_file
from lakewright.experiments.viewer.run_table import tabulate_run
from lakewright.policy.models import load_checkpoint, save_checkpoint
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.refusals import refused
from tests.support.samples.finished_run import finish
from tests.support.samples.small_benchmark import build_small
from tests.support.samples.tiny_sweep import SPEC, make

CHANGED = "was changed after it was written: its SHA-256 differs from SHA256SUMS"


def flip_last_bit(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def test_a_record_of_another_run_is_refused_and_without_digests_it_is_read_as_before(tmp_path):
    run, other = finish(tmp_path / "run"), finish(tmp_path / "other", horizon=21)
    table = tabulate_run(run)
    shutil.copy(other.config, run.config)
    with refused("config.json", CHANGED):
        tabulate_run(run)
    (run.folder / LISTING).unlink()
    assert tabulate_run(run) == table


@pytest.mark.parametrize("name", ["validation.json", "proposal.json", "done.json"])
def test_a_changed_value_in_a_record_of_a_stage_is_refused(tmp_path, name):
    run = finish(tmp_path / "run")
    path = run.stage(1).folder / name
    path.write_bytes(path.read_bytes().replace(b": 1", b": 2", 1).replace(b'"', b' "', 1))
    with refused(name, CHANGED):
        tabulate_run(run)


def test_one_bit_of_a_weight_is_noticed_and_a_missing_file_too(tmp_path):
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, tiny_model(), tokenizer())
    load_checkpoint(folder)
    flip_last_bit(folder / "model.safetensors")
    with refused("model.safetensors", CHANGED):
        load_checkpoint(folder)
    save_checkpoint(tmp_path / "other", tiny_model(), tokenizer())
    (tmp_path / "other" / "generation_config.json").unlink()
    with refused("generation_config.json", "missing", "SHA256SUMS"):
        load_checkpoint(tmp_path / "other")


def test_a_shard_or_its_record_that_was_changed_is_refused(tmp_path):
    make(SPEC, tmp_path / "sweep", at_most=2)
    sweep = SweepFolder(tmp_path / "sweep")
    record, other = sorted(sweep.shards.glob("*.json"))
    shard, whole = record.with_suffix(".parquet"), record.read_bytes()
    record.write_bytes(whole.replace(b'"count":32', b'"count":31'))
    with refused(record.name, "was changed", "another sweep"):
        sweep.status()
    record.write_bytes(other.read_bytes())
    with refused(record.name, "was changed"):
        sweep.status()
    record.write_bytes(whole)
    flip_last_bit(shard)
    with refused(shard.name, "was changed", "both files"):
        summarize_sweep(sweep)


def test_boards_of_a_benchmark_that_were_changed_are_not_shown(tmp_path):
    path = build_small(tmp_path / "benchmark") / "benchmark.parquet"
    boards_of_file(path)
    flip_last_bit(path)
    with refused("benchmark.parquet", CHANGED):
        boards_of_file(path)


def test_a_preset_that_is_damaged_is_refused_in_a_line(tmp_path, monkeypatch):
    (tmp_path / "cpu.toml").write_text("stages = ")
    monkeypatch.setattr(preset_files, "FOLDER", tmp_path)
    with refused("cpu.toml", "not TOML"):
        preset_files.read_preset("cpu")
