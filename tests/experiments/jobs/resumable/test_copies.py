"""Copies of results at an address of fsspec: whole or not there, only what is missing, and of one piece of work."""

import fsspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.boards.sweep import sweep
from lakewright.experiments.jobs.executors import Serial
from lakewright.experiments.jobs.resumable import copies
from lakewright.experiments.jobs.resumable.copies import Copies, check_address, list_results
from tests.support.processes.commands import assert_refused
from tests.support.refusals import refused
from tests.support.samples.tiny_sweep import SPEC, TOML


@pytest.fixture
def address():
    """A store in memory that is empty."""
    yield "memory://results/a"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def folder(tmp_path):
    """The folder of some work."""
    for name in ("study.json", "runs/a/done.json", "runs/a/checkpoint/model.bin", "runs/a/.part", "table.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def stored(address: str) -> dict[str, bytes]:
    """All files at an address of the store in memory."""
    system, root = fsspec.core.url_to_fs(address)
    return {name.removeprefix(f"{root}/"): system.cat_file(name) for name in system.find(root)}


def test_weights_and_hidden_files_are_left_out(folder):
    found = [path.relative_to(folder).as_posix() for path in list_results(folder)]
    assert found == ["runs/a/done.json", "study.json", "table.txt"]


def test_a_folder_of_a_disk_is_an_address_too_and_holds_no_other_file(folder, tmp_path):
    there = tmp_path / "there"
    Copies(f"file://{there}", folder / "study.json").add([folder / "runs" / "a" / "done.json"], folder)
    names = sorted(path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file())
    assert names == ["runs/a/done.json", "study.json"]


def test_what_is_there_is_not_copied_again_but_for_results(folder, address, monkeypatch):
    made = Copies(address, folder / "study.json")
    made.add(list_results(folder), folder)
    assert stored(address)["runs/a/done.json"] == b"runs/a/done.json"
    sent = []
    monkeypatch.setattr(Copies, "_copy_file", lambda self, file, path: sent.append(file.name))
    made.add(list_results(folder), folder)
    assert sent == []
    made.add([folder / "table.txt"], folder, again=True)
    assert sent == ["table.txt"]


def test_an_upload_that_is_cut_off_leaves_no_copy(folder, address, monkeypatch):
    made = Copies(address, folder / "study.json")

    def cut_off(source, target):
        target.write(source.read(3))
        raise OSError("connection lost")

    monkeypatch.setattr(copies.shutil, "copyfileobj", cut_off)
    with refused("--copy-to memory://results/a", "connection lost"):
        made.add([folder / "table.txt"], folder)
    assert set(stored(address)) == {"study.json"}


def test_an_address_with_copies_of_other_work_is_refused(folder, address):
    Copies(address, folder / "study.json")
    (folder / "study.json").write_text("another")
    with refused("study.json"):
        Copies(address, folder / "study.json")


@pytest.mark.parametrize(
    ("address", "reason"),
    [("nowhere://a", "Protocol not known: nowhere"), ("/proc/nowhere", "No such file"), ("s3://a/b", "s3fs")],
)
def test_an_address_that_cannot_be_written_is_refused_before_work_starts(address, reason):
    with pytest.raises(InputError, match=rf"--copy-to {address}: cannot be written \(.*{reason}.*\); check"):
        check_address(address)


def test_shards_of_a_sweep_are_copied_as_they_are_finished_and_once_more_only_if_they_are_missing(tmp_path, address):
    made = list(sweep(SPEC, Serial(), tmp_path, copy_to=address))
    for shard in made:
        for ending in ("parquet", "json"):
            name = f"shards/{shard.record.name}.{ending}"
            assert stored(address)[name] == (tmp_path / name).read_bytes()
    fsspec.filesystem("memory").rm_file(f"/results/a/shards/{made[0].record.name}.parquet")
    list(sweep(SPEC, Serial(), tmp_path, copy_to=address))
    assert len(stored(address)) == 1 + 2 * len(made)


def test_the_command_refuses_an_address_in_a_line_and_makes_nothing(tmp_path, capsys):
    (tmp_path / "sweep.toml").write_text(TOML)
    out = tmp_path / "out"
    words = ("sweep", tmp_path / "sweep.toml", "--out", out, "--copy-to", "nowhere://a", "--workers", "1")
    assert_refused(capsys, words, "--copy-to nowhere://a: cannot be written", "Protocol not known")
    assert not out.exists()
