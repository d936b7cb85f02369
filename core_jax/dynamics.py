"""The simulator: one joint step, and the verdict on a whole plan."""

import chex
import jax
import jax.numpy as jnp

from core_jax.types import DELTAS, JUMP, PAD, WAIT, Board, Failure, Verdict


def step(holes: jax.Array, positions: jax.Array, moves: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Moves every agent once.

    Args: holes bool [n, n]; positions int32 [K, 2]; moves int8 [K], codes of `MOVES`, JUMP or PAD.
    Returns: positions int32 [K, 2] after the step (agents off the board are clipped to it), the `Failure` int32 [] of
    the step, and the first agent int32 [] concerned (-1 if none). Following and rotating are allowed; meeting in a cell
    (vertex conflict) and exchanging cells (swap conflict) are not.
    """
    chex.assert_rank([holes, positions, moves], [2, 2, 1])
    size = holes.shape[0]
    deltas = jnp.array((*DELTAS, DELTAS[WAIT]), jnp.int32)  # JUMP goes nowhere: it fails before it matters
    target = positions + deltas[jnp.where(moves == PAD, WAIT, moves)]
    inside = jnp.all((target >= 0) & (target < size), axis=-1)
    target = jnp.clip(target, 0, size - 1)
    others = ~jnp.eye(positions.shape[0], dtype=bool)
    same_target = jnp.all(target[:, None] == target[None], axis=-1)
    takes_place_of = jnp.all(target[:, None] == positions[None], axis=-1)
    failing = jnp.stack(
        [
            ~inside | (moves == JUMP),
            holes[target[:, 0], target[:, 1]],
            jnp.any(same_target & others, axis=1),
            jnp.any(takes_place_of & takes_place_of.T & others, axis=1),
        ]
    )
    kinds = jnp.any(failing, axis=1)
    kind = jnp.argmax(kinds)
    failed = kinds[kind]
    failure = jnp.where(failed, Failure.ILLEGAL_MOVE + kind, Failure.NONE).astype(jnp.int32)
    agent = jnp.where(failed, jnp.argmax(failing[kind]), -1).astype(jnp.int32)
    return target, failure, agent


def verdict(board: Board, moves: jax.Array) -> Verdict:
    """Plays a whole plan from the starts: the first failure, or the plan's costs.

    Args: one board; moves int8 [K, T]. Returns: `Verdict`. Vmap over boards and plans together.
    """
    chex.assert_rank([board.holes, board.starts, moves], [2, 2, 2])
    chex.assert_equal_shape_prefix([board.starts, board.goals, moves], 1)

    def play(carry, joint_move):
        positions, arrivals, failure, agent, time = carry
        moved, new_failure, new_agent = step(board.holes, positions, joint_move)
        going = failure == Failure.NONE
        failure = jnp.where(going, new_failure, failure)
        agent = jnp.where(going, new_agent, agent)
        time = time + (failure == Failure.NONE)
        positions = jnp.where(failure == Failure.NONE, moved, positions)
        away = jnp.any(positions != board.goals, axis=-1)
        # An agent seen away from its goal at time t arrives at t + 1 at the earliest.
        arrivals = jnp.where(away, time + 1, arrivals)
        return (positions, arrivals, failure, agent, time), None

    away = jnp.any(board.starts != board.goals, axis=-1)
    start = (board.starts, away.astype(jnp.int32), jnp.int32(Failure.NONE), jnp.int32(-1), jnp.int32(0))
    (positions, arrivals, failure, agent, time), _ = jax.lax.scan(play, start, moves.T)

    at_goal = jnp.all(positions == board.goals, axis=-1)
    length = jnp.max(jnp.sum(moves != PAD, axis=1))
    short = (failure == Failure.NONE) & ~jnp.all(at_goal)
    agent = jnp.where(short, jnp.argmin(at_goal), agent).astype(jnp.int32)
    failed_at = jnp.where(short, length, jnp.where(failure == Failure.NONE, -1, time))
    failure = jnp.where(short, Failure.GOAL_NOT_REACHED, failure).astype(jnp.int32)
    valid = failure == Failure.NONE
    return Verdict(
        failure=failure,
        agent=agent,
        step=failed_at.astype(jnp.int32),
        makespan=jnp.where(valid, jnp.max(arrivals), -1),
        sum_of_costs=jnp.where(valid, jnp.sum(arrivals), -1),
        legal_steps=jnp.minimum(time, length),
        at_goal=at_goal,
    )
