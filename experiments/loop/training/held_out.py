"""The held-out set: the boards of every validation of a run."""

from pathlib import Path

from lakewright.core_jax.config import EnvConfig, with_teams
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import can_draw_all, generate
from lakewright.core_jax.rows import Row, read_all, rows_of, write_rows
from lakewright.experiments.loop.settings import RunSettings, seed_for
from lakewright.experiments.runtime.progress_bars import progress


def held_out_set(settings: RunSettings, path: Path) -> list[Row]:
    """The held-out boards of a run, drawn once and kept at `path`."""
    if not path.exists():
        write_rows(path, _drawn(settings))
    return read_all(path)


def _drawn(settings: RunSettings) -> list[Row]:
    chosen, configs = settings.validation, _configs(settings)
    rows: list[Row] = []
    with progress("held-out boards", len(configs) * chosen.boards, "boards") as bar:
        for config in configs:
            ((size, cell),) = config.sizes.items()
            seed = seed_for(chosen.seed, f"held-out {size} {cell.hole_ratio} {cell.wait_ratio}")
            rows += rows_of(generate(config, seed, chosen.boards, bar.update), config)
    return rows


def _configs(settings: RunSettings) -> list[EnvConfig]:
    """A config for each team, size, hole ratio and wait ratio; with teams, only those whose boards can be drawn.

    Raises InputError where that leaves a team without boards.
    """
    chosen = settings.validation
    configs = [
        EnvConfig.single(size, team.agents, hole, wait)
        for team in with_teams(settings.env, settings.teams)
        for size in team.sizes
        for hole in chosen.hole_ratios
        for wait in chosen.wait_ratios
    ]
    if not settings.teams:
        return configs
    configs = [config for config in configs if can_draw_all(config)]
    drawable = {config.agents for config in configs}
    if missing := [agents for agents in settings.teams if agents not in drawable]:
        raise InputError(
            f"validation: no boards for {missing[0]} agents can be drawn at its ratios; give it other ratios"
        )
    return configs
