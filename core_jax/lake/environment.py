"""The lake as an environment for reinforcement learning, in the form of gymnax: pure functions on states.

    observation, state = reset(key, params)
    observation, state, reward, done, info = step(key, state, action, params)

An action is one joint move, an integer for each agent. An episode terminates when a rule is broken or all agents are
home, and is truncated at a step limit. The reward is the team's, as on the original FrozenLake: 1 for the step that
brings all agents home, 0 for every other. Everything takes one environment and can be vmapped, scanned and compiled,
also if flags of JAX refuse or change what is not stated: all types and shapes are.
"""

from typing import Any, TypeAlias

import chex
import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake import dynamics
from lakewright.core_jax.support.jax_settings import check_process
from lakewright.core_jax.support.random_keys import draw_below
from lakewright.core_jax.types import Board, Failure

Info: TypeAlias = dict[str, Any]  # arrays, and the observation an episode ended with


@flax.struct.dataclass
class EnvParams:
    """The parameters of episodes. pool: boards of one size with leading axis P. step_limit: int32 []."""

    pool: Board
    step_limit: jax.Array | int


@flax.struct.dataclass
class EnvState:
    """board: one `Board`. positions: int32 [K, 2]. time: int32 [], joint moves so far. done: bool []."""

    board: Board
    positions: jax.Array
    time: jax.Array
    done: jax.Array


@flax.struct.dataclass
class BoardObservation:
    """The observation of all agents.

    planes: bool [n, n, 1 + 2K], the holes, then where each agent is, then where each agent's goal is. positions, goals:
    int32 [K, 2], the same as (row, column). time: int32 [].
    """

    planes: jax.Array
    positions: jax.Array
    goals: jax.Array
    time: jax.Array


def reset(key: jax.Array, params: EnvParams) -> tuple[BoardObservation, EnvState]:
    """An episode on a board drawn uniformly from the pool. The key is consumed."""
    check_process()
    chosen = draw_below(key, params.pool.holes.shape[0])
    return reset_to(jax.tree.map(lambda field: field[chosen], params.pool))


def reset_to(board: Board) -> tuple[BoardObservation, EnvState]:
    """An episode on this board."""
    check_process()
    chex.assert_rank([board.holes, board.starts, board.goals], 2)
    positions = jnp.asarray(board.starts, jnp.int32)
    state = EnvState(board, positions, time=jnp.int32(0), done=jnp.array(False))
    return observe(state), state


def step(
    key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
) -> tuple[BoardObservation, EnvState, jax.Array, jax.Array, Info]:
    """`step_env`; if that ends the episode, the next one begins on a board of the pool.

    Observation and state are then the next episode's; `info["final_observation"]` is this one's last.

    Args:
        key: a random key, which is consumed.
        state, action, params: see `step_env`.
    """
    last, ended, reward, done, info = step_env(state, action, params)
    # Both are computed and one is taken, as compiled code has no branches by element.
    following = reset(key, params)
    observation, state = jax.tree.map(lambda new, old: jnp.where(done, new, old), following, (last, ended))
    return observation, state, reward, done, info | {"final_observation": last}


def step_env(
    state: EnvState, action: jax.Array, params: EnvParams
) -> tuple[BoardObservation, EnvState, jax.Array, jax.Array, Info]:
    """One joint move; it takes no key because moves are deterministic.

    Args: action, integers [K], places in `MOVES`; PAD stays, and any other number is an illegal move.
    Returns: observation; state; reward float32 [], 1 if this step brought all agents home; done bool []; info:
    `failure` int32 [], the `Failure` of this step, upon which no agent moves; `agent` int32 [], the first concerned, or
    -1; `at_goal` bool [K]; `terminated` and `truncated` bool []; `discount` float32 [], 0 if terminated, else 1. A
    state that is done does not change, and earns no reward.
    """
    check_process()
    chex.assert_shape(action, state.positions.shape[:1])
    chex.assert_type(action, int)
    moved, failure, agent = dynamics.step(state.board.holes, state.positions, action.astype(jnp.int32))
    # An episode that is over stays as it is, whatever the action.
    failure = jnp.where(state.done, Failure.NONE, failure)
    legal = ~state.done & (failure == Failure.NONE)
    positions = jnp.where(legal, moved, state.positions)
    at_goal = jnp.all(positions == state.board.goals, axis=-1)
    solved = legal & jnp.all(at_goal)
    terminated = solved | (failure != Failure.NONE)
    time = state.time + (~state.done).astype(jnp.int32)
    truncated = ~state.done & ~terminated & (time >= params.step_limit)
    done = state.done | terminated | truncated
    state = EnvState(state.board, positions, time, done)
    info = {
        "failure": failure,
        "agent": jnp.where(failure == Failure.NONE, -1, agent),
        "at_goal": at_goal,
        "terminated": terminated,
        "truncated": truncated,
        "discount": 1 - terminated.astype(jnp.float32),
    }
    return observe(state), state, solved.astype(jnp.float32), done, info


def observe(state: EnvState) -> BoardObservation:
    """The observation of a state."""
    board = state.board
    cells = jnp.concatenate([state.positions, board.goals])
    lines = jnp.arange(board.holes.shape[0], dtype=jnp.int32)
    rows, columns = cells.T[:, None, None]
    marks = (lines[:, None, None] == rows) & (lines[None, :, None] == columns)  # [n, n, 2K]
    planes = jnp.concatenate([board.holes[..., None], marks], axis=-1)
    return BoardObservation(planes, state.positions, board.goals, state.time)
