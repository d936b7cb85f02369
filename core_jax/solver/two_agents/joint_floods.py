"""Distance floods of one and of two agents, backward from the goals, on bitboards.

One flood labels every pair of starts of a map at once, 32 maps to a word, W words at once. A joint state is a pair of
padded cells, agent A first. All sets of states exclude holes and the diagonal, where the agents would meet.

The loops are written for XLA on a CPU, where a layer takes about as long as its memory traffic: buffers are changed in
place and never change roles, moves are slices of flat buffers, and what one step prepares for the next is carried
through the loop, since a broadcast or a padding fused into a big kernel would be computed anew for each word.
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

from core_jax.lake import BOARDS_PER_WORD, bit, cell_count, offsets, one_hot, pack, shift

F = TypeVar("F", bound="Layers")
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where the joint states of an n x n board lie in a buffer uint32 [W, length].

    A state (a, b) is word head + a * row + b. Rows are longer than the N cells of B by one row of the board, and zeros
    stand before and behind: so any move of either agent is a constant offset, and what leaves the board reads a zero.
    Seen as lines of row + 1 words, each diagonal b - a = constant is a column.
    """

    size: int

    @property
    def cells(self) -> int:
        return cell_count(self.size)

    @property
    def row(self) -> int:
        return self.cells + self.size + 1

    @property
    def head(self) -> int:
        return (self.size + 1) * (self.row + 1)

    @property
    def length(self) -> int:
        lines = -(-(2 * self.head + self.cells * self.row) // (self.row + 1))
        return lines * (self.row + 1)

    @property
    def moves(self) -> tuple[int, ...]:
        return offsets(self.size)[:4]

    def empty(self, words: int) -> "Front":
        """The front of no states."""
        zeros = jnp.zeros((words, self.length), jnp.uint32)
        return Front(zeros, zeros.reshape(words, -1, self.row + 1), zeros)

    def read(self, buffer: jax.Array, by: int = 0) -> jax.Array:
        """The states `by` words further: uint32 [W, N * row]."""
        begin = self.head + by
        return jax.lax.slice_in_dim(buffer, begin, begin + self.cells * self.row, axis=1)

    def write(self, buffer: jax.Array, states: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(buffer, states.reshape(buffer.shape[0], -1), (0, self.head))

    def of_a(self, cells: jax.Array) -> jax.Array:
        """The states with A in `cells`, uint32 [W, N]: uint32 [W, N, row]."""
        return jnp.broadcast_to(cells[:, :, None], (cells.shape[0], self.cells, self.row))

    def of_b(self, cells: jax.Array) -> jax.Array:
        """The states with B in `cells`, uint32 [W, N]: uint32 [W, N, row]."""
        longer = jnp.pad(cells, ((0, 0), (0, self.row - self.cells)))
        return jnp.broadcast_to(longer[:, None], (cells.shape[0], self.cells, self.row))

    def diagonal(self, buffer: jax.Array, begin: int) -> jax.Array:
        """Every (row + 1)-th word from head + begin on: uint32 [W, N, 1]."""
        line, column = divmod(self.head + begin, self.row + 1)
        lines = buffer.reshape(buffer.shape[0], -1, self.row + 1)
        return lines[:, line : line + self.cells, column : column + 1]

    def write_diagonal(self, lines: jax.Array, begin: int, words: jax.Array) -> jax.Array:
        return jax.lax.dynamic_update_slice(lines, words, (0, *divmod(self.head + begin, self.row + 1)))

    def square(self, states: jax.Array) -> jax.Array:
        """uint32 [..., N * row] to [..., N, N]."""
        return states.reshape(*states.shape[:-1], self.cells, self.row)[..., : self.cells]


@flax.struct.dataclass
class CostTable:
    """The optima from every joint state of 32 maps with fixed goals.

    cost: uint32 [bits, N, N], the optimal sum of costs in binary, bit by bit; meaningful where `reached`.
    reached: uint32 [N, N], from where the goals can be reached. wait: uint32 [N, N], where reached, whether every
    optimal plan waits before its final arrivals. solo: uint32 [2, bits, N], the distance of A (B) to its goal while
    the other is parked on its own; solo_reached: uint32 [2, N]. goals: int32 [2, 32]. complete: bool [], False if
    the flood ended before its fixed point: then only what was asked for is `reached`. arrival: uint32 [bits, N, N],
    the optimal makespan in binary where `reached`, or None.
    """

    cost: jax.Array
    reached: jax.Array
    wait: jax.Array
    solo: jax.Array
    solo_reached: jax.Array
    goals: jax.Array
    complete: jax.Array
    arrival: jax.Array | None = None


@flax.struct.dataclass
class Front:
    """A set of joint states in a `Layout`, and what finding its predecessors takes.

    states: uint32 [W, length]. followed: uint32 [W, lines, row + 1], the predecessors in which B enters the cell that
    A leaves. after_a: uint32 [W, length], scratch for the states in which A has yet to move.
    """

    states: jax.Array
    followed: jax.Array
    after_a: jax.Array


@flax.struct.dataclass
class Layers:
    """The two last layers of a flood: `late` follows on `early`. Floods that need more extend it."""

    early: Front
    late: Front


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
    """Bits that hold any sum of costs met on n x n boards; `CostTable.complete` tells if one was larger."""
    return (4 * size * size).bit_length()


def sum_of_costs_flood(size: int, free: jax.Array, goals: jax.Array) -> CostTable:
    """The full `CostTable`, without `arrival`, of one word: free uint32 [N]; goals int32 [2, 32], padded cells."""
    return jax.tree.map(lambda field: field[0], cost_floods(size, free[None], goals[None]))


def pair_flood(size: int, free: jax.Array, goals: jax.Array) -> CostTable:
    """The full `CostTable` with `arrival` of one word."""
    arrival, *_ = makespan_floods(size, free[None], goals[None])
    return dataclasses.replace(sum_of_costs_flood(size, free, goals), arrival=arrival[0])


def words_at_once() -> int:
    """How many words are flooded side by side: a CPU is busy with one, an accelerator wants many."""
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
    home = _one_hot(goals, count)
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

    Args besides: home uint32 [W, 2, N], the goals; solo_free alike, where each agent may walk while the other is home.
    """
    words = free.shape[0]
    home_a, home_b = layout.of_a(home[:, 0]), layout.of_b(home[:, 1])
    legal, odd = _legal(layout, free), _odd(layout, goals)

    def grown(solo: jax.Array) -> jax.Array:
        return solo | (neighbours(layout.size, solo) & solo_free)

    def parked(solo: jax.Array, beyond: Front) -> jax.Array:
        reached = layout.read(beyond.states).reshape(home_a.shape)
        return ((home_a & layout.of_b(solo[:, 1])) | (layout.of_a(solo[:, 0]) & home_b)) & ~reached

    def two_layers(flood: CostLayers) -> CostLayers:
        first, second, third = (states.reshape(words, -1) for states in flood.parked)
        before, early = predecessors(layout, flood.early, legal, waits=True)
        early = _advanced(layout, early, (before | layout.read(flood.late.states) | first) & legal)
        before, late = predecessors(layout, flood.late, legal, waits=True)
        late = _advanced(layout, late, (before | layout.read(early.states) | second) & legal)
        # The states of even cost in the layer of `late`, those of odd cost in the next.
        known = layout.read(early.states) | (layout.read(late.states) & odd)
        before, moving = predecessors(layout, flood.unwaiting, legal, waits=False)
        moving = _advanced(layout, moving, (before | third) & legal & ~known)
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
    begin = _advanced(layout, none, parked(at_home, none).reshape(words, -1) & legal)
    unwaiting = _advanced(layout, none, parked(later[0], none).reshape(words, -1) & legal)
    flood = CostLayers(
        early=none,
        late=begin,
        unwaiting=unwaiting,
        unforced=layout.read(unwaiting.states),
        parked=(parked(later[0], begin), parked(later[1], begin), parked(later[2], begin)),
        solo=(later[2], later[3]),
    )
    flood, cost, complete = _numbered(layout, two_layers, flood, cost_bits(layout.size), starts)
    reached = layout.read(flood.early.states)
    wait = layout.square(reached & ~flood.unforced)
    return cost, layout.square(reached), wait, jnp.broadcast_to(complete, (words,))


def makespan_floods(
    size: int, free: jax.Array, goals: jax.Array, starts: jax.Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """The optimal makespan of every joint state in binary, uint32 [W, bits, N, N], and the states reached [W, N, N].

    Args as for `cost_floods`. Waiting is legal, so the layers R_t = pre(R_{t-1}) only grow.
    """
    return _in_groups(functools.partial(_makespan_floods, Layout(size)), free, _one_hot(goals, free.shape[1]), starts)


def _makespan_floods(
    layout: Layout, free: jax.Array, home: jax.Array, starts: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """`makespan_floods` of W words flooded side by side; home uint32 [W, 2, N], the goals."""
    legal = _legal(layout, free)

    def two_layers(flood: Layers) -> Layers:
        before, late = predecessors(layout, flood.late, legal, waits=True)
        early = _advanced(layout, flood.early, before & legal)
        before, early = predecessors(layout, early, legal, waits=True)
        return Layers(early, _advanced(layout, late, before & legal))

    none = layout.empty(free.shape[0])
    begin = (layout.of_a(home[:, 0]) & layout.of_b(home[:, 1])).reshape(free.shape[0], -1) & legal
    flood = Layers(none, _advanced(layout, none, begin))
    flood, arrival, _ = _numbered(layout, two_layers, flood, cost_bits(layout.size), starts)
    return arrival, layout.square(layout.read(flood.early.states))


def single_floods(size: int, free: jax.Array, goals: jax.Array, bits: int) -> tuple[jax.Array, jax.Array]:
    """The distance of every cell to a goal for single agents, in binary.

    Args: free, goals uint32 [P, N]; goals not in `free` are dropped. Returns: uint32 [bits, P, N], and the cells with
    a way, uint32 [P, N].
    """
    # One buffer for all, boards apart by a row of zeros: a move is a shift of the whole.
    count, gap = free.shape[1], size + 1
    spread = jnp.pad(free, ((0, 0), (0, gap))).reshape(-1)

    def moved(buffer: jax.Array, by: int) -> jax.Array:
        return jax.lax.slice_in_dim(buffer, gap + by, gap + by + spread.shape[0])

    def grown(buffer: jax.Array, into: jax.Array) -> jax.Array:
        near = functools.reduce(jnp.bitwise_or, [moved(buffer, by) for by in (0, *offsets(size)[:4])])
        return jax.lax.dynamic_update_slice(into, near & spread, (gap,))

    def two_layers(carry):
        distance, early, late, digits, _ = carry
        odd, even = grown(late, early), moved(late, 0)
        new = moved(odd, 0) & ~even
        digits = digits | (new & -(distance >> jnp.arange(bits, dtype=jnp.uint32) & 1)[:, None])
        after = grown(odd, late)
        newer = moved(after, 0) & ~moved(odd, 0)
        digits = digits | (newer & -(distance + 1 >> jnp.arange(bits, dtype=jnp.uint32) & 1)[:, None])
        return distance + 2, odd, after, digits, jnp.any(newer != 0)

    none = jnp.zeros(spread.shape[0] + 2 * gap, jnp.uint32)
    begin = jax.lax.dynamic_update_slice(none, jnp.pad(goals, ((0, 0), (0, gap))).reshape(-1) & spread, (gap,))
    digits = jnp.zeros((bits, spread.shape[0]), jnp.uint32)
    carry = (jnp.uint32(1), none, begin, digits, jnp.array(True))
    _, _, reached, digits, _ = jax.lax.while_loop(lambda carry: carry[4], two_layers, carry)
    apart = [field.reshape(*field.shape[:-1], -1, count + gap)[..., :count] for field in (digits, moved(reached, 0))]
    return apart[0], apart[1]


def _in_groups(function: Callable[..., T], *words: jax.Array | None) -> T:
    """`function` of W words, `words_at_once` of them at a time."""
    given = [word for word in words if word is not None]
    together = math.gcd(given[0].shape[0], words_at_once())
    groups = [word.reshape(-1, together, *word.shape[1:]) for word in given]

    def of_group(group: list[jax.Array]) -> T:
        return function(*group, *[None] * (len(words) - len(given)))

    found = jax.lax.map(of_group, groups)
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), found)


def _one_hot(goals: jax.Array, count: int) -> jax.Array:
    """Padded cells int32 [W, 2, 32] as bitboards uint32 [W, 2, count]."""
    return jax.vmap(jax.vmap(one_hot, (0, None)), (0, None))(goals, count)


def predecessors(layout: Layout, front: Front, legal: jax.Array, *, waits: bool) -> tuple[jax.Array, Front]:
    """States from which a joint move leads into `front`, uint32 [W, N * row], holes not masked; and the front again.

    With `waits`, agents may stay; without, both must move. The moves of the two agents are independent but for the
    swap, so the set is a shift of A, then one of B. Half of a swap is a move of B into the cell that A leaves: those
    moves are left out of the second shift, as `legal` excludes a shared cell, and added from `front.followed`.
    """
    steps = (0, *layout.moves) if waits else layout.moves
    after_a = functools.reduce(jnp.bitwise_or, [layout.read(front.states, by * layout.row) for by in steps])
    front = dataclasses.replace(front, after_a=layout.write(front.after_a, after_a & legal))
    before = functools.reduce(jnp.bitwise_or, [layout.read(front.after_a, by) for by in steps])
    return before | layout.read(front.followed.reshape(front.states.shape)), front


def neighbours(size: int, reached: jax.Array) -> jax.Array:
    """Cells from which one move leads into `reached`: uint32 [..., N]."""
    up, down, left, right = (shift(reached, by, reached.ndim - 1) for by in offsets(size)[:4])
    return up | down | left | right


def _advanced(layout: Layout, front: Front, states: jax.Array) -> Front:
    """`front` with other states, in its buffers."""
    buffer = layout.write(front.states, states)
    # A goes from x to x + by; B, coming from x + from_b, follows into x unless that is a swap.
    left = {by: layout.diagonal(buffer, by * layout.row) for by in layout.moves}
    followed = front.followed
    for from_b in layout.moves:
        others = [left[by] for by in layout.moves if by != from_b]
        followed = layout.write_diagonal(followed, from_b, functools.reduce(jnp.bitwise_or, others))
    return Front(buffer, followed, front.after_a)


def _numbered(
    layout: Layout, two_layers: Callable[[F], F], flood: F, bits: int, starts: jax.Array | None
) -> tuple[F, jax.Array, jax.Array]:
    """Floods from layer 0, in `flood.late`, to the fixed point, or until all `starts` are reached.

    Returns: the flood, whose `early` is the last layer numbered; the layer in which each state was reached, in binary,
    uint32 [W, bits, N, N]; and whether the fixed point was met, bool [].

    Layers only grow. Two without news are the last, even of costs: where A is parked and B comes to a cell that is
    first reached so, B's cell before was reached at most two layers earlier, as A may wait while B moves.
    Of a state first in layer a, bit i is the parity of a >> i, and that is, but for a constant, the parity of how
    many of the layers 2**i - 1, 2 * 2**i - 1, 3 * 2**i - 1, .. hold the state.
    """

    def toggled(digits: jax.Array, i: int | jax.Array, states: jax.Array) -> jax.Array:
        held = jax.lax.dynamic_index_in_dim(digits, i, keepdims=False)
        return jax.lax.dynamic_update_index_in_dim(digits, held ^ states, i, 0)

    def two_numbered(_, carry):
        layer, flood, digits = carry
        flood, layer = two_layers(flood), layer + 2
        early = layout.read(flood.early.states)
        digits = toggled(digits, 0, early ^ layout.read(flood.late.states))
        # `early` is layer - 1: it counts for the bits 1 .. (zeros at the end of layer).
        last = jnp.minimum(jax.lax.population_count((layer & -layer) - 1), bits - 1).astype(jnp.int32)
        return layer, flood, jax.lax.fori_loop(1, last + 1, lambda i, digits: toggled(digits, i, early), digits)

    def four_numbered(carry):
        numbered, _ = carry
        before = layout.read(numbered[1].early.states)
        numbered = jax.lax.fori_loop(0, 2, two_numbered, numbered)
        return numbered, jnp.any(layout.read(numbered[1].early.states) != before)

    def going(carry):
        (layer, flood, _), grew = carry
        return grew & (layer < 1 << bits) & _missing(layout, flood.early, starts)

    first = layout.read(flood.late.states)
    digits = jnp.zeros((bits, *first.shape), jnp.uint32).at[0].set(first)
    begin = (jnp.uint32(0), flood, digits)
    (layer, flood, digits), grew = jax.lax.while_loop(going, four_numbered, (begin, jnp.array(True)))
    counted = -((layer | 1) >> jnp.arange(bits, dtype=jnp.uint32) & 1)
    return flood, jnp.moveaxis(layout.square(digits) ^ counted[:, None, None, None], 0, 1), ~grew


def _missing(layout: Layout, front: Front, starts: jax.Array | None) -> jax.Array:
    """Whether any of the starts int32 [W, 2, 32] is not yet in the front; True if there are none to look for."""
    if starts is None:
        return jnp.array(True)
    places = layout.head + starts[:, 0] * layout.row + starts[:, 1]
    found = bit(jnp.take_along_axis(front.states, places, axis=1), jnp.arange(BOARDS_PER_WORD))
    return jnp.any(found == 0)


def _legal(layout: Layout, free: jax.Array) -> jax.Array:
    """Every joint state of two agents, both cells free and different: uint32 [W, N * row]."""
    different = ~jnp.eye(layout.cells, layout.row, dtype=bool)
    legal = jnp.where(different, layout.of_a(free) & layout.of_b(free), jnp.uint32(0))
    return legal.reshape(free.shape[0], -1)


def _odd(layout: Layout, goals: jax.Array) -> jax.Array:
    """The states of which a plan without waits has an odd sum of costs: uint32 [W, N * row]."""
    cells = jnp.arange(layout.row)
    colour = (cells // (layout.size + 1) + cells % (layout.size + 1)) % 2
    at_goals = jnp.moveaxis(colour[goals[:, 0]] ^ colour[goals[:, 1]], 1, 0)
    at_states = -(colour[: layout.cells, None] ^ colour).astype(jnp.uint32).reshape(-1)
    return pack(at_goals.astype(bool))[:, None] ^ at_states
