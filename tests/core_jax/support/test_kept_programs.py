"""What the tests compile is kept for their next run, whole files only."""

import zlib

from tests.support.processes.kept_programs import begin_folder, keep_programs


def test_whole_programs_are_kept_and_parts_of_some_are_not(tmp_path):
    run, kept = tmp_path / "run", tmp_path / "kept"
    (run / "exported").mkdir(parents=True)
    whole = zlib.compress(b"machine code")
    for name, data in {
        "a-cache": whole,
        "b-cache": whole[:9],
        "exported/c": b"program",
        "exported/.d.7.part": b"p",
    }.items():
        (run / name).write_bytes(data)
    keep_programs(run, kept)
    found = {str(file.relative_to(kept)) for file in kept.rglob("*") if file.is_file()}
    assert found == {"a-cache", "exported/c"}
    assert not list(kept.glob("tmp*"))
    assert (begin_folder(kept) / "a-cache").read_bytes() == whole


def test_more_than_is_to_be_kept_is_removed_first(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "old-cache").write_bytes(b"x" * 100)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "new").write_bytes(b"program")
    keep_programs(tmp_path / "run", kept, most=99)
    assert [file.name for file in kept.iterdir()] == ["new"]
