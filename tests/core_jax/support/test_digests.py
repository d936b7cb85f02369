"""Files that are listed with their SHA-256 are checked when they are read, and replacing one keeps the list true."""

import subprocess

import pytest

from lakewright.core_jax.support import (
    LISTING,
    check_digest,
    check_listed,
    listed,
    read_raw,
    record_listing,
    write_atomically,
    write_json,
)
from tests.support.refusals import refused


def write_listed(path, value):
    with listed(path):
        write_json(path, value)
    return path


def test_a_file_that_was_changed_is_refused_and_the_message_names_the_remedy(tmp_path):
    path = write_listed(tmp_path / "record.json", {"valid": 10})
    assert read_raw(path) == {"valid": 10}
    path.write_bytes(path.read_bytes().replace(b"10", b"11"))
    with refused(path, "was changed", "restore the file", "remove its line"):
        read_raw(path)


def test_a_file_may_be_replaced_and_the_others_stay_listed(tmp_path):
    one, other = (write_listed(tmp_path / name, name) for name in ("one.json", "other name.json"))
    write_listed(one, "again")
    check_listed(tmp_path)
    assert len((tmp_path / LISTING).read_text().splitlines()) == 2
    ended = subprocess.run(["sha256sum", "-c", LISTING], cwd=tmp_path, check=True, capture_output=True)
    assert ended.stdout.splitlines() == [b"one.json: OK", b"other name.json: OK"]
    other.unlink()
    with refused("other name.json:"):
        check_listed(tmp_path)


def test_a_write_that_is_interrupted_leaves_the_file_unlisted_and_readable(tmp_path):
    path = write_listed(tmp_path / "record.json", 1)

    def write_and_stop():
        with listed(path):
            write_json(path, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_stop()
    assert read_raw(path) == 2
    assert (tmp_path / LISTING).read_bytes() == b""


def test_a_file_is_listed_again_while_it_is_checked_and_not_refused(tmp_path, monkeypatch):
    path = write_listed(tmp_path / "record.json", 1)
    path.write_text("2")
    found = iter(["old", "new"])
    monkeypatch.setattr("lakewright.core_jax.support.digests.digest_of", lambda path: "new")
    monkeypatch.setattr("lakewright.core_jax.support.digests._read_listing", lambda folder: {path.name: next(found)})
    check_digest(path)
    with pytest.raises(StopIteration):  # both lists were read
        next(found)


@pytest.mark.parametrize("text", [b"", b"nothing", b"0" * 64 + b" record.json\n", b"\xff\n"])
def test_files_without_a_line_are_read(tmp_path, text):
    write_json(tmp_path / "record.json", 1)
    (tmp_path / LISTING).write_bytes(text)
    check_listed(tmp_path)
    assert read_raw(tmp_path / "record.json") == 1


def test_a_folder_is_listed_whole(tmp_path):
    for name in ("a", "b"):
        write_atomically(tmp_path / name, name.encode())
    record_listing(tmp_path)
    (tmp_path / "b").write_text("c")
    with refused("b", "was changed"):
        check_listed(tmp_path)
