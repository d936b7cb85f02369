"""Where machine code is kept."""

from pathlib import Path

from core_jax.support import compiled_code

ROOM = Path(compiled_code.__file__).parent


def test_machine_code_goes_to_a_private_folder_where_no_other_can_be_written(monkeypatch):
    assert compiled_code.cache_folder.__wrapped__(ROOM).name.endswith(compiled_code.digest(ROOM))
    monkeypatch.setattr(compiled_code, "_writable", lambda folder: False)
    private = compiled_code.cache_folder.__wrapped__(ROOM)
    assert private.is_dir()
    assert private not in list(compiled_code._candidates(ROOM))


def test_a_cache_folder_that_is_asked_for_comes_first_and_other_sources_have_another(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    before = compiled_code.cache_folder.__wrapped__(ROOM)
    assert before.parent == tmp_path / "cache"
    (tmp_path / "search.py").write_text("changed")
    assert compiled_code.cache_folder.__wrapped__(tmp_path) != before
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert compiled_code.cache_folder.__wrapped__(tmp_path).parent == tmp_path / "__pycache__"
