"""The setup of JAX and the training libraries, before they work, in every process."""

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakewright.core_jax.support import naming_extra
from lakewright.policy.models import is_on_hub

# Otherwise vLLM writes lines to the standard output, and sends statistics of its use.
VLLM = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_LOGGING_STREAM": "ext://sys.stderr", "VLLM_NO_USAGE_STATS": "1"}


def prepare_libraries(model: str = "") -> None:
    """Settles everything that must be known before the training libraries are imported.

    They print nothing of their own, and the hub is not asked unless `model` must be fetched from there.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "0" if is_on_hub(model) else "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a GPU is shared with torch
    for name, value in VLLM.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", category=FutureWarning)
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


@contextmanager
def importing() -> Iterator[None]:
    """Looks for no garbage within the block: imports leave little, and the search takes a seventh of their time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load_duckdb() -> Any:
    """DuckDB, which only sweeps and tables of boards need. Raises InputError if it is missing."""
    with naming_extra("reading files of boards", "sweeps"):
        import duckdb
    return duckdb
