"""Compiled programs are kept on disk: the next process loads them."""

import os
from pathlib import Path

import jax

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lakewright" / "jax"


def keep_programs() -> None:
    """Has JAX keep what it compiles in CACHE, unless it was told of another place."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(CACHE))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
