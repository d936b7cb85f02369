"""Optimal sums of costs and forced waits on accelerators, by floods that save every layer for the plans.

It computes the layers of `lakewright.core_jax.solver.two_agents.joint_floods.flood_costs`, which derives them.
R_c are the states of a cost of at most c. U_c are the states of cost c from which an optimal plan never waits. P_c are
the states with one agent parked on its goal and the other within c moves of its own.
"""

import dataclasses

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lakewright.core_jax.solver.accelerator.cell_sets import (
    CellSet,
    has_cell,
    lead_into,
    mark_cells,
    spread_flag,
    unite,
)
from lakewright.core_jax.solver.accelerator.joint_sets import (
    JointSet,
    differ_anywhere,
    find_preceding_set,
    has_state,
    make_legal_set,
    pair_sets,
    settle,
)

AHEAD = 3  # layers by which the cells of single agents are ahead of the joint states


@flax.struct.dataclass
class CostLayers:
    """All layers of the floods of G boards to depth D, a multiple of 4.

    joint: V words uint32 [D + 1 + D / 2 + 1, n, n, G], R_0 to R_D, then U_0 | U_1, U_2 | U_3, to U_D | U_{D+1}.
    alone: V words uint32 [D + AHEAD + 1, 2, G], the cells of A (B) within 0, 1, .. moves of home, alone. goals:
    int32 [2, G].
    """

    joint: JointSet
    alone: CellSet
    goals: jax.Array

    @property
    def depth(self) -> int:
        """D."""
        return self.alone[0].shape[0] - AHEAD - 1


@dataclasses.dataclass(frozen=True)
class CostFlood:
    """The steps of the flood on G boards.

    free: V words [G]. home: each agent's goal, V words [G]. odd: the states of an odd cost without waits.
    """

    size: int
    free: CellSet
    home: tuple[CellSet, CellSet]
    odd: JointSet

    @classmethod
    def of_boards(cls, size: int, free: CellSet, goals: jax.Array) -> "CostFlood":
        """The flood of boards with these goals, int32 [2, G]."""
        home = (mark_cells(size, goals[0]), mark_cells(size, goals[1]))
        return cls(size, free, home, _find_odd_states(size, goals))

    def grow_alone(self, alone: CellSet) -> CellSet:
        """The cells of both agents, V words [2, G], and those one move further from home, around the parked agent."""
        sides = unite(*(lead_into(self.size, alone, move) for move in range(4)))
        others = tuple(jnp.stack([b, a]) for a, b in zip(*self.home, strict=True))
        found = zip(alone, sides, self.free, others, strict=True)
        return tuple(old | (new & free[None] & ~other) for old, new, free, other in found)

    def park(self, alone: CellSet) -> JointSet:
        """P of the cells from which A (B) gets home alone, V words [2, G]."""
        a_parked = pair_sets(self.size, self.home[0], tuple(word[1] for word in alone))
        b_parked = pair_sets(self.size, tuple(word[0] for word in alone), self.home[1])
        return unite(a_parked, b_parked)

    def grow(self, older: JointSet, last: JointSet, alone: CellSet, waits: bool = True) -> JointSet:
        """R_c, or, without waits, the states from which some plan of a cost of at most c never waits.

        Args:
            older, last: R_{c-2} and R_{c-1}.
            alone: V words [2, G], the cells within c moves of home.
            waits: whether agents may wait.
        """
        before = find_preceding_set(self.size, older, waits)
        legal = make_legal_set(self.size, self.free)
        found = zip(last, self.park(alone), before, legal, strict=True)
        return settle(tuple((x | y | z) & allowed for x, y, z, allowed in found))

    def grow_unforced(self, front: JointSet, alone: CellSet, odd_layer: JointSet, even_layer: JointSet) -> JointSet:
        """U_c | U_{c+1}, c even.

        Invariant: without waits both agents change colour at every move, as on a chess board. So states of U_c have
        another colour than states of U_{c+1}, and one set holds both.

        Args:
            front: U_{c-2} | U_{c-1}.
            alone: V words [2, G], the cells within c + 1 moves of home.
            odd_layer: R_{c-1}.
            even_layer: R_c.
        """
        before = find_preceding_set(self.size, front, waits=False)
        legal = make_legal_set(self.size, self.free)
        # U_c holds no state of R_{c-1}, and U_{c+1}, which has the odd states, no state of R_c.
        found = zip(self.park(alone), before, legal, odd_layer, even_layer, self.odd, strict=True)
        return settle(tuple((x | y) & allowed & ~(r | (s & odd)) for x, y, allowed, r, s, odd in found))


@flax.struct.dataclass
class _Front:
    """A flood that has come to R_c, c even.

    older, last: R_{c-1}, R_c. front: U_c | U_{c+1}. joint, alone: as in `CostLayers`, made to c.
    """

    c: jax.Array
    older: JointSet
    last: JointSet
    front: JointSet
    joint: JointSet
    alone: CellSet

    @classmethod
    def at_home(cls, flood: CostFlood, depth: int) -> "_Front":
        """The flood to depth D at its beginning, c = 0."""
        alone = _flood_alone(flood, depth + AHEAD + 1)
        first, front, joint = _begin_layers(flood, depth, alone)
        return cls(jnp.int32(0), tuple(jnp.zeros_like(word) for word in first), first, front, joint, alone)

    def grow(self, flood: CostFlood, depth: int) -> "_Front":
        """The flood two layers further on. Every layer is written once more, into its own place, for the plans."""
        c = self.c
        # R_{c+1} and R_{c+2} need the cells within as many moves of home, and U_{c+2} | U_{c+3} those within c + 3.
        now = [tuple(lax.dynamic_index_in_dim(word, c + k, keepdims=False) for word in self.alone) for k in (1, 2, 3)]
        odd_layer = flood.grow(self.older, self.last, now[0])
        even_layer = flood.grow(self.last, odd_layer, now[1])
        front = flood.grow_unforced(self.front, now[2], odd_layer, even_layer)
        joint = _save_layer(self.joint, c + 1, odd_layer)
        joint = _save_layer(joint, c + 2, even_layer)
        joint = _save_layer(joint, depth + 1 + c // 2 + 1, front)
        return _Front(c + 2, odd_layer, even_layer, front, joint, self.alone)


def flood_all_costs(
    flood: CostFlood, depth: int, starts: jax.Array, goals: jax.Array, spare: jax.Array
) -> tuple[CostLayers, jax.Array, jax.Array, jax.Array]:
    """The layers of solvable boards, their sums of costs int32 [G], whether these are certain, and which force no wait.

    Invariant: R_c only grows with c. So the number of layers that lack the start is its cost, once a layer holds it.

    Args:
        flood: the flood of these boards.
        depth: D, a multiple of 4.
        starts: int32 [2, G].
        goals: int32 [2, G].
        spare: int32 [], the flood ends when no more boards than this are open.
    """
    chex.assert_is_divisible(depth, 4)
    chex.assert_equal_shape([starts, goals])

    def holds_start(states: JointSet) -> jax.Array:
        return has_state(states, starts[0], starts[1])

    def flood_two_layers(carry):
        at, cost, unforced = carry
        at = at.grow(flood, depth)
        for layer in (at.older, at.last):
            cost = cost + (~holds_start(layer)).astype(jnp.int32)
        return at, cost, unforced | holds_start(at.front)

    def flood_four_layers(carry):
        # After each iteration a GPU asks its host whether the loop continues, so an iteration computes a few layers.
        return flood_two_layers(flood_two_layers(carry))

    def is_going(carry):
        return (carry[0].c < depth) & (jnp.sum(~holds_start(carry[0].last), dtype=jnp.int32) > spare)

    begin = _Front.at_home(flood, depth)
    carry = begin, (~holds_start(begin.last)).astype(jnp.int32), holds_start(begin.front)
    end, cost, unforced = lax.while_loop(is_going, flood_four_layers, carry)
    return CostLayers(end.joint, end.alone, goals), cost, holds_start(end.last), unforced


def flood_everywhere(
    flood: CostFlood, depth: int, goals: jax.Array, spare: jax.Array
) -> tuple[CostLayers, JointSet, JointSet, jax.Array]:
    """The layers, all states from which the goals can be reached, those without forced waits, and if these are all.

    Invariant: R_c, once equal to R_{c-1} and R_{c-2}, holds all states before it, so no later layer is larger: an agent
    that is further from home than in any layer before would have made R_c larger, because the other may be parked.
    Layers only grow, so R_c = R_{c-2} says all three are equal.

    Args: flood, depth, goals, spare: see `flood_all_costs`; a board is open until its layers stop growing.

    Returns: the layers; two sets of states; bool [G].
    """
    chex.assert_is_divisible(depth, 4)

    def flood_four_layers(carry):
        before = carry[0].grow(flood, depth)
        at = before.grow(flood, depth)
        return at, differ_anywhere(before.last, at.last)

    def is_going(carry):
        return (carry[0].c < depth) & (jnp.sum(carry[1], dtype=jnp.int32) > spare)

    begin = _Front.at_home(flood, depth), jnp.ones(goals.shape[1:], bool)
    end, changed = lax.while_loop(is_going, flood_four_layers, begin)
    # The sets without waits are read once from where they are saved; a union in the loop would be written each time.
    fronts = tuple(lax.slice_in_dim(word, depth + 1, word.shape[0]) for word in end.joint)
    unforced = settle(tuple(lax.reduce(word, jnp.uint32(0), lax.bitwise_or, (0,)) for word in fronts))
    return CostLayers(end.joint, end.alone, goals), end.last, unforced, ~changed


def find_start_costs(layers: CostLayers, starts: jax.Array) -> jax.Array:
    """The sums of costs of states that some layer holds, int32 [G]; 0 for others. starts: int32 [2, G].

    Layers beyond the end of the flood are empty, so the first layer that holds a state is sought, not the number of
    those without it.
    """
    group, cells = starts.shape[1], layers.joint[0].shape[1] * layers.joint[0].shape[2]
    layer = lax.broadcasted_iota(jnp.int32, (layers.depth + 1, group), 0)
    place = (layer * cells + starts[0][None]) * group + lax.iota(jnp.int32, group)[None]
    lines = tuple(word.reshape(-1).at[place].get(mode="promise_in_bounds") for word in layers.joint)
    held = has_cell(lines, jnp.broadcast_to(starts[1][None], place.shape))
    return jnp.argmax(held, axis=0).astype(jnp.int32)


def _begin_layers(flood: CostFlood, depth: int, alone: CellSet) -> tuple[JointSet, JointSet, JointSet]:
    """R_0, U_0 | U_1, and the place for all layers with these in it; alone, V words [*, 2, G]."""
    legal = make_legal_set(flood.size, flood.free)
    parked = [flood.park(tuple(word[moves] for word in alone)) for moves in (0, 1)]
    first, front = (settle(tuple(x & y for x, y in zip(states, legal, strict=True))) for states in parked)
    stacks = tuple(jnp.zeros((depth + 1 + depth // 2 + 1, *word.shape), jnp.uint32) for word in first)
    return first, front, _save_layer(_save_layer(stacks, 0, first), depth + 1, front)


def _save_layer(stacks: JointSet, place: jax.Array | int, states: JointSet) -> JointSet:
    pairs = zip(stacks, states, strict=True)
    return tuple(lax.dynamic_update_index_in_dim(stack, word, place, 0) for stack, word in pairs)


def _flood_alone(flood: CostFlood, layers: int) -> CellSet:
    """The cells from which each agent gets home alone in 0, 1, .. moves: V words uint32 [layers, 2, G]."""
    home = tuple(jnp.stack([a, b]) for a, b in zip(*flood.home, strict=True))
    home = tuple(word & free[None] for word, free in zip(home, flood.free, strict=True))
    # Four layers at once: these arrays are small, so a GPU waits for the launches, which are a fifth as many then.
    _, alone = lax.scan(lambda cells, _: (flood.grow_alone(cells), cells), home, length=layers, unroll=4)
    return alone


def _find_odd_states(size: int, goals: jax.Array) -> JointSet:
    """The states whose cells' colours say that the cost of a plan without waits is odd: V words uint32 [n, n, G]."""
    number = np.arange(size * size)
    colour = (number // size + number % size) % 2
    of_a = colour.astype(bool).reshape(size, size, 1)
    packed = [0] * (-(-size * size // 32))
    for cell in np.flatnonzero(colour):
        packed[cell // 32] |= 1 << int(cell % 32)
    at_goals = (goals[0] // size + goals[0] % size + goals[1] // size + goals[1] % size) & 1 == 1
    flip = spread_flag(at_goals[None, None] ^ jnp.asarray(of_a))
    return tuple(jnp.uint32(word) ^ flip for word in packed)
