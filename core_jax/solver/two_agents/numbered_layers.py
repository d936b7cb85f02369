"""A flood layer by layer, in which every joint state gets the number of its layer, in binary."""

from collections.abc import Callable
from typing import TypeVar

import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake import BOARDS_PER_WORD, bit
from lakewright.core_jax.solver.two_agents.joint_layout import Front, Layout

F = TypeVar("F", bound="Layers")


@flax.struct.dataclass
class Layers:
    """The two last layers of a flood: `late` follows on `early`. Floods that need more extend it."""

    early: Front
    late: Front


def numbered(
    layout: Layout, two_layers: Callable[[F], F], flood: F, bits: int, starts: jax.Array | None
) -> tuple[F, jax.Array, jax.Array]:
    """Floods from layer 0, in `flood.late`, to the fixed point, or until all `starts` are reached.

    Returns: the flood, whose `early` is the last layer numbered; the layer in which each state was reached, in binary,
    uint32 [W, bits, N, N]; and whether the fixed point was met, bool [].

    Layers only grow. Two without news are the last, even of costs: where A is parked and B comes to a cell that is
    first reached so, B's cell before was reached at most two layers earlier, as A may wait while B moves.
    Of a state first in layer a, bit i is the parity of a >> i, and that is, up to a constant, the parity of how
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
