"""A benchmark of few small boards."""

from pathlib import Path

import pytest

from lakewright.experiments.boards.benchmark.builder import build_benchmark
from lakewright.experiments.boards.benchmark.tiers import TIERS
from tests.support.processes.killable_work import SMALL_TIER


def build_small(folder: Path) -> Path:
    """Builds the benchmark of the tier `small` in a folder, which is returned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TIERS, "small", SMALL_TIER)
        build_benchmark(folder, "small", 0)
    return folder
