"""How far a flood is from what the machine's memory allows."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.lake import BOARDS_PER_WORD, cell_count
from lakewright.core_jax.support import cores, on_all_cores

MEMORY_BYTES = 1 << 28  # far beyond any cache of a processor
CACHE_BYTES = 1 << 17  # the sets of a flood on a board of size 10: it never leaves the cache
REPEATS = 5


def copies() -> dict[str, float]:
    """GB/s, bytes read and bytes written together, of copying within main memory and within the cache, all cores."""
    return {"memory": _copy_rate(MEMORY_BYTES, 4) / 1e9, "cache": _copy_rate(CACHE_BYTES, 8192) / 1e9}


def flood_bytes(size: int, layers: float) -> float:
    """An estimate from below of the bytes a two-agent sum-of-costs flood moves for each of its 32 boards.

    A layer is made of the two before it, with and without waits: at the least two sets of joint states, N x N words
    each, are read twice and written once.
    """
    words = cell_count(size) ** 2
    return layers * 2 * 3 * words * 4 / BOARDS_PER_WORD


def flood_layers(sums_of_costs: np.ndarray) -> float:
    """The mean depth of floods of 32 boards each that end with the last board's optimum, int [B], -1 if unsolvable.

    Floods that label every start pair, or prove a board unsolvable, go deeper.
    """
    whole = sums_of_costs[: len(sums_of_costs) // BOARDS_PER_WORD * BOARDS_PER_WORD]
    return float(whole.reshape(-1, BOARDS_PER_WORD).max(axis=1).mean())


def _copy_rate(size: int, times: int) -> float:
    """Bytes read and written a second by copying `size` bytes `times` over.

    Every core has a block of its own; of accelerators the first is measured.
    """
    workers = cores() if jax.default_backend() == "cpu" else 1
    blocks = [jnp.arange(size // workers // 4, dtype=jnp.uint32) for _ in range(workers)]
    rates = []
    for _ in range(1 + REPEATS):  # the first compiles
        begun = time.perf_counter()
        blocks = on_all_cores(lambda block: _copy(block, times).block_until_ready(), blocks)
        rates.append(2 * size * times / (time.perf_counter() - begun))
    return max(rates[1:])


@functools.partial(jax.jit, static_argnums=1, donate_argnums=0)
def _copy(block: jax.Array, times: int) -> jax.Array:
    """Reads and writes `block` again and again, in place: new pages would cost more than the copy.

    What is written depends on the turn, so no turn can be left out.
    """
    return jax.lax.fori_loop(0, times, lambda turn, words: words ^ turn.astype(jnp.uint32), block)
