"""Joint moves per second in the Gymnasium environments and in POGEMA: random play with resets.

python -m tests.campaigns environments --pogema PYTHON

PYTHON is that of an environment with POGEMA, whose versions clash with ours. All take turns in one run.
"""

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import cores
from lakewright.experiments.bench.lake import HOLE_RATIO, describe_machine
from lakewright.experiments.bench.measurement import Bench, Measurement

LAKE = "lakewright.experiments.boards.gym:lakewright/Lake-v0"  # from the room that registers it
SIZE, AGENTS = 8, 4
STEPS = 64  # of an episode
AT_ONCE = (1, 64, 1024, 4096)
ROUNDS, SECONDS = 5, 2.0
SCRIPT = Path(__file__).with_name("pogema_play.py")
Play = Callable[[], float]


class PogemaRate(msgspec.Struct, frozen=True):
    """The answer of POGEMA's own process."""

    version: str
    rate: float


def measure_rates(pogema: Path | None = None) -> Bench:
    """Each plays for SECONDS in turn, ROUNDS times. Raises InputError if POGEMA cannot be run."""
    peers: dict[str, Play] = {}
    if pogema is not None:
        version = _run_pogema(pogema, 1)[0].version  # which says what is wrong before anything is measured
        peers = {f"POGEMA {version}, {count} at once": _prepare_pogema(pogema, count) for count in sorted({1, cores()})}
    ours: dict[str, Play] = {f"make_vec, {count} at once": _prepare_lake(count) for count in AT_ONCE}
    players = ours | peers
    rates: dict[str, list[float]] = {name: [] for name in players}
    for _ in range(ROUNDS):
        for name, play in players.items():
            rates[name].append(play())
    fastest = max((statistics.median(rates[name]) for name in peers), default=None)
    found = [_make_measurement(name, rates[name], fastest if name in ours else None) for name in players]
    return Bench(describe_machine(), found)


def _prepare_lake(count: int) -> Play:
    """Random play in a number of environments; compiled, and at once in the middle of their episodes."""
    kind: dict[str, Any] = {"size": SIZE, "agents": AGENTS, "hole_ratio": HOLE_RATIO, "step_limit": STEPS}
    env = gymnasium.make_vec(LAKE, num_envs=count, **kind)
    env.reset(seed=0)
    chance = np.random.default_rng(0)

    def play() -> float:
        moves, begun = 0, time.perf_counter()
        while (passed := time.perf_counter() - begun) < SECONDS:
            env.step(chance.integers(5, size=(count, AGENTS)))
            moves += count
        return moves / passed

    env.step(chance.integers(5, size=(count, AGENTS)))
    return play


def _prepare_pogema(python: Path, count: int) -> Play:
    return lambda: sum(found.rate for found in _run_pogema(python, count))


def _run_pogema(python: Path, count: int) -> list[PogemaRate]:
    """The rates of several processes at the same time, each with one environment, which is how POGEMA is vectorised."""
    words = [str(python), str(SCRIPT), *map(str, (SIZE, AGENTS, STEPS, SECONDS))]
    try:
        started = [
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(count)
        ]
    except OSError as error:
        raise InputError(f"--pogema is {python}, which cannot be run ({error.strerror}); give a Python") from error
    said = [process.communicate() for process in started]
    for process, (_, problem) in zip(started, said, strict=True):
        if process.returncode:
            last = problem.strip().splitlines()[-1:] or ["no message"]
            raise InputError(f"--pogema {python}: {last[0]:.200}; pip install pogema there")
    return [msgspec.convert(json.loads(out), PogemaRate) for out, _ in said]


def _make_measurement(name: str, rates: list[float], fastest: float | None) -> Measurement:
    rate = statistics.median(rates)
    return Measurement(
        work="random play",
        size=SIZE,
        agents=AGENTS,
        solver=name,
        what="joint moves",
        rate=rate,
        rates=rates,
        times_fastest_peer=rate / fastest if fastest else None,
    )
