"""How many boards a second the lake draws, solves and verifies on this machine; compile time apart.

lakewright bench --json
"""

import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from core_jax.config import EnvConfig, holes_of
from core_jax.dynamics import verdict
from core_jax.generator import Batch, generate
from core_jax.solver import solve
from core_jax.types import Board

SIZES = (5, 8, 10)
HOLE_RATIO = 0.3
BOARDS = 4096
REPEATS = 5


class Measurement(msgspec.Struct, frozen=True):
    """One question: boards a second as the median of `rates`, and the seconds of the first call beyond a later one."""

    work: str
    size: int
    agents: int
    boards: int
    boards_per_second: float
    rates: list[float]
    compile_seconds: float


class Bench(msgspec.Struct, frozen=True):
    """All measurements and the machine they were made on."""

    machine: dict[str, Any]
    measurements: list[Measurement]


def measure(on_progress: Callable[[], object] = lambda: None) -> Bench:
    """Runs every benchmark for two agents: generate at wait ratios 0 and 0.75; solve and verify random boards."""
    found = []
    for size in SIZES:
        for measured in _of_size(size):
            found.append(measured)
            on_progress()
    return Bench(_machine(), found)


def table(bench: Bench) -> str:
    """The measurements for a person."""
    lines = [f"{', '.join(f'{name} {value}' for name, value in bench.machine.items())}", ""]
    lines.append(f"{'work':<26}{'size':>6}{'boards/s':>14}{'compile s':>12}")
    for row in bench.measurements:
        lines.append(f"{row.work:<26}{row.size:>6}{row.boards_per_second:>14,.0f}{row.compile_seconds:>12.1f}")
    return "\n".join(lines)


def _of_size(size: int) -> Iterator[Measurement]:
    def draw(seed: int, wait_ratio: float) -> Batch:
        return generate(EnvConfig.single(size, 2, HOLE_RATIO, wait_ratio), seed, BOARDS)[size]

    yield _measure("generate, wait ratio 0", size, lambda seed: draw(seed, 0.0))
    yield _measure("generate, wait ratio 0.75", size, lambda seed: draw(seed, 0.75))
    boards = _random_boards(size)
    yield _measure("solve", size, lambda seed: solve(boards))
    play = jax.jit(jax.vmap(verdict))
    on_device = jax.tree.map(jnp.asarray, (boards, solve(boards).moves))
    yield _measure("verify", size, lambda seed: jax.block_until_ready(play(*on_device)))


def _random_boards(size: int) -> Board:
    """Boards with starts, goals and holes anywhere, solvable or not."""
    order = np.random.default_rng(0).random((BOARDS, size * size)).argsort(axis=1)
    cells = np.stack(np.divmod(order, size), axis=-1).astype(np.int32)
    holes = np.zeros((BOARDS, size, size), bool)
    for hole in range(4, 4 + holes_of(size, 2, HOLE_RATIO)):
        holes[np.arange(BOARDS), cells[:, hole, 0], cells[:, hole, 1]] = True
    return jax.tree.map(jnp.asarray, Board(holes, cells[:, :2], cells[:, 2:4]))  # type: ignore[arg-type]


def _measure(work: str, size: int, call: Callable[[int], Any]) -> Measurement:
    first = _seconds(call, 0)
    later = [_seconds(call, seed) for seed in range(1, REPEATS + 1)]
    rates = [BOARDS / seconds for seconds in later]
    compile_seconds = max(first - statistics.median(later), 0.0)
    return Measurement(work, size, 2, BOARDS, statistics.median(rates), rates, compile_seconds)


def _seconds(call: Callable[[int], Any], seed: int) -> float:
    begun = time.perf_counter()
    call(seed)
    return time.perf_counter() - begun


def _machine() -> dict[str, Any]:
    device = jax.devices()[0]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "device": device.device_kind,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _processor() -> str:
    """The processor's name as Linux tells it, else as Python does."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
