"""Where machine code is kept."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewright.core_jax.support import compiled_code

ROOM = Path(compiled_code.__file__).parent
SOURCE = """
from lakewright.core_jax.support import compiled, compiled_within

@compiled
def answer(number: int) -> int:
    return twice(number) + 2

@compiled_within
def twice(number: int) -> int:
    return 2 * number
"""
PROGRAM = """
import room
from lakewright.core_jax.support import compile_all
compile_all()
print(room.answer(20), len(room.twice.signatures))
"""


def test_machine_code_goes_to_a_private_folder_where_no_other_can_be_written(monkeypatch):
    assert compiled_code.cache_folder.__wrapped__(ROOM).name.endswith(compiled_code.digest_room(ROOM))
    monkeypatch.setattr(compiled_code, "_is_writable", lambda folder: False)
    private = compiled_code.cache_folder.__wrapped__(ROOM)
    assert private.is_dir()
    assert private not in list(compiled_code._list_candidates(ROOM))


def test_a_folder_that_can_only_be_read_is_copied_with_what_is_kept_in_it(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    shared = tmp_path / f"lakewright-{compiled_code.digest_room(ROOM)}"
    shared.mkdir()
    (shared / f"search{compiled_code.MARK}").write_text("machine code")
    assert compiled_code.cache_folder.__wrapped__(ROOM) == shared
    monkeypatch.setattr(compiled_code, "_is_writable", lambda folder: False)
    copied = compiled_code.cache_folder.__wrapped__(ROOM)
    assert copied != shared
    assert (copied / f"search{compiled_code.MARK}").read_text() == "machine code"


@pytest.mark.parametrize("name", ["processor", "numba"])
def test_machine_code_of_another_processor_or_version_is_never_found(monkeypatch, name):
    before = compiled_code.cache_folder.__wrapped__(ROOM)
    if name == "processor":
        monkeypatch.setattr(compiled_code.llvmlite.binding, "get_host_cpu_name", lambda: "another")
    else:
        monkeypatch.setattr(compiled_code.numba, "__version__", "0.0")
    assert compiled_code.digest_room(ROOM) != before.name.removeprefix("lakewright-")
    assert before not in list(compiled_code._list_candidates(ROOM))


def test_what_is_kept_is_read_again_without_what_it_calls(tmp_path):
    (tmp_path / "room.py").write_text(SOURCE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": f"{tmp_path}:{os.getcwd()}"}
    found = [
        subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [process.stdout.split() for process in found] == [["42", "1"], ["42", "0"]]


def test_a_cache_folder_that_is_asked_for_comes_first_and_other_sources_have_another(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    before = compiled_code.cache_folder.__wrapped__(ROOM)
    assert before.parent == tmp_path / "cache"
    (tmp_path / "search.py").write_text("changed")
    assert compiled_code.cache_folder.__wrapped__(tmp_path) != before
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert compiled_code.cache_folder.__wrapped__(tmp_path).parent == tmp_path / "__pycache__"
