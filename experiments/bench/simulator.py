"""Plans a second that the simulator judges, and joint moves a second that the environment makes."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.lake import EnvParams, reset, step, verify
from lakewright.core_jax.types import Board, Labels
from lakewright.experiments.bench.measurement import Measurement
from lakewright.experiments.bench.timing import time_call

PLANS = 1 << 18
ENVIRONMENTS, STEPS = 4096, 64
STEP_LIMIT = 50


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
