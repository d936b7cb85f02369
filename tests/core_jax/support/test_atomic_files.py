"""Files that cannot be read are reported in one line, and what is written is there whole or not at all."""

import contextlib
import os

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import SCHEMA, ending, read_all, row_writer, write_rows
from lakewright.core_jax.support import replacing, replacing_folder, write_atomically
from tests.support.boards.any_rows import GOOD, each_ending, read_with_errors
from tests.support.boards.generated_rows import rows
from tests.support.refusals import refused


class FailureError(Exception):
    """Something goes wrong while a file is written."""


def read_somehow(path) -> tuple[list, list[str]]:
    """What is read of a file, and what is reported about the rest or about the whole."""
    try:
        return read_with_errors(path)
    except InputError as error:
        return [], [str(error)]


def test_a_file_without_lines_holds_no_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(b"")
    assert read_all(tmp_path / "rows.jsonl") == []


@pytest.mark.parametrize("kept", [0, 3, 0.5, 0.99])
def test_a_parquet_file_cut_short_is_reported(tmp_path, kept):
    path = tmp_path / "rows.parquet"
    write_rows(path, rows())
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data)) if kept < 1 else kept])
    with refused("rows.parquet:", "Parquet file ("):
        read_all(path)


def test_a_corrupted_parquet_file_gives_rows_or_is_reported(tmp_path):
    path, rng = tmp_path / "rows.parquet", np.random.default_rng(0)
    write_rows(path, [msgspec.structs.replace(GOOD, id=str(number)) for number in range(50)])
    whole = path.read_bytes()
    for trial in range(300):
        data = bytearray(whole)
        for place in rng.integers(len(data), size=2):
            data[place] = rng.integers(256)
        path.write_bytes(data)
        _, lines = read_somehow(path)
        assert all("\n" not in line for line in lines), f"trial {trial}"


def test_text_of_parquet_that_is_not_utf8_is_reported(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pa.Table.from_pylist([{**msgspec.to_builtins(GOOD), "id": "BOARD"}], SCHEMA)
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"BOARD", b"\xff" * 5))
    found, lines = read_somehow(path)
    assert not found
    assert str(path) in lines[0]


@each_ending
def test_a_missing_file_is_reported(tmp_path, form):
    with pytest.raises(InputError, match=rf"none{form}: (cannot be read|not a readable).*check"):
        read_all(tmp_path / f"none{form}")


@pytest.mark.parametrize("name", ["rows.csv", "rows", "rows.json"])
def test_an_unknown_ending_is_reported_with_the_known_ones(tmp_path, name):
    for use in (ending, read_all, lambda path: write_rows(path, [GOOD])):
        with refused(name, ".jsonl", ".parquet"):
            use(tmp_path / name)
    assert not list(tmp_path.iterdir())


@each_ending
def test_a_write_that_fails_in_the_middle_leaves_the_old_file_and_no_litter(tmp_path, form):
    path = tmp_path / f"rows{form}"
    write_rows(path, [GOOD])
    with contextlib.suppress(FailureError), row_writer(path) as write:
        write([GOOD, GOOD])
        raise FailureError
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert read_all(path) == [GOOD]


def test_bytes_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "file"
    write_atomically(path, b"old")
    with contextlib.suppress(FailureError), replacing(path) as beside:
        beside.write_bytes(b"half")
        assert path.read_bytes() == b"old"
        raise FailureError
    assert (path.read_bytes(), len(list(path.parent.iterdir()))) == (b"old", 1)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_all_that_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []

    def note(what, of):
        real = getattr(os, what)
        monkeypatch.setattr(os, what, lambda *given: (done.append((what, of(given[0]))), real(*given)))

    note("fsync", lambda descriptor: os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
    note("replace", os.path.basename)
    write_atomically(tmp_path / "file", b"data")
    with replacing_folder(tmp_path / "folder") as beside:
        (beside / "inside").write_bytes(b"data")
    steps = ["fsync .file.part", "replace .file.part", f"fsync {tmp_path.name}"]
    steps += ["fsync inside", "fsync .folder.part", "replace .folder.part", f"fsync {tmp_path.name}"]
    assert [" ".join(step) for step in done] == steps


def test_a_folder_appears_whole_or_not_at_all_and_old_litter_is_cleared(tmp_path):
    path = tmp_path / "checkpoint"
    for _ in range(2):
        with contextlib.suppress(FailureError), replacing_folder(path) as beside:
            (beside / "half").write_text("half")
            raise FailureError
    (tmp_path / ".checkpoint.part").mkdir()
    (tmp_path / ".checkpoint.part" / "litter").write_text("of a run that was killed")
    with replacing_folder(path) as beside:
        (beside / "whole").write_text("whole")
        assert not path.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]
    assert [file.name for file in path.iterdir()] == ["whole"]


@pytest.mark.parametrize("writing", [replacing, replacing_folder])
@pytest.mark.parametrize("error", [(OSError, 28, "No space left on device"), (RuntimeError, "full (os error 28)")])
def test_a_full_disk_names_the_place_whoever_meets_it(tmp_path, writing, error):
    with pytest.raises(OSError, match="No space left") as raised, writing(tmp_path / "made"):
        raise error[0](*error[1:])
    assert (raised.value.errno, raised.value.filename) == (28, str(tmp_path / "made"))
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_system_made_of_words_alone_keeps_them(tmp_path):
    with pytest.raises(OSError, match=r"^the disk is full$"), replacing(tmp_path / "made"):
        raise OSError("the disk is full")
