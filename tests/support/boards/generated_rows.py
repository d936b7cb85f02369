"""Generated boards that several tests share, drawn in this process or in another."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.generator import Batch, generate
from lakewright.core_jax.generator.attempts import Attempts
from lakewright.core_jax.rows import Row, plan_of, read_all, rows_of
from tests.support.boards.sample_boards import as_lists, each
from tests.support.processes.commands import elsewhere, lakewright_process, surroundings

# Chosen so that shares and forced waits leave remainders: see test_generator.
CONFIG = EnvConfig({3: SizeConfig(0.35, 0.2, 0.5), 5: SizeConfig(0.65, 0.3, 0.3)})
COUNT, SEED = 301, 5
RARE = EnvConfig.single(3, 2, 0.0, 0.6)  # about one map in four has a forced wait
SMALL = EnvConfig.single(3, agents=2, hole_ratio=0.2, wait_ratio=0.5)
SMALL_COUNT, SMALL_SEED = 37, 11
# SMALL for teams: three agents have no hole there, two have one. With a hole, boards of three take fifty times as long.
ROOMY = EnvConfig.single(3, agents=2, hole_ratio=0.1, wait_ratio=0.5)
BLOCKED = Row("blocked", 3, 2, [".H.", ".H.", ".H."], [(0, 0), (1, 0)], [(0, 2), (2, 0)])  # no path for an agent


@functools.cache
def rows() -> tuple[Row, ...]:
    """The rows of CONFIG."""
    return tuple(rows_of(generate(CONFIG, SEED, COUNT), CONFIG))


def small_rows(seed: int = SMALL_SEED, count: int = SMALL_COUNT) -> list[Row]:
    """Rows of SMALL, drawn in this process."""
    return rows_of(generate(SMALL, seed, count), SMALL)


def boards_by_index(*parts: dict[int, Batch]) -> dict[int, tuple]:
    """Each board and its labels, written out."""
    found = {}
    for made in (one for part in parts for one in part.values()):
        plans = [plan_of(moves) for moves in made.labels.moves]
        costs = zip(made.labels.makespan, made.labels.sum_of_costs, made.labels.wait_required, strict=True)
        for index, *board in zip(made.index, each(made.boards), costs, plans, strict=True):
            found[int(index)] = (as_lists(board[0]), *board[1:])
    return found


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
def drawn_elsewhere(ending: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """SMALL drawn by the command in another process: the file, and what the command said."""
    config, out = elsewhere() / "small.json", elsewhere() / f"small{ending}"
    config.write_bytes(msgspec.json.encode(SMALL))
    ended = lakewright_process(
        "generate", "--config", config, "--count", SMALL_COUNT, "--seed", SMALL_SEED, "--out", out, "--json"
    )
    assert ended.returncode == 0, ended.stderr
    return out, ended


def drawn_on_two_devices(count: int) -> tuple[list[Row], list[str]]:
    """Rows of SMALL drawn in a process with two devices, and the devices of four blocks there."""
    out = elsewhere() / "two_devices.jsonl"
    program = f"""
import jax.numpy as jnp
from lakewright.core_jax.rows import write_rows
from lakewright.core_jax.support import on_all_cores
from tests.support.boards.generated_rows import small_rows
print(*on_all_cores(lambda _: jnp.zeros(1).device.id, range(4)))
write_rows({str(out)!r}, small_rows(count={count}))
"""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    env = {**surroundings(), "XLA_FLAGS": flags}
    given = [sys.executable, "-c", program]
    ended = subprocess.run(given, capture_output=True, text=True, env=env, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return read_all(out), ended.stdout.split()
