"""Joint states of two agents in a flat buffer, and single steps between them.

A joint state is a pair of padded cells, agent A first; 32 maps lie in a word. The loops over them are written for XLA
on a CPU, where a layer takes about as long as its memory traffic. Buffers are changed in place and never change roles;
moves are slices of flat buffers. What one step prepares for the next is carried through the loop, since a broadcast or
a padding fused into a big kernel would be computed again for each word.
"""

import dataclasses
import functools

import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake.bitboards import cell_count, move_offsets


@dataclasses.dataclass(frozen=True)
class Layout:
    """The places of the joint states of an n x n board in a buffer uint32 [W, length].

    A state (a, b) is word head + a * row + b. Rows are longer than the N cells of B by one row of the board, and zeros
    stand before and behind: so any move of either agent is a constant offset, and what leaves the board reads a zero.
    Seen as lines of row + 1 words, each diagonal b - a = constant is a column.
    """

    size: int

    @property
    def cells(self) -> int:
        """N, the padded cells of an agent."""
        return cell_count(self.size)

    @property
    def row(self) -> int:
        """Words from one cell of A to the next: the N cells of B, and zeros for one row of the board."""
        return self.cells + self.size + 1

    @property
    def head(self) -> int:
        """Words of zeros before the first state: as many as a joint move leads back at most."""
        return (self.size + 1) * (self.row + 1)

    @property
    def length(self) -> int:
        """Words of a buffer: the states with `head` words before and behind, filled up to whole lines of row + 1."""
        lines = -(-(2 * self.head + self.cells * self.row) // (self.row + 1))
        return lines * (self.row + 1)

    @property
    def moves(self) -> tuple[int, ...]:
        """The number that each move but a wait adds to the cell of B; to A's cell it adds `row` times as much."""
        return move_offsets(self.size)[:4]

    def make_empty(self, words: int) -> "Front":
        """The front of no states."""
        zeros = jnp.zeros((words, self.length), jnp.uint32)
        return Front(zeros, zeros.reshape(words, -1, self.row + 1), zeros)

    def read_states(self, buffer: jax.Array, by: int = 0) -> jax.Array:
        """The states `by` words further: uint32 [W, N * row]."""
        begin = self.head + by
        return jax.lax.slice_in_dim(buffer, begin, begin + self.cells * self.row, axis=1)

    def write_states(self, buffer: jax.Array, states: jax.Array) -> jax.Array:
        """The buffer uint32 [W, length] with states uint32 [W, N * row] or [W, N, row] in place of its own."""
        return jax.lax.dynamic_update_slice(buffer, states.reshape(buffer.shape[0], -1), (0, self.head))

    def of_a(self, cells: jax.Array) -> jax.Array:
        """The states with A in `cells`, uint32 [W, N]: uint32 [W, N, row]."""
        return jnp.broadcast_to(cells[:, :, None], (cells.shape[0], self.cells, self.row))

    def of_b(self, cells: jax.Array) -> jax.Array:
        """The states with B in `cells`, uint32 [W, N]: uint32 [W, N, row]."""
        longer = jnp.pad(cells, ((0, 0), (0, self.row - self.cells)))
        return jnp.broadcast_to(longer[:, None], (cells.shape[0], self.cells, self.row))

    def read_diagonal(self, buffer: jax.Array, begin: int) -> jax.Array:
        """Every (row + 1)-th word from head + begin on: uint32 [W, N, 1]."""
        line, column = divmod(self.head + begin, self.row + 1)
        lines = buffer.reshape(buffer.shape[0], -1, self.row + 1)
        return lines[:, line : line + self.cells, column : column + 1]

    def write_diagonal(self, lines: jax.Array, begin: int, words: jax.Array) -> jax.Array:
        """The lines, uint32 [W, lines, row + 1], with the words, uint32 [W, N, 1], that `read_diagonal` reads."""
        return jax.lax.dynamic_update_slice(lines, words, (0, *divmod(self.head + begin, self.row + 1)))

    def cut_square(self, states: jax.Array) -> jax.Array:
        """uint32 [..., N * row] to [..., N, N]."""
        return states.reshape(*states.shape[:-1], self.cells, self.row)[..., : self.cells]


@flax.struct.dataclass
class Front:
    """A set of joint states in a `Layout`, and what finding its predecessors takes.

    states: uint32 [W, length]. followed: uint32 [W, lines, row + 1], the predecessors in which B enters the cell that
    A leaves. after_a: uint32 [W, length], scratch for the states in which A has yet to move.
    """

    states: jax.Array
    followed: jax.Array
    after_a: jax.Array


def find_predecessors(layout: Layout, front: Front, legal: jax.Array, *, waits: bool) -> tuple[jax.Array, Front]:
    """The states from which a joint move leads into `front`, uint32 [W, N * row]; and the front again.

    States in holes are not left out.

    The moves of the two agents are independent except for the swap, so the set is a shift of A, then one of B. Half of
    a swap is a move of B into the cell that A leaves: those moves are left out of the second shift, as `legal` excludes
    a shared cell, and added from `front.followed`.

    Args:
        layout: where the joint states lie.
        front: the states that are entered.
        legal: uint32 [W, N * row], all legal joint states.
        waits: whether agents may stay; else both must move.
    """
    steps = (0, *layout.moves) if waits else layout.moves
    after_a = functools.reduce(jnp.bitwise_or, [layout.read_states(front.states, by * layout.row) for by in steps])
    front = dataclasses.replace(front, after_a=layout.write_states(front.after_a, after_a & legal))
    before = functools.reduce(jnp.bitwise_or, [layout.read_states(front.after_a, by) for by in steps])
    return before | layout.read_states(front.followed.reshape(front.states.shape)), front


def replace_states(layout: Layout, front: Front, states: jax.Array) -> Front:
    """`front` with other states, in its buffers."""
    buffer = layout.write_states(front.states, states)
    # A goes from x to x + by; B, coming from x + from_b, follows into x unless that is a swap.
    left = {by: layout.read_diagonal(buffer, by * layout.row) for by in layout.moves}
    followed = front.followed
    for from_b in layout.moves:
        others = [left[by] for by in layout.moves if by != from_b]
        followed = layout.write_diagonal(followed, from_b, functools.reduce(jnp.bitwise_or, others))
    return Front(buffer, followed, front.after_a)


def find_legal_states(layout: Layout, free: jax.Array) -> jax.Array:
    """Every joint state of two agents, both cells free and different: uint32 [W, N * row]."""
    different = ~jnp.eye(layout.cells, layout.row, dtype=bool)
    legal = jnp.where(different, layout.of_a(free) & layout.of_b(free), jnp.uint32(0))
    return legal.reshape(free.shape[0], -1)
