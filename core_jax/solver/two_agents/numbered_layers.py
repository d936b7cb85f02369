"""Floods layer by layer, in which every joint state gets the number of its first layer, in binary.

Storing a number for each new state would take a write for each of its bits in every layer. Instead, bit i is found by
counting, modulo 2, how many of the layers 2^i - 1, 2 * 2^i - 1, 3 * 2^i - 1, .. hold the state. As layers only grow, a
state first reached in layer a is missing from floor(a / 2^i) of these, and the parity of that number is bit i of a. So
bit i is the parity of the layers counted plus the parity of those that hold the state. A layer counts for two bits on
average.

Example: a = 5, and the flood ends with layer 8. The state is in the layers 5, 6, 7 and 8.

    bit   layers counted        of them hold the state   parities   bit of a
    0     0 1 2 .. 8     (9)    5 6 7 8     (4)          1 + 0      1
    1     1 3 5 7        (4)    5 7         (2)          0 + 0      0
    2     3 7            (2)    7           (1)          0 + 1      1
    3     7              (1)    7           (1)          1 + 1      0
"""

from collections.abc import Callable
from typing import TypeVar

import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake.bitboards import BOARDS_PER_WORD, read_bit
from lakewright.core_jax.solver.two_agents.joint_layout import Front, Layout

F = TypeVar("F", bound="Layers")


@flax.struct.dataclass
class Layers:
    """The last two layers of a flood: those with an odd and with an even number. Floods that need more extend it."""

    odd_layer: Front
    even_layer: Front


def number_layers(
    layout: Layout, flood_two_layers: Callable[[F], F], flood: F, bits: int, starts: jax.Array | None
) -> tuple[F, jax.Array, jax.Array]:
    """Floods from layer 0, in `flood.even_layer`, to the fixed point, or until all `starts` are reached.

    Layers only grow, R_0 <= R_1 <= .., and a state that is new in layer c leads to one that was new in layer c - 1 or
    c - 2. So the flood ends where two layers in a row add no state. That holds for sums of costs too: if A is parked
    and B is c moves from its goal, the state with B one move nearer has a cost of c - 2 at least because A could also
    wait while B moves.

    Args:
        layout: where the joint states lie.
        flood_two_layers: moves a flood on by two layers.
        flood: its layer 0, and an empty odd layer.
        bits: binary digits of the numbers; the flood ends with layer 2^bits at the latest.
        starts: int32 [W, 2, 32], the joint states to look for, or None for all.

    Returns: the flood, whose `odd_layer` is the last one numbered; the first layer of each state, in binary, uint32
    [W, bits, N, N]; and whether the fixed point was met, bool [].
    """

    def toggle_digit(digits: jax.Array, i: int | jax.Array, states: jax.Array) -> jax.Array:
        parity = jax.lax.dynamic_index_in_dim(digits, i, keepdims=False)
        return jax.lax.dynamic_update_index_in_dim(digits, parity ^ states, i, 0)

    def count_two_layers(_, carry):
        # `digits[i]` holds, for each state, the parity of its layers among those that count for bit i.
        layer, flood, digits = carry
        flood, layer = flood_two_layers(flood), layer + 2  # of the even layer
        odd = layout.read_states(flood.odd_layer.states)
        digits = toggle_digit(digits, 0, odd ^ layout.read_states(flood.even_layer.states))  # both count for bit 0
        # Layer m 2^i - 1 counts for bit i: the odd one, layer - 1, for the bits 1 .. (zeros at the end of layer).
        last = jnp.minimum(jax.lax.population_count((layer & -layer) - 1), bits - 1).astype(jnp.int32)
        return layer, flood, jax.lax.fori_loop(1, last + 1, lambda i, digits: toggle_digit(digits, i, odd), digits)

    def count_four_layers(carry):
        counted, _ = carry
        before = layout.read_states(counted[1].odd_layer.states)
        counted = jax.lax.fori_loop(0, 2, count_two_layers, counted)
        return counted, jnp.any(layout.read_states(counted[1].odd_layer.states) != before)

    def has_more(carry):
        (layer, flood, _), grew = carry
        return grew & (layer < 1 << bits) & _is_any_missing(layout, flood.odd_layer, starts)

    first = layout.read_states(flood.even_layer.states)
    digits = jnp.zeros((bits, *first.shape), jnp.uint32).at[0].set(first)
    begin = (jnp.uint32(0), flood, digits)
    (layer, flood, digits), grew = jax.lax.while_loop(has_more, count_four_layers, (begin, jnp.array(True)))
    # The layers counted: layer + 1, which is odd, for bit 0, and floor(layer / 2^i) for bit i.
    counted = -((layer | 1) >> jnp.arange(bits, dtype=jnp.uint32) & 1)
    return flood, jnp.moveaxis(layout.cut_square(digits) ^ counted[:, None, None, None], 0, 1), ~grew


def _is_any_missing(layout: Layout, front: Front, starts: jax.Array | None) -> jax.Array:
    """Return True if any of the starts int32 [W, 2, 32] is not yet in the front, or there is nothing to look for."""
    if starts is None:
        return jnp.array(True)
    places = layout.head + starts[:, 0] * layout.row + starts[:, 1]
    found = read_bit(jnp.take_along_axis(front.states, places, axis=1), jnp.arange(BOARDS_PER_WORD))
    return jnp.any(found == 0)
