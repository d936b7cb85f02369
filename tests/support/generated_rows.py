"""Generated boards that several tests share, and the command that draws them in a process of its own."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import numpy as np

from core_jax.config import EnvConfig, SizeConfig
from core_jax.generator import generate
from core_jax.generator.attempts import Attempts
from core_jax.rows import Row, read_all, rows_of

# Chosen so that shares and forced waits leave remainders: see test_generator.
CONFIG = EnvConfig({3: SizeConfig(0.35, 0.2, 0.5), 5: SizeConfig(0.65, 0.3, 0.3)})
COUNT, SEED = 301, 5
SMALL = EnvConfig.single(3, agents=2, hole_ratio=0.2, wait_ratio=0.5)
SMALL_COUNT, SMALL_SEED = 37, 11
HOUSE = Path(__file__).parents[2]


@functools.cache
def rows() -> tuple[Row, ...]:
    """The rows of CONFIG."""
    return tuple(rows_of(generate(CONFIG, SEED, COUNT), CONFIG))


def small_rows(seed: int = SMALL_SEED, count: int = SMALL_COUNT) -> list[Row]:
    """Rows of SMALL, drawn in this process."""
    return rows_of(generate(SMALL, seed, count), SMALL)


def none_met(size, agents, holes, streams, lanes) -> Attempts:
    """Attempts of which none met its stratum; to stand in for `attempt`."""
    return Attempts(np.zeros(len(lanes.wait), bool), None, None)


def unsolved(row: Row) -> Row:
    """The row without its labels."""
    return Row(row.id, row.size, row.agents, row.grid, row.starts, row.goals)


def shown(row: Row) -> str:
    """A row in a failure message."""
    return "\n".join(["", row.id, *row.grid, f"starts={row.starts}", f"goals={row.goals}", f"plan={row.plan}"])


@functools.cache
def elsewhere() -> Path:
    """A folder until the tests end."""
    folder = Path(tempfile.mkdtemp(prefix="lakewright-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def surroundings() -> dict[str, str]:
    """The environment of another process: one thread, and the tests' helpers in reach."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOUSE)}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `lakewright` as a user does, in a process of its own."""
    program = str(Path(sys.executable).with_name("lakewright"))
    given = [program, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, env=surroundings(), check=False, timeout=300)


@functools.cache
def drawn_elsewhere(ending: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """SMALL drawn by the command in another process: the file, and what the command said."""
    config, out = elsewhere() / "small.json", elsewhere() / f"small{ending}"
    config.write_bytes(msgspec.json.encode(SMALL))
    ended = command(
        "generate", "--config", config, "--count", SMALL_COUNT, "--seed", SMALL_SEED, "--out", out, "--json"
    )
    assert ended.returncode == 0, ended.stderr
    return out, ended


def drawn_on_two_devices(count: int) -> tuple[list[Row], list[str]]:
    """Rows of SMALL drawn in a process with two devices, and the devices of four blocks there."""
    out = elsewhere() / "two_devices.jsonl"
    program = f"""
import jax.numpy as jnp
from core_jax.rows import write_rows
from core_jax.support import on_all_cores
from tests.support.generated_rows import small_rows
print(*on_all_cores(lambda _: jnp.zeros(1).device.id, range(4)))
write_rows({str(out)!r}, small_rows(count={count}))
"""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    env = {**surroundings(), "XLA_FLAGS": flags}
    given = [sys.executable, "-c", program]
    ended = subprocess.run(given, capture_output=True, text=True, env=env, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return read_all(out), ended.stdout.split()
