"""Programs are traced once, and read back where they are kept; whatever the folder holds, they return the same."""

import os
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lakewright.core_jax.support import compilation_cache, keep_compiled_programs, program
from lakewright.core_jax.types import Board

traced: list[int] = []


def fresh(options: dict | None = None) -> Callable:
    """The program as a new process has it, whose tracing is noticed."""

    def moved(by: int, board: Board, count: jax.Array) -> tuple[Board, jax.Array, None]:
        traced.append(by)
        return Board(~board.holes, board.starts + by, board.goals), count + 1, None

    return program(moved, static_argnums=0, compiler_options=options)


BOARD = Board(np.eye(3, dtype=bool), np.zeros((2, 2), np.int32), np.ones((2, 2), np.int32))
EXPECTED = (Board(~BOARD.holes, BOARD.starts + 2, BOARD.goals), 8, None)


@pytest.fixture
def folder(tmp_path):
    """Where programs are kept until the test ends."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    traced.clear()
    yield tmp_path / "exported"
    jax.config.update("jax_compilation_cache_dir", before)


def check() -> None:
    """Applies the program of a new process."""
    found = fresh()(2, BOARD, 7)
    assert jax.tree.structure(found) == jax.tree.structure(EXPECTED)
    assert jax.tree.all(jax.tree.map(np.array_equal, found, EXPECTED)), f"{found} is not {EXPECTED}"


def test_a_program_that_is_kept_is_not_traced_again(folder):
    check()
    assert traced == [2]
    check()
    assert traced == [2], "it was there"
    assert len(list(folder.iterdir())) == 1


def test_other_shapes_and_other_static_arguments_are_other_programs(folder):
    kept = fresh()
    kept(2, BOARD, 7)
    kept(3, BOARD, 7)
    kept(2, BOARD, np.zeros(4))
    kept(2, BOARD, 9)
    assert traced == [2, 3, 2]
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"\x00" * 99, "cut", "changed"])
def test_a_damaged_file_is_ignored_and_made_again(folder, damage):
    check()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    changed = whole[:-40] + bytes(byte ^ 1 for byte in whole[-40:])
    path.write_bytes({"cut": whole[:-9], "changed": changed}.get(damage, damage))
    check()
    assert traced == [2, 2]
    check()
    assert traced == [2, 2], "what was made anew is whole"


def test_a_folder_that_cannot_be_written_costs_time_only(folder, monkeypatch):
    def refused(*given):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("lakewright.core_jax.support.programs.write_atomically", refused)
    check()
    check()
    assert traced == [2, 2]
    assert not folder.exists()


def test_without_a_folder_and_within_another_program_it_is_jitted(folder):
    kept = fresh()
    inside = jax.jit(lambda count: kept(2, BOARD, count)[1])(jnp.int32(7))
    assert (int(inside), folder.exists()) == (8, False)
    jax.config.update("jax_compilation_cache_dir", None)
    check()
    assert not folder.exists()


def test_options_of_the_compiler_go_with_a_program_that_is_kept(folder, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    options = {"xla_backend_optimization_level": "1"}
    first, again = (fresh(options)(2, BOARD, 7)[1] for _ in range(2))
    assert (int(first), int(again), traced) == (8, 8, [2])


def test_an_option_of_the_compiler_that_xla_flags_states_is_left_to_it(folder, monkeypatch):
    refused = {"no_such_option": "1"}
    monkeypatch.setenv("XLA_FLAGS", "--no_such_option=2 --another=3")
    assert int(fresh(refused)(2, BOARD, 7)[1]) == 8
    monkeypatch.setenv("XLA_FLAGS", "--another=3")
    with pytest.raises(jax.errors.JaxRuntimeError, match="no_such_option"):
        fresh(refused)(2, BOARD, 7)


def test_programs_are_kept_where_the_environment_says_or_in_the_users_cache(monkeypatch):
    settings = [name.upper() for name in compilation_cache.CACHE_SETTINGS]
    monkeypatch.delitem(sys.modules, "jax")  # as in a process that has not imported it yet
    for name in settings:
        monkeypatch.setenv(name, "chosen")
    keep_compiled_programs()
    assert [os.environ[name] for name in settings] == ["chosen", "chosen"]
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    keep_compiled_programs()
    assert [os.environ[name] for name in settings] == [str(compilation_cache.CACHE), "0.1"]
