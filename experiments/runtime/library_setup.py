"""What must be settled before JAX and the training libraries work, in every process."""

import os
import warnings
from pathlib import Path

import jax

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lakewright" / "jax"  # compiled programs


def keep_compiled_programs() -> None:
    """Has JAX keep its programs for later processes, unless the environment says where."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(CACHE))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def prepare_training(model: str = "") -> None:
    """Settles what must be known before the training libraries are imported: no chatter of their own, and no hub, but
    where `model` must be fetched from there.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "0" if model and not Path(model).exists() else "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a GPU is shared with torch
    warnings.filterwarnings("ignore", category=FutureWarning)
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
