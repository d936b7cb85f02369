"""Sets of boards that alternate between several configs, such as teams of several sizes."""

import dataclasses
from collections.abc import Callable, Sequence

from lakewright.core_jax.config import EnvConfig, holds
from lakewright.core_jax.generator.generator import Batch, can_draw, generate


def generate_in_turn(
    configs: Sequence[EnvConfig],
    seed: int,
    count: int,
    on_progress: Callable[[int], object] = lambda boards: None,
    first: int = 0,
) -> list[dict[int, Batch]]:
    """Draws the boards first .. first + count - 1 of the set in which board i is one of config i mod m, of m configs.

    Board i is board i // m of its config's own set, so this set can be drawn in pieces too. Raises as `generate`.

    Args:
        configs: the configs that take turns.
        seed, count, on_progress, first: see `generate`.

    Returns: the boards of each config by map size, as `generate` does; an index is the place in the whole set.
    """
    made = []
    for turn, config in enumerate(configs):
        begin, end = (_count_boards_before(place, turn, len(configs)) for place in (first, first + count))
        batches = generate(config, seed, end - begin, on_progress, begin) if begin < end else {}
        made.append({size: _place_in_set(batch, turn, len(configs)) for size, batch in batches.items()})
    return made


def can_draw_for(teams: Sequence[int]) -> Callable[[int, int, float, bool], bool]:
    """`can_draw` for every team that fits on the size; `can_draw` itself if `teams` is empty."""

    def for_all(size: int, agents: int, hole_ratio: float, wait: bool) -> bool:
        """Return True if every team that fits on the size can be drawn.

        Args: size, agents, hole_ratio, wait: see `can_draw`; `agents` is ignored.
        """
        return all(can_draw(size, team, hole_ratio, wait) for team in teams if holds(size, team))

    return for_all if teams else can_draw


def can_draw_all(config: EnvConfig) -> bool:
    """Return True if all boards that a config asks for can be drawn."""
    return all(
        can_draw(size, config.agents, cell.hole_ratio, wait)
        for size, cell in config.sizes.items()
        for wait, share in cell.wait_shares
        if cell.data_ratio * share > 0
    )


def _count_boards_before(place: int, turn: int, turns: int) -> int:
    """The number of boards of a config before a place."""
    return max(0, -(-(place - turn) // turns))


def _place_in_set(batch: Batch, turn: int, turns: int) -> Batch:
    return dataclasses.replace(batch, index=batch.index * turns + turn)
