"""The boards that a run must not train on, such as those of a benchmark."""

from pathlib import Path

from lakewright.core_jax.rows import read_all, symmetric_fingerprint
from lakewright.experiments.loop.settings import RunSettings
from lakewright.policy.tasks import board_of


def excluded_boards(settings: RunSettings) -> frozenset[bytes]:
    """Their fingerprints, the same for boards that are turned, mirrored or have their agents in another order."""
    if not settings.exclude:
        return frozenset()
    return frozenset(symmetric_fingerprint(board_of(row)) for row in read_all(Path(settings.exclude)))
