"""A benchmark of a dozen boards."""

import pytest

from lakewright.core_jax.rows import write_rows
from tests.support.samples.evaluations import ROWS


@pytest.fixture
def benchmark(tmp_path):
    """The file of ROWS."""
    write_rows(tmp_path / "rows.jsonl", ROWS)
    return tmp_path / "rows.jsonl"
