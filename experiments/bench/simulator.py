"""How many plans a second the simulator judges, and how many joint moves a second the environment makes."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core_jax.environment import EnvParams, reset, step
from core_jax.solver import solve
from core_jax.types import Board
from core_jax.verification import verify
from experiments.bench.lake import REPEATS, Measurement

PLANS = 1 << 18
ENVIRONMENTS, STEPS = 4096, 64
STEP_LIMIT = 50


def simulator(boards: Board) -> Iterator[Measurement]:
    """Two questions about random two-agent boards of one size, with leading axis B.

    verify: numpy plans a second, the boards and their plans from `solve` repeated up to PLANS. environment: joint moves
    a second of random play with automatic resets, observations made, in ENVIRONMENTS vmapped environments.
    """
    labels = solve(boards)
    rows = np.arange(PLANS) % len(labels.status)
    many, plans = jax.tree.map(lambda field: np.asarray(field)[rows], (boards, labels.moves))
    yield _measure("verify", boards, PLANS, lambda seed: verify(many, plans))
    solvable = np.flatnonzero(labels.solvable)
    pool = jax.tree.map(lambda field: jnp.asarray(np.asarray(field)[solvable]), boards)
    params = EnvParams(pool, STEP_LIMIT)

    def play(seed: int) -> None:
        jax.block_until_ready(random_play(jax.random.key(seed), params))

    yield _measure("environment", boards, ENVIRONMENTS * STEPS, play)


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


def _measure(work: str, boards: Board, count: int, call: Callable[[int], Any]) -> Measurement:
    first, *later = [_seconds(call, seed) for seed in range(REPEATS + 1)]
    rates = [count / seconds for seconds in later]
    size, agents = boards.holes.shape[-1], boards.starts.shape[1]
    compile_seconds = max(first - statistics.median(later), 0.0)
    return Measurement(work, size, agents, count, statistics.median(rates), rates, compile_seconds)


def _seconds(call: Callable[[int], Any], seed: int) -> float:
    begun = time.perf_counter()
    call(seed)
    return time.perf_counter() - begun
