"""The test of a study: greedy plans of each run's last policy on boards that no decision of a run has seen."""

from pathlib import Path

import msgspec

from lakewright.core_jax.rows import Row
from lakewright.experiments.loop.records import Stage, write
from lakewright.experiments.loop.settings import RunSettings, ValidationSettings
from lakewright.experiments.loop.training import held_out_set, measure


def final_boards(settings: RunSettings, chosen: ValidationSettings, path: Path) -> list[Row]:
    """The boards of the test, drawn once and saved at `path`."""
    return held_out_set(msgspec.structs.replace(settings, validation=chosen), path)


def take_final_test(settings: RunSettings, policy: Stage, boards: list[Row], path: Path) -> None:
    """Saves how a policy does on the boards of the test, unless that is done.

    Args:
        settings: Those of the run.
        policy: The stage whose policy it is.
        boards: The boards of the test.
        path: Where the result is saved.
    """
    if path.exists():
        return
    record, _, _ = measure(settings, policy, boards, "test")
    write(path, record)
