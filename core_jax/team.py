"""A team of agents on one board as a search sees it, and batches of teams."""

import functools
import itertools
from collections.abc import Sequence
from typing import TypeVar

import flax.struct
import jax
import numpy as np

FAR = 255  # in tables of bytes: no way. Larger costs are kept as FAR - 1, which is still a lower bound.
T = TypeVar("T")


@flax.struct.dataclass
class Team:
    """What is known of one board before its search; costs are bytes, FAR where there is no way.

    absent: bool [K], agents that take no part. starts, goals: int32 [K], padded cells. distance: uint8 [K, N] to the
    own goal. alone: uint8 [K, K, N], alone[i, j] the distance of agent i while j stands on its goal. pairs: uint8
    [3, P, N, N], for each `Mode` and pair of agents (i < j, in the order of `itertools.combinations`) a lower bound of
    what the two need from a joint state.
    """

    absent: jax.Array
    starts: jax.Array
    goals: jax.Array
    distance: jax.Array
    alone: jax.Array
    pairs: jax.Array


@functools.cache
def pairs_of(agents: int) -> np.ndarray:
    """Every pair of agents: int [P, 2]."""
    return np.array(list(itertools.combinations(range(agents), 2)), int).reshape(-1, 2)


@functools.cache
def pair_index(agents: int) -> dict[tuple[int, int], int]:
    """The place of each pair in `pairs_of`."""
    return {(int(first), int(second)): place for place, (first, second) in enumerate(pairs_of(agents))}


def rows_of(batch: T, rows: np.ndarray) -> T:
    """Some rows of a batch, as numpy arrays."""
    return jax.tree.map(lambda field: np.asarray(field)[rows], batch)


def joined(parts: list[T]) -> T:
    """One batch from several of the same shapes."""
    return jax.tree.map(lambda *fields: np.concatenate(fields), *parts)


def without(team: Team, agents: Sequence[int]) -> Team:
    """B teams in which some agents are absent: they are nowhere, in nobody's way, and cost nothing.

    The arrays keep their shapes, so that one program serves a team and all its parts.
    """
    absent = team.absent.copy()
    starts, goals, distance, alone, pairs = (
        field.copy() for field in (team.starts, team.goals, team.distance, team.alone, team.pairs)
    )
    nowhere = distance.shape[-1] - 1  # the last cell of the added column: never free
    for agent in agents:
        absent[:, agent] = True
        starts[:, agent] = goals[:, agent] = nowhere
        distance[:, agent], alone[:, agent] = FAR, 0
        distance[:, agent, nowhere] = 0
    for agent in agents:
        alone[:, :, agent] = distance
        for place, (first, second) in enumerate(pairs_of(absent.shape[1])):
            if first == agent:
                pairs[:, :, place] = distance[:, None, second, None, :]
            elif second == agent:
                pairs[:, :, place] = distance[:, None, first, :, None]
    return Team(absent, starts, goals, distance, alone, pairs)


def reordered(team: Team, order: np.ndarray) -> Team:
    """B teams with their agents in another order."""
    place = pair_index(len(order))
    pairs = [
        team.pairs[:, :, place[first, second]]
        if first < second
        else np.swapaxes(team.pairs[:, :, place[second, first]], -1, -2)
        for first, second in order[pairs_of(len(order))].tolist()
    ]
    return Team(
        absent=team.absent[:, order],
        starts=team.starts[:, order],
        goals=team.goals[:, order],
        distance=team.distance[:, order],
        alone=team.alone[:, order][:, :, order],
        pairs=np.stack(pairs, axis=2),  # type: ignore[arg-type]
    )
