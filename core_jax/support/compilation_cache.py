"""The cache of compiled programs, which the command line and your own programs may share.

    from lakewright.core_jax.support import keep_compiled_programs

    keep_compiled_programs()  # first of all: later processes then read compiled programs, and do not compile them again

Importing Lakewright alone sets nothing: in whose process it runs, and where JAX stores its programs, is for others to
decide.
"""

import os
import sys
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lakewright" / "jax"
CACHE_SETTINGS: dict[str, str | float] = {
    "jax_compilation_cache_dir": str(CACHE),
    "jax_persistent_cache_min_compile_time_secs": 0.1,
}


def keep_compiled_programs() -> None:
    """Has JAX keep its compiled programs in `CACHE` for later processes, unless JAX_COMPILATION_CACHE_DIR says where.

    It changes settings of JAX for the whole process, its other programs too. If JAX is not imported yet, it stays so:
    then the settings are environment variables, which JAX reads once it is imported, and child processes inherit.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    if "jax" not in sys.modules:  # a command that only prints its help needs nothing from it
        os.environ.update({name.upper(): str(value) for name, value in CACHE_SETTINGS.items()})
        return
    import jax

    for name, value in CACHE_SETTINGS.items():
        jax.config.update(name, value)
