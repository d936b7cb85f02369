"""Running searches side by side: a short look at many teams, a long look at one."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from core_jax.bitboards import side
from core_jax.parallel import on_all_cores
from core_jax.plans import pad_moves, trimmed
from core_jax.search import BIG, PARK, Found, Mode, Search, advance, begin
from core_jax.team import Team, joined, reordered, rows_of
from core_jax.types import PAD

LANES, HARD_LANES = 32, 8  # searches side by side, in the first look and later
LOOKS = (40, 256, 1024)  # steps for each agent, of the first, second and third look at a board
MEMORY, HARD_MEMORY = 1 << 9, 1 << 14  # failed states that a search remembers


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


def look(team: Team, objective: Mode, lower: np.ndarray, moving: np.ndarray, looks: Sequence[int]) -> Optimum:
    """A search for each of B teams; what is not found in so many steps is tried again in more.

    team: numpy arrays. lower, moving: int32 [B], lower bounds of the optimum (BIG: nothing to look for), and of the sum
    of costs without waits. looks: the steps for each agent, of one look after the other.
    """
    known = unknown(lower, team.goals.shape[1])
    for steps in looks:
        rows = np.flatnonzero(~known.found & (lower < BIG))
        if len(rows):
            lanes, memory = (LANES, MEMORY) if steps == LOOKS[0] else (HARD_LANES, HARD_MEMORY)
            once = functools.partial(_side_by_side, lanes, memory, steps * team.goals.shape[1], objective)
            known = replaced(known, rows, once(rows_of(team, rows), known.bound[rows], moving[rows]))
    return known


def _side_by_side(
    lanes: int, memory: int, steps: int, objective: Mode, team: Team, lower: np.ndarray, moving: np.ndarray
) -> Optimum:
    count = len(lower)

    def of_group(first: int) -> Optimum:
        places = np.arange(first, first + lanes)
        group = np.minimum(places, count - 1)
        bound = np.where(places < count, lower[group], BIG)
        found = _run(memory, rows_of(team, group), int(objective), bound, moving[group], np.int32(steps), False)
        return _read(found, np.arange(min(lanes, count - first)))

    return _stacked(on_all_cores(of_group, range(0, count, lanes)))


def long_look(team: Team, objective: Mode, lower: np.ndarray, moving: np.ndarray, budget: int) -> Optimum:
    """A search of at most `budget` steps for each of B teams, in several orders of its agents at once.

    The first plan counts: depth-first searches that differ in their order end early or late by chance (Gomes & Selman
    2001). Three agents, whose optima are known to exist, are searched until they are found, or no plan fits
    the horizon.
    """
    orders = _orders(team.goals.shape[1])

    def of_team(row: int) -> Optimum:
        one = rows_of(team, np.full(1, row))
        variants = joined([reordered(one, order) for order in orders])
        bound, steps = np.full(len(orders), lower[row]), budget
        while True:
            unwaiting = np.full_like(bound, moving[row])
            found = _run(HARD_MEMORY, variants, int(objective), bound, unwaiting, np.int32(steps), True)
            bound = np.full_like(bound, np.max(found.bound))  # what one order has ruled out, no other can find
            best = int(np.argmax(np.asarray(found.found) == Found.PLAN))
            answer = _read(found, np.array([best]))
            ended = not np.any(np.asarray(found.found) == Found.SEARCHING)  # found, or cut at the horizon
            if answer.found[0] or ended or len(orders[0]) > 3:
                break
            steps *= 4
        back = np.argsort(orders[best])
        bound = np.where(answer.found, answer.bound, bound[:1])
        return dataclasses.replace(answer, moves=answer.moves[:, back], bound=bound)

    return _stacked(on_all_cores(of_team, range(len(lower))))


def unknown(lower: np.ndarray, agents: int) -> Optimum:
    """Nothing but bounds."""
    no = np.zeros(len(lower), bool)
    return Optimum(no, lower, no, np.zeros((len(lower), agents, 0), np.int8))


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


def _orders(agents: int) -> np.ndarray:
    """HARD_LANES orders of the agents, different as long as there are so many."""
    every = np.array(list(itertools.permutations(range(agents))))
    return every[np.linspace(0, len(every) - 1, HARD_LANES).astype(int)]


@functools.partial(jax.jit, static_argnums=0)
def _run(memory, team, objective, bound, moving, steps, together) -> Search:
    """Searches until all have ended (any has, if `together`) or made so many steps."""
    horizon = max(64, 16 * side(team.distance.shape[-1]))
    start = jax.vmap(functools.partial(begin, horizon, memory), in_axes=(0, None, 0, 0))
    forward = jax.vmap(advance)

    def going(carry):
        step, searches = carry
        ended = together & jnp.any(searches.found == Found.PLAN)
        return (step < steps) & jnp.any(searches.found == Found.SEARCHING) & ~ended

    first = (jnp.int32(0), start(team, objective, bound, moving))
    return jax.lax.while_loop(going, lambda carry: (carry[0] + 1, forward(team, carry[1])), first)[1]


def _read(searches: Search, lanes: np.ndarray) -> Optimum:
    found = np.asarray(searches.found)[lanes] == Found.PLAN
    choice, time = np.asarray(searches.choice)[lanes], np.asarray(searches.time)[lanes]
    moves = np.moveaxis(choice, 1, 2).copy()
    steps = np.arange(moves.shape[-1])
    moves[(moves == PARK) | (steps >= time[:, None, None]) | ~found[:, None, None]] = PAD
    waits = np.asarray(searches.mode)[lanes] == Mode.COSTS
    return Optimum(found, np.asarray(searches.bound)[lanes], waits, trimmed(moves))


def _stacked(parts: Sequence[Optimum]) -> Optimum:
    horizon = max(part.moves.shape[-1] for part in parts)
    padded = [dataclasses.replace(part, moves=pad_moves(part.moves, horizon)) for part in parts]
    return Optimum(*map(np.concatenate, zip(*map(_fields, padded), strict=True)))


def _fields(optimum: Optimum) -> list[np.ndarray]:
    return [getattr(optimum, field.name) for field in dataclasses.fields(optimum)]
