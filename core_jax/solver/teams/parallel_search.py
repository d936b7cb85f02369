"""A short look at many teams: their searches side by side, each for a few steps."""

import dataclasses
import functools
from collections.abc import Sequence

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from core_jax.lake import pad_moves, trimmed
from core_jax.solver.teams.search import BIG, PARK, Found, Mode, Search, advance, begin
from core_jax.solver.teams.team import Team, rows_of
from core_jax.support import in_phase, on_all_cores
from core_jax.types import PAD

LANES = 32  # searches side by side
LOOK = 40  # steps for each agent
MEMORY = 1 << 9  # failed states that a search remembers


@flax.struct.dataclass
class Optimum:
    """What is known of one objective on B boards, numpy arrays.

    found: bool [B], a plan reaches `bound`, int32 [B], a lower bound of the optimum (BIG: there is no plan). waits:
    bool [B], no plan without waits does. moves: int8 [B, K, T], where found.
    """

    found: np.ndarray
    bound: np.ndarray
    waits: np.ndarray
    moves: np.ndarray


def look(team: Team, objective: Mode, lower: np.ndarray) -> Optimum:
    """A search of LOOK steps an agent for each of B teams.

    team: numpy arrays. lower: int32 [B], lower bounds of the optimum (BIG: nothing to look for).
    """
    known = unknown(lower, team.goals.shape[1])
    rows = np.flatnonzero(lower < BIG)
    if not len(rows):
        return known

    def of_group(first: int) -> Optimum:
        places = np.arange(first, first + LANES)
        group = rows[np.minimum(places, len(rows) - 1)]
        bound = np.where(places < len(rows), lower[group], BIG)
        return _read(_run(rows_of(team, group), int(objective), bound), np.arange(min(LANES, len(rows) - first)))

    phase = f"looks for {objective.name.lower()}"
    groups = on_all_cores(lambda first: in_phase(phase, of_group, first), range(0, len(rows), LANES))
    return replaced(known, rows, stacked(groups))


def replaced(known: Optimum, rows: np.ndarray, better: Optimum) -> Optimum:
    """`known` with `better` in some rows; plans are padded to one length."""
    horizon = max(known.moves.shape[-1], better.moves.shape[-1])
    fields = []
    for old, new in zip(_fields(known), _fields(better), strict=True):
        if old.ndim == 3:
            old, new = pad_moves(old, horizon), pad_moves(new, horizon)
        old = old.copy()
        old[rows] = new
        fields.append(old)
    return Optimum(*fields)


def stacked(parts: Sequence[Optimum]) -> Optimum:
    """One batch of several; plans are padded to one length."""
    horizon = max(part.moves.shape[-1] for part in parts)
    padded = [dataclasses.replace(part, moves=pad_moves(part.moves, horizon)) for part in parts]
    return Optimum(*map(np.concatenate, zip(*map(_fields, padded), strict=True)))


def unknown(lower: np.ndarray, agents: int) -> Optimum:
    """Nothing but bounds."""
    no = np.zeros(len(lower), bool)
    return Optimum(no, lower, no, np.zeros((len(lower), agents, 0), np.int8))


@jax.jit
def _run(team: Team, objective: jax.Array, bound: jax.Array) -> Search:
    """Searches until all have ended or made LOOK steps an agent; no plan found in these has more than LOOK steps."""
    steps = LOOK * team.goals.shape[1]
    start = jax.vmap(functools.partial(begin, LOOK, MEMORY), in_axes=(0, None, 0))
    forward = jax.vmap(advance)

    def going(carry):
        step, searches = carry
        return (step < steps) & jnp.any(searches.found == Found.SEARCHING)

    first = (jnp.int32(0), start(team, objective, bound))
    return jax.lax.while_loop(going, lambda carry: (carry[0] + 1, forward(team, carry[1])), first)[1]


def _read(searches: Search, lanes: np.ndarray) -> Optimum:
    found = np.asarray(searches.found)[lanes] == Found.PLAN
    choice, time = np.asarray(searches.choice)[lanes], np.asarray(searches.time)[lanes]
    moves = np.moveaxis(choice, 1, 2).copy()
    steps = np.arange(moves.shape[-1])
    moves[(moves == PARK) | (steps >= time[:, None, None]) | ~found[:, None, None]] = PAD
    waits = np.asarray(searches.mode)[lanes] == Mode.COSTS
    return Optimum(found, np.asarray(searches.bound)[lanes], waits, trimmed(moves))


def _fields(optimum: Optimum) -> list[np.ndarray]:
    return [getattr(optimum, field.name) for field in dataclasses.fields(optimum)]
