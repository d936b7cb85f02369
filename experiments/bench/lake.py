"""Boards a second that the lake draws, solves and verifies on this machine.

lakewright bench --json

Every case is a board size and a number of agents. Its boards have starts, goals and holes anywhere, solvable or not.
Rates are medians of several calls; compile time is separate.
"""

import dataclasses
import functools
import platform
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.generator import draw_free, generate
from lakewright.core_jax.lake import EnvParams, reset, step, verify
from lakewright.core_jax.solver import SolverStage, solve, solve_by_flood, solve_with_stages
from lakewright.core_jax.support import cores, seconds_by_phase
from lakewright.core_jax.types import CERTIFICATE_NAMES, Board, Labels, Status
from lakewright.experiments.bench import measurement
from lakewright.experiments.bench.measurement import Bench, Measurement, Profile, time_call

CASES = ((5, 2), (8, 2), (10, 2), (8, 3), (10, 3), (8, 4), (10, 5))  # size, agents
HOLE_RATIO = 0.3
BOARDS = {2: 16384, 3: 8192, 4: 4096, 5: 1024}  # enough that a call can be timed
DRAWN = {2: 8192, 3: 8192, 4: 4096, 5: 2048}
WAIT_RATIOS = {2: (0.0, 0.75), 3: (0.5,), 4: (0.5,), 5: (0.5,)}
PLANS = 1 << 18
ENVIRONMENTS, STEPS = 4096, 64
STEP_LIMIT = 50


@dataclasses.dataclass(frozen=True)
class BenchCase:
    """Random boards of one size and number of agents, with our labels."""

    size: int
    agents: int
    boards: Board
    labels: Labels


def measure_rates(only: int | None = None, on_progress: Callable[[], object] = lambda: None) -> Bench:
    """Runs every benchmark: generate, solve and verify, and where the time of the solver goes.

    only: boards with this number of agents, or None for all.
    """
    found: list[Measurement] = []
    profiles: list[Profile] = []
    for size, agents in list_cases(only):
        case, solved = measure_solver(size, agents)
        profiles.append(_profile_solver(case))
        found += [solved, *_measure_generator(size, agents)]
        if agents == 2:
            found += [_measure_floods(case), *measure_simulator(case.boards, case.labels)]
        on_progress()
    return Bench(describe_machine(), found, profiles)


def list_cases(only: int | None = None) -> list[tuple[int, int]]:
    """The sizes and numbers of agents that are measured, or those with `only` agents."""
    return [(size, agents) for size, agents in CASES if agents == (only or agents)]


def random_boards(size: int, agents: int, count: int) -> Board:
    """Boards with starts, goals and holes anywhere, at HOLE_RATIO: numpy arrays, the same ones each time."""
    return draw_free(size, agents, holes_of(size, agents, HOLE_RATIO), seed=0, first=0, count=count)


def measure_solver(size: int, agents: int) -> tuple[BenchCase, Measurement]:
    """Random boards with their labels, and the rate at which they get these."""
    boards = random_boards(size, agents, BOARDS[agents])
    on_device = jax.tree.map(jnp.asarray, boards)
    measured, solved = time_call("solve", size, agents, BOARDS[agents], lambda seed: solve_with_stages(on_device))
    labels = solved.labels
    kinds = np.bincount(np.asarray(labels.certificate), minlength=len(CERTIFICATE_NAMES))
    stages = {stage.name.lower().replace("_", " "): int((solved.stage == stage).sum()) for stage in SolverStage}
    return BenchCase(size, agents, boards, labels), msgspec.structs.replace(
        measured,
        undecided=float(np.mean(np.asarray(labels.status) == Status.UNDECIDED)),
        certificates={name: int(count) for name, count in zip(CERTIFICATE_NAMES, kinds, strict=True) if count},
        stages={name: count for name, count in stages.items() if count},
    )


def _profile_solver(case: BenchCase) -> Profile:
    """The profiles of as many calls as the rate is a median of; their programs are compiled by now."""
    on_device = jax.tree.map(jnp.asarray, case.boards)
    seconds = seconds_by_phase(lambda: [solve(on_device) for _ in range(measurement.REPEATS)])
    return Profile(case.size, case.agents, {phase: total / measurement.REPEATS for phase, total in seconds.items()})


def _measure_floods(case: BenchCase) -> Measurement:
    on_device = jax.tree.map(jnp.asarray, case.boards)
    count = len(case.boards.starts)
    return time_call("floods alone", case.size, case.agents, count, lambda seed: solve_by_flood(on_device))[0]


def _measure_generator(size: int, agents: int) -> Iterator[Measurement]:
    count = DRAWN[agents]
    for wait_ratio in WAIT_RATIOS[agents]:
        draw = functools.partial(generate, EnvConfig.single(size, agents, HOLE_RATIO, wait_ratio), count=count)
        yield time_call(f"generate, wait ratio {wait_ratio:g}", size, agents, count, draw)[0]


def describe_machine() -> dict[str, Any]:
    """The conditions of the rates: the processor, its cores, JAX's device, and the versions of packages."""
    device = jax.devices()[0]
    return {
        "processor": _read_processor(),
        "cores": cores(),
        "device": device.device_kind,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _read_processor() -> str:
    """The processor's name as Linux gives it, else as Python does."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def measure_simulator(boards: Board, labels: Labels) -> Iterator[Measurement]:
    """Two questions about two-agent boards of one size, with leading axis B, and their labels.

    verify: numpy plans a second, the boards and their plans from the labels repeated up to PLANS. environment: joint
    moves a second of random play with automatic resets, observations made, in ENVIRONMENTS vmapped environments.
    """
    size, agents = boards.holes.shape[-1], boards.starts.shape[1]
    rows = np.arange(PLANS) % len(labels.status)
    many, plans = jax.tree.map(lambda field: np.asarray(field)[rows], (boards, labels.moves))
    yield time_call("verify", size, agents, PLANS, lambda seed: verify(many, plans), "plans")[0]
    solvable = np.flatnonzero(labels.solvable)
    pool = jax.tree.map(lambda field: jnp.asarray(np.asarray(field)[solvable]), boards)
    params = EnvParams(pool, STEP_LIMIT)

    def play(seed: int) -> None:
        jax.block_until_ready(random_play(jax.random.key(seed), params))

    yield time_call("environment", size, agents, ENVIRONMENTS * STEPS, play, "joint moves")[0]


@jax.jit
def random_play(key: jax.Array, params: EnvParams) -> tuple[jax.Array, jax.Array]:
    """The summed reward, and a sum over all observations that keeps the compiler from leaving them out."""
    reset_key, key = jax.random.split(key)
    _, state = jax.vmap(reset, (0, None))(jax.random.split(reset_key, ENVIRONMENTS), params)

    def one(state, key):
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, state.positions.shape[:2], 0, 5)
        keys = jax.random.split(step_key, ENVIRONMENTS)
        observation, state, reward, *_ = jax.vmap(step, (0, 0, 0, None))(keys, state, action, params)
        return state, (jnp.sum(reward), jnp.sum(observation.planes))

    rewards, seen = jax.lax.scan(one, state, jax.random.split(key, STEPS))[1]
    return jnp.sum(rewards), jnp.sum(seen)
