"""A process that makes shards."""

import functools
import os

import jax

from lakewright.experiments.runtime.library_setup import keep_compiled_programs


@functools.cache
def prepare() -> None:
    """Limits this process to one core and, unless JAX_PLATFORMS is set, to the CPU; to be called before JAX is used."""
    os.environ["NPROC"] = "1"
    if "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")
    keep_compiled_programs()
