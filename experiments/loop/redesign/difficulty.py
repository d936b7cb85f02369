"""The difficulty model of a run: fitted after each stage to all groups that its policies rolled out."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from lakewright.core_jax.config import EnvConfig, hole_ratio_of
from lakewright.core_jax.rows import Row, read_all
from lakewright.engineer.curriculum_cells import Cell
from lakewright.engineer.difficulty import (
    Forecast,
    HeldOutCell,
    Observation,
    cell_of,
    forecast,
    held_out_observations,
    observations_of,
)
from lakewright.engineer.guard import GuardSettings, widened
from lakewright.engineer.trial import StratumTrial
from lakewright.experiments.loop.records import RunFolder, Stage, Trial, Validation, read, read_rollouts
from lakewright.experiments.loop.settings import RunSettings


def forecast_after(settings: RunSettings, folder: RunFolder, number: int) -> Forecast:
    """The forecast after stage `number`, from the groups of its training and of all before, trials included.

    With `difficulty.held_out`, from the plans for the held-out boards, too, those after the warm-up included.
    """
    found = [seen for past in range(number + 1) for seen in _observations(folder.stage(past), number - past)]
    found += [seen for past in range(number) for seen in _tried(folder.stage(past), number - past)]
    before = read_forecast(folder.stage(number - 1)) if number else None
    config = folder.stage(number).config()
    how = msgspec.structs.replace(settings.difficulty, objective=settings.objective)
    rows = read_all(folder.validation)
    tested = list(_tested(folder, number, rows)) if settings.difficulty.held_out else []
    return forecast(config, found, held_out_cells(rows, config), how, before, tested)


def _tested(folder: RunFolder, number: int, rows: list[Row]) -> Iterator[Observation]:
    """The held-out boards' plans after the warm-up and each stage."""
    for past in range(-1, number + 1):
        stage = folder.stage(past) if past >= 0 else folder.warmup
        yield from held_out_observations(rows, read(stage.validation, Validation).valid, number - past)


def _tried(stage: Stage, age: int) -> list[Observation]:
    """The groups of the trial after a stage, if one was held; its policy is that of the stage to come, untrained."""
    trial = read(stage.trial, Trial) if stage.trial.exists() else None
    return [_of_stratum(part, age) for part in trial.strata] if trial else []


def _of_stratum(part: StratumTrial, age: int) -> Observation:
    size, agents = part.stratum.size, part.stratum.agents
    cell = Cell(size, hole_ratio_of(size, agents, part.stratum.holes), part.stratum.wait)
    variance = sum(part.variances())
    return Observation(cell, agents, len(part.valid), sum(part.valid) / part.plans, variance, age)


def read_forecast(stage: Stage) -> Forecast | None:
    """The forecast after a stage; None in folders of older versions."""
    return read(stage.difficulty, Forecast) if stage.difficulty.exists() else None


def trust_region(settings: RunSettings, stage: Stage) -> GuardSettings:
    """The guard's settings after a stage, as wide as the difficulty model is certain."""
    known = read_forecast(stage)
    return widened(settings.guard, known.certainty) if known else settings.guard


def held_out_cells(rows: list[Row], config: EnvConfig) -> list[HeldOutCell]:
    """The cells of the held-out boards, of the sizes that the config draws, with their shares."""
    counts = Counter(cell for cell in map(cell_of, rows) if cell.size in config.sizes)
    return [HeldOutCell(cell, count / counts.total()) for cell, count in sorted(counts.items())]


def _observations(stage: Stage, age: int) -> Iterator[Observation]:
    yield from observations_of(read_rollouts(stage), age)
