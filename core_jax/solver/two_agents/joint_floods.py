"""Floods of all joint states of two agents, backward from the goals, on bitboards.

One flood labels every pair of starts of a map at once, 32 maps to a word, W words at once. A joint state is a pair of
padded cells, agent A first. All sets of states exclude holes and the diagonal, where the agents would meet.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TypeVar

import chex
import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake.bitboards import BOARDS_PER_WORD, one_hots, pack_bits
from lakewright.core_jax.solver.single_agent.distances import find_neighbours, flood_distances
from lakewright.core_jax.solver.two_agents.joint_layout import (
    Front,
    Layout,
    find_legal_states,
    find_predecessors,
    replace_states,
)
from lakewright.core_jax.solver.two_agents.numbered_layers import Layers, number_layers

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
class JointCostLayers(Layers):
    """Layers of the flood of sums of costs; with the even layer c these are, in the terms of `flood_costs`:

    no_wait_front: U_c and U_{c+1}. unforced: uint32 [W, N * row], all U so far. parked: uint32 [3, W, N, row], P_{c+1},
    P_{c+2} and P_{c+3}, less what is reached. solo: uint32 [2, W, 2, N], the cells from which A (B) gets home alone in
    c + 3 and in c + 4 moves.
    """

    no_wait_front: Front
    unforced: jax.Array
    parked: tuple[jax.Array, jax.Array, jax.Array]
    solo: tuple[jax.Array, jax.Array]


def cost_bits(size: int) -> int:
    """Bits that hold any sum of costs seen on n x n boards; `CostTable.complete` says whether one was larger."""
    return (4 * size * size).bit_length()


def words_at_once() -> int:
    """The number of words flooded side by side: a CPU is busy with one, an accelerator needs many."""
    return 1 if jax.default_backend() == "cpu" else 16


def flood_costs(size: int, free: jax.Array, goals: jax.Array, starts: jax.Array | None = None) -> CostTable:
    """Labels every pair of starts with its optimal sum of costs and whether an optimal plan must wait.

    Let pre(S) be the states from which a joint move leads into S, and P_c those in which one agent is parked for good
    on its goal and the other is at most c moves from its own, with the parked agent in its way. A joint move costs 2
    until one agent is parked, so the states of a cost of at most c are

        R_c = R_{c-1} | P_c | pre(R_{c-2})

    Let pre'(S) be the same for joint moves in which both agents move. The states of cost c from which an optimal plan
    never waits are

        U_c = (P_c | pre'(U_{c-2})) & ~R_{c-1}

    In such a plan both agents change the colour of their cells at every move, as on a chess board. So the colours of a
    state say whether its cost is even or odd: U_c and U_{c+1} share no state, and one front holds both.

    Args:
        size: n, the cells on a side of the boards.
        free: uint32 [W, N], bitboards of free cells.
        goals: int32 [W, 2, 32], padded cells.
        starts: as goals, or None; with starts, the flood ends as soon as all of them are reached.

    Returns: tables with a leading axis W.
    """
    words, count = free.shape
    chex.assert_shape(goals, (words, 2, BOARDS_PER_WORD))
    home = one_hots(goals, count)
    # A walks while B is parked, and the other way round.
    solo_free = free[:, None] & ~home[:, ::-1]
    solo, solo_reached = flood_distances(size, solo_free.reshape(-1, count), home.reshape(-1, count), cost_bits(size))
    joint = _map_groups(functools.partial(_flood_group_costs, Layout(size)), free, goals, home, solo_free, starts)
    return CostTable(
        cost=joint[0],
        reached=joint[1],
        wait=joint[2],
        solo=jnp.moveaxis(solo.reshape(-1, words, 2, count), 0, 2),
        solo_reached=solo_reached.reshape(words, 2, count),
        goals=goals,
        complete=joint[3],
    )


@dataclasses.dataclass(frozen=True)
class _CostFlood:
    """The steps of the flood of sums of costs on W words side by side, in the terms of `flood_costs`.

    layout: where the joint states lie. legal: uint32 [W, N * row], all legal states; odd: states of an odd cost without
    waits. home_a, home_b: uint32 [W, N, row], the states with A (B) on its goal. solo_free: uint32 [W, 2, N], where A
    (B) may walk while the other is parked.
    """

    layout: Layout
    legal: jax.Array
    odd: jax.Array
    home_a: jax.Array
    home_b: jax.Array
    solo_free: jax.Array

    def begin(self, home: jax.Array) -> JointCostLayers:
        """The layers R_0 and U_0, U_1; home: uint32 [W, 2, N], the goals."""
        words = home.shape[0]
        none = self.layout.make_empty(words)
        # The cells 1 to 4 moves from home; a scan, so that each is computed once.
        at_home = home & self.solo_free
        _, later = jax.lax.scan(lambda solo, _: (self.grow_solo(solo),) * 2, at_home, length=4)
        parked = self.join_parked(at_home, none).reshape(words, -1)  # P_0
        even_layer = replace_states(self.layout, none, parked & self.legal)
        parked = self.join_parked(later[0], none).reshape(words, -1)  # P_1
        no_wait_front = replace_states(self.layout, none, parked & self.legal)
        first, second, third = (self.join_parked(later[i], even_layer) for i in range(3))
        return JointCostLayers(
            odd_layer=none,
            even_layer=even_layer,
            no_wait_front=no_wait_front,
            unforced=self.layout.read_states(no_wait_front.states),
            parked=(first, second, third),
            solo=(later[2], later[3]),
        )

    def flood_two_layers(self, flood: JointCostLayers) -> JointCostLayers:
        """From R_{c-1} and R_c, c even, with U_c and U_{c+1}, to R_{c+1} and R_{c+2} with U_{c+2} and U_{c+3}."""
        layout, legal = self.layout, self.legal
        first, second, third = (states.reshape(legal.shape) for states in flood.parked)
        before, odd_layer = find_predecessors(layout, flood.odd_layer, legal, waits=True)
        grown = (before | layout.read_states(flood.even_layer.states) | first) & legal  # R_{c+1}
        odd_layer = replace_states(layout, odd_layer, grown)
        before, even_layer = find_predecessors(layout, flood.even_layer, legal, waits=True)
        grown = (before | layout.read_states(odd_layer.states) | second) & legal  # R_{c+2}
        even_layer = replace_states(layout, even_layer, grown)
        # The states that are cheaper than the plans without waits found next: R_{c+1}, and R_{c+2} for an odd cost.
        cheaper = layout.read_states(odd_layer.states) | (layout.read_states(even_layer.states) & self.odd)
        before, no_wait_front = find_predecessors(layout, flood.no_wait_front, legal, waits=False)
        no_wait_front = replace_states(layout, no_wait_front, (before | third) & legal & ~cheaper)
        solo = self.grow_solo(flood.solo[1])
        return JointCostLayers(
            odd_layer=odd_layer,
            even_layer=even_layer,
            no_wait_front=no_wait_front,
            unforced=flood.unforced | layout.read_states(no_wait_front.states),
            parked=(
                self.join_parked(flood.solo[0], odd_layer),
                self.join_parked(flood.solo[1], even_layer),
                self.join_parked(solo, no_wait_front),
            ),
            solo=(solo, self.grow_solo(solo)),
        )

    def grow_solo(self, solo: jax.Array) -> jax.Array:
        """The cells of uint32 [W, 2, N], and those one move further from home."""
        return solo | (find_neighbours(self.layout.size, solo) & self.solo_free)

    def join_parked(self, solo: jax.Array, front: Front) -> jax.Array:
        """P of the cells from which A (B) gets home alone, less the states that the front holds already."""
        reached = self.layout.read_states(front.states).reshape(self.home_a.shape)
        a_parked = self.home_a & self.layout.of_b(solo[:, 1])
        b_parked = self.layout.of_a(solo[:, 0]) & self.home_b
        return (a_parked | b_parked) & ~reached


def _flood_group_costs(
    layout: Layout, free: jax.Array, goals: jax.Array, home: jax.Array, solo_free: jax.Array, starts: jax.Array | None
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """`cost`, `reached`, `wait` and `complete` of W words flooded side by side.

    Args:
        layout: where the joint states lie.
        free: uint32 [W, N], bitboards of free cells.
        goals: int32 [W, 2, 32], padded cells.
        home: uint32 [W, 2, N], the goals as bitboards.
        solo_free: uint32 [W, 2, N], where each agent may walk while the other is parked.
        starts: as goals, or None.
    """
    home_a, home_b = layout.of_a(home[:, 0]), layout.of_b(home[:, 1])
    legal, odd = find_legal_states(layout, free), _find_odd_states(layout, goals)
    steps = _CostFlood(layout, legal, odd, home_a, home_b, solo_free)
    flood, cost, complete = number_layers(
        layout, steps.flood_two_layers, steps.begin(home), cost_bits(layout.size), starts
    )
    reached = layout.read_states(flood.odd_layer.states)
    wait = layout.cut_square(reached & ~flood.unforced)
    return cost, layout.cut_square(reached), wait, jnp.broadcast_to(complete, (free.shape[0],))


def flood_makespans(
    size: int, free: jax.Array, goals: jax.Array, starts: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """The optimal makespan of every joint state in binary, uint32 [W, bits, N, N], and the states reached [W, N, N].

    The states of a makespan of at most t are R_0 = {goals} and R_t = pre(R_{t-1}) because waiting is legal.

    Args:
        size: n, the cells on a side of the boards.
        free: uint32 [W, N], bitboards of free cells.
        goals: int32 [W, 2, 32], padded cells.
        starts: as goals, or None; with starts, the flood ends as soon as all of them are reached.
    """
    home = one_hots(goals, free.shape[1])
    return _map_groups(functools.partial(_flood_group_makespans, Layout(size)), free, home, starts)


def _flood_group_makespans(
    layout: Layout, free: jax.Array, home: jax.Array, starts: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """`flood_makespans` of W words flooded side by side.

    Args:
        layout: where the joint states lie.
        free: uint32 [W, N], bitboards of free cells.
        home: uint32 [W, 2, N], the goals as bitboards.
        starts: int32 [W, 2, 32], padded cells, or None.
    """
    legal = find_legal_states(layout, free)

    def flood_two_layers(flood: Layers) -> Layers:
        # From R_t, t even, to R_{t+1} and R_{t+2}; `find_predecessors` returns the front with its scratch buffer.
        before, even_layer = find_predecessors(layout, flood.even_layer, legal, waits=True)
        odd_layer = replace_states(layout, flood.odd_layer, before & legal)
        before, odd_layer = find_predecessors(layout, odd_layer, legal, waits=True)
        return Layers(odd_layer, replace_states(layout, even_layer, before & legal))

    none = layout.make_empty(free.shape[0])
    begin = (layout.of_a(home[:, 0]) & layout.of_b(home[:, 1])).reshape(free.shape[0], -1) & legal
    flood = Layers(none, replace_states(layout, none, begin))
    flood, arrival, _ = number_layers(layout, flood_two_layers, flood, cost_bits(layout.size), starts)
    return arrival, layout.cut_square(layout.read_states(flood.odd_layer.states))


def _map_groups(function: Callable[..., T], *words: jax.Array | None) -> T:
    """`function` of W words, `words_at_once` of them at a time."""
    given = [word for word in words if word is not None]
    together = math.gcd(given[0].shape[0], words_at_once())
    groups = [word.reshape(-1, together, *word.shape[1:]) for word in given]

    def apply_to_group(group: list[jax.Array]) -> T:
        return function(*group, *[None] * (len(words) - len(given)))

    found = jax.lax.map(apply_to_group, groups)
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), found)


def _find_odd_states(layout: Layout, goals: jax.Array) -> jax.Array:
    """The states from which a plan without waits has an odd sum of costs: uint32 [W, N * row]."""
    cells = jnp.arange(layout.row)
    colour = (cells // (layout.size + 1) + cells % (layout.size + 1)) % 2
    at_goals = jnp.moveaxis(colour[goals[:, 0]] ^ colour[goals[:, 1]], 1, 0)
    at_states = -(colour[: layout.cells, None] ^ colour).astype(jnp.uint32).reshape(-1)
    return pack_bits(at_goals.astype(bool))[:, None] ^ at_states
