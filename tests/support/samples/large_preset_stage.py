"""A stage of the preset `qwen3-4b`: python -m tests.support.samples.large_preset_stage FOLDER SETTING=VALUE ..."""

import sys
from pathlib import Path
from types import SimpleNamespace

from lakewright.core_jax.rows import write_rows
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.experiments.loop.training.stage_training import train_stage
from lakewright.experiments.loop.training.trainee import make_trainee
from tests.support.boards.generated_rows import small_rows


def main(folder: str, *overrides: str) -> None:
    """Trains on two boards, in as many processes and with the accelerate config that the settings name."""
    settings, run = load_settings("qwen3-4b", list(overrides)), RunFolder(Path(folder))
    run.open(settings)
    stage = run.stage(0)
    write_rows(stage.boards, small_rows()[:2])
    train_stage(make_trainee(settings), stage, SimpleNamespace(onward=settings.start), 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
