"""Floods of all joint states of two agents, backward from the goals, on bitboards.

One flood labels every pair of starts of a map at once, 32 maps to a word, W words at once. A joint state is a pair of
padded cells, agent A first. All sets of states exclude holes and the diagonal, where the agents would meet.
"""

import functools
import math
from collections.abc import Callable
from typing import TypeVar

import chex
import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake import BOARDS_PER_WORD, one_hots, pack
from lakewright.core_jax.solver.two_agents.joint_layout import Front, Layout, advanced, legal_states, predecessors
from lakewright.core_jax.solver.two_agents.lone_floods import neighbours, single_floods
from lakewright.core_jax.solver.two_agents.numbered_layers import Layers, numbered

T = TypeVar("T")


@flax.struct.dataclass
class CostTable:
    """The optima from every joint state of 32 maps with fixed goals.

    cost: uint32 [bits, N, N], the optimal sum of costs in binary, bit by bit; meaningful where `reached`.
    reached: uint32 [N, N], from where the goals can be reached. wait: uint32 [N, N], where reached, whether every
    optimal plan waits before its final arrivals. solo: uint32 [2, bits, N], the distance of A (B) to its goal while
    the other is parked on its own; solo_reached: uint32 [2, N]. goals: int32 [2, 32]. complete: bool [], False if
    the flood ended before its fixed point: then only what was asked for is `reached`.
    """

    cost: jax.Array
    reached: jax.Array
    wait: jax.Array
    solo: jax.Array
    solo_reached: jax.Array
    goals: jax.Array
    complete: jax.Array


@flax.struct.dataclass
class CostLayers(Layers):
    """Layers of the flood of sums of costs.

    unwaiting: the states of the last two layers from which an optimal plan never waits; unforced: uint32 [W, N * row],
    all such states so far. parked: the states from which one agent walks while the other is parked for good, in the
    next three layers: uint32 [3, W, N, row], less what is reached. solo: uint32 [2, W, 2, N], the cells from which
    A (B) gets home alone, two layers further still.
    """

    unwaiting: Front
    unforced: jax.Array
    parked: tuple[jax.Array, jax.Array, jax.Array]
    solo: tuple[jax.Array, jax.Array]


def cost_bits(size: int) -> int:
    """Bits that hold any sum of costs seen on n x n boards; `CostTable.complete` says whether one was larger."""
    return (4 * size * size).bit_length()


def words_at_once() -> int:
    """How many words are flooded side by side: a CPU is busy with one, an accelerator needs many."""
    return 1 if jax.default_backend() == "cpu" else 16


def cost_floods(size: int, free: jax.Array, goals: jax.Array, starts: jax.Array | None = None) -> CostTable:
    """Labels every pair of starts with its optimal sum of costs and whether an optimal plan must wait.

    Args: size n; free uint32 [W, N]; goals int32 [W, 2, 32], padded cells; starts like goals, or None: with starts, it
    ends as soon as all of them are reached. Returns: tables with a leading axis W.

    In layers of cost c: R_c = R_{c-1} | parked_c | pre(R_{c-2}), since a joint step costs 2 until one agent is parked
    for good; parked_c are the states where that has happened, (gA, b) at the cost d_B(b) with gA blocked, and the
    mirror. A plan without waits comes from a `pre` in which both must move. Then both change the colour of their
    cells, as on a chess board, so such states of an odd cost and of an even cost never mix: one step serves two layers.
    """
    words, count = free.shape
    chex.assert_shape(goals, (words, 2, BOARDS_PER_WORD))
    home = one_hots(goals, count)
    # A walks while B is parked, and the other way round.
    solo_free = free[:, None] & ~home[:, ::-1]
    solo, solo_reached = single_floods(size, solo_free.reshape(-1, count), home.reshape(-1, count), cost_bits(size))
    joint = _in_groups(functools.partial(_cost_floods, Layout(size)), free, goals, home, solo_free, starts)
    return CostTable(
        cost=joint[0],
        reached=joint[1],
        wait=joint[2],
        solo=jnp.moveaxis(solo.reshape(-1, words, 2, count), 0, 2),
        solo_reached=solo_reached.reshape(words, 2, count),
        goals=goals,
        complete=joint[3],
    )


def _cost_floods(
    layout: Layout, free: jax.Array, goals: jax.Array, home: jax.Array, solo_free: jax.Array, starts: jax.Array | None
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """`cost`, `reached`, `wait` and `complete` of W words flooded side by side.

    Further args: home uint32 [W, 2, N], the goals; solo_free alike, where each agent may walk while the other is home.
    """
    words = free.shape[0]
    home_a, home_b = layout.of_a(home[:, 0]), layout.of_b(home[:, 1])
    legal, odd = legal_states(layout, free), _odd(layout, goals)

    def grown(solo: jax.Array) -> jax.Array:
        return solo | (neighbours(layout.size, solo) & solo_free)

    def parked(solo: jax.Array, beyond: Front) -> jax.Array:
        reached = layout.read(beyond.states).reshape(home_a.shape)
        return ((home_a & layout.of_b(solo[:, 1])) | (layout.of_a(solo[:, 0]) & home_b)) & ~reached

    def two_layers(flood: CostLayers) -> CostLayers:
        first, second, third = (states.reshape(words, -1) for states in flood.parked)
        before, early = predecessors(layout, flood.early, legal, waits=True)
        early = advanced(layout, early, (before | layout.read(flood.late.states) | first) & legal)
        before, late = predecessors(layout, flood.late, legal, waits=True)
        late = advanced(layout, late, (before | layout.read(early.states) | second) & legal)
        # The states of even cost in the layer of `late`, those of odd cost in the next.
        known = layout.read(early.states) | (layout.read(late.states) & odd)
        before, moving = predecessors(layout, flood.unwaiting, legal, waits=False)
        moving = advanced(layout, moving, (before | third) & legal & ~known)
        solo = grown(flood.solo[1])
        return CostLayers(
            early=early,
            late=late,
            unwaiting=moving,
            unforced=flood.unforced | layout.read(moving.states),
            parked=(parked(flood.solo[0], early), parked(flood.solo[1], late), parked(solo, moving)),
            solo=(solo, grown(solo)),
        )

    none = layout.empty(words)
    # A scan, so that each is computed once.
    at_home = home & solo_free
    _, later = jax.lax.scan(lambda solo, _: (grown(solo),) * 2, at_home, length=4)
    begin = advanced(layout, none, parked(at_home, none).reshape(words, -1) & legal)
    unwaiting = advanced(layout, none, parked(later[0], none).reshape(words, -1) & legal)
    flood = CostLayers(
        early=none,
        late=begin,
        unwaiting=unwaiting,
        unforced=layout.read(unwaiting.states),
        parked=(parked(later[0], begin), parked(later[1], begin), parked(later[2], begin)),
        solo=(later[2], later[3]),
    )
    flood, cost, complete = numbered(layout, two_layers, flood, cost_bits(layout.size), starts)
    reached = layout.read(flood.early.states)
    wait = layout.square(reached & ~flood.unforced)
    return cost, layout.square(reached), wait, jnp.broadcast_to(complete, (words,))


def makespan_floods(
    size: int, free: jax.Array, goals: jax.Array, starts: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """The optimal makespan of every joint state in binary, uint32 [W, bits, N, N], and the states reached [W, N, N].

    Args as for `cost_floods`. Waiting is legal, so the layers R_t = pre(R_{t-1}) only grow.
    """
    return _in_groups(functools.partial(_makespan_floods, Layout(size)), free, one_hots(goals, free.shape[1]), starts)


def _makespan_floods(
    layout: Layout, free: jax.Array, home: jax.Array, starts: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """`makespan_floods` of W words flooded side by side; home uint32 [W, 2, N], the goals."""
    legal = legal_states(layout, free)

    def two_layers(flood: Layers) -> Layers:
        before, late = predecessors(layout, flood.late, legal, waits=True)
        early = advanced(layout, flood.early, before & legal)
        before, early = predecessors(layout, early, legal, waits=True)
        return Layers(early, advanced(layout, late, before & legal))

    none = layout.empty(free.shape[0])
    begin = (layout.of_a(home[:, 0]) & layout.of_b(home[:, 1])).reshape(free.shape[0], -1) & legal
    flood = Layers(none, advanced(layout, none, begin))
    flood, arrival, _ = numbered(layout, two_layers, flood, cost_bits(layout.size), starts)
    return arrival, layout.square(layout.read(flood.early.states))


def _in_groups(function: Callable[..., T], *words: jax.Array | None) -> T:
    """`function` of W words, `words_at_once` of them at a time."""
    given = [word for word in words if word is not None]
    together = math.gcd(given[0].shape[0], words_at_once())
    groups = [word.reshape(-1, together, *word.shape[1:]) for word in given]

    def of_group(group: list[jax.Array]) -> T:
        return function(*group, *[None] * (len(words) - len(given)))

    found = jax.lax.map(of_group, groups)
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), found)


def _odd(layout: Layout, goals: jax.Array) -> jax.Array:
    """The states of which a plan without waits has an odd sum of costs: uint32 [W, N * row]."""
    cells = jnp.arange(layout.row)
    colour = (cells // (layout.size + 1) + cells % (layout.size + 1)) % 2
    at_goals = jnp.moveaxis(colour[goals[:, 0]] ^ colour[goals[:, 1]], 1, 0)
    at_states = -(colour[: layout.cells, None] ^ colour).astype(jnp.uint32).reshape(-1)
    return pack(at_goals.astype(bool))[:, None] ^ at_states
