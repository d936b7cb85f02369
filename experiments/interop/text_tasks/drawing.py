"""Boards one by one, by number: drawn in chunks, since one costs hardly less than many."""

import functools

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import generate
from lakewright.core_jax.rows import Row, rows_of

CHUNK = 32


class BoardStream:
    """The endless set of boards of a kind and a seed. Raises InputError where there are no such boards."""

    def __init__(self, size: int, agents: int, hole_ratio: float, wait_ratio: float, seed: int) -> None:
        try:
            config = EnvConfig.single(size, agents, hole_ratio, wait_ratio)
        except ValueError as error:
            raise InputError(str(error)) from None
        self._size, self._config, self._seed = size, config, seed

    def __getitem__(self, index: int) -> Row:
        """The row of the board of this number, with its plan; the same for the same kind, seed and number."""
        first = index - index % CHUNK
        return _chunk(self._config.agents, self._size, self._kind, self._seed, first)[index - first]

    @property
    def _kind(self) -> tuple[float, float]:
        cell = self._config.sizes[self._size]
        return cell.hole_ratio, cell.wait_ratio


@functools.lru_cache(maxsize=256)
def _chunk(agents: int, size: int, ratios: tuple[float, float], seed: int, first: int) -> list[Row]:
    config = EnvConfig.single(size, agents, *ratios)
    return rows_of(generate(config, seed, CHUNK, first=first), config)
