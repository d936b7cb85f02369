"""The cheapest certificate: shortest paths of all agents that never meet.

Such paths reach the lower bounds of both objectives, the maximum and the sum of the single distances, without a wait.
So they prove both optima and that no wait is required. An agent without any path proves the board unsolvable.

The agents are planned one after another, each along any of its shortest paths that avoids all earlier agents
(prioritized planning: Erdmann and Lozano-Perez, 1987), for 32 boards to a word.
"""

import dataclasses
import functools
import itertools

import chex
import flax.struct
import jax
import jax.numpy as jnp

from lakewright.core_jax.lake.bitboards import (
    BOARDS_PER_WORD,
    any_cell,
    cell_count,
    cell_index,
    move_offsets,
    one_hots,
    pack_bits,
    read_bit,
    read_spaced,
    space_cells,
)
from lakewright.core_jax.solver.single_agent.distances import NO_PATH, pad_rows
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import DELTAS, DOWN, LEFT, PAD, RIGHT, UP, WAIT, Board, Certificate, Labels, Status

# Which of several shortest moves to take: each order is tried.
ORDERS = ((UP, DOWN, LEFT, RIGHT), (RIGHT, LEFT, DOWN, UP))  # further ones certify almost no more boards
WORDS = 4  # planned side by side


@flax.struct.dataclass
class Certified:
    """The certificate of a board: `proven`, bool [], says whether `labels` are certain."""

    proven: jax.Array
    labels: Labels


@dataclasses.dataclass(frozen=True)
class _FlatCells:
    """The C cells of n x n boards in a flat buffer uint32 [(C + 2 (n + 1)) U], U units a cell.

    Zeros stand before the first cell and after the last, so a move is a shift of the whole buffer by a constant. A unit
    is a word of 32 boards with one of the ORDERS.
    """

    size: int
    units: int

    @property
    def margin(self) -> int:
        return (self.size + 1) * self.units

    @property
    def moves(self) -> list[int]:
        """By how much each move but a wait shifts the buffer."""
        return [by * self.units for by in move_offsets(self.size)[:4]]

    def read_cells(self, buffer: jax.Array, by: int = 0) -> jax.Array:
        """The cells, `by` further on in the buffer: uint32 [..., C U]."""
        begin = self.margin + by
        return jax.lax.slice_in_dim(buffer, begin, begin + cell_count(self.size) * self.units, axis=-1)

    def write_cells(self, buffer: jax.Array, cells: jax.Array) -> jax.Array:
        """The buffer with other cells, uint32 [C U]."""
        return jax.lax.dynamic_update_slice(buffer, cells, (self.margin,))


@program(static_argnums=0)
def certify_boards(horizon: int, boards: Board, distance: jax.Array) -> Certified:
    """Tries to find shortest paths that never meet on B boards of K agents.

    Args:
        horizon: at least the largest finite distance.
        distance: int16 [B, K, n, n], from `measure_distances`.
    """
    count, agents = boards.starts.shape[:2]
    chex.assert_shape(distance, (count, agents, *boards.holes.shape[1:]))
    away = distance[
        jnp.arange(count)[:, None], jnp.arange(agents), boards.starts[..., 0], boards.starts[..., 1]
    ].astype(jnp.int32)
    solvable = jnp.all(away < NO_PATH, axis=1)
    # Boards of similar distances side by side, as each group walks as far as its longest path.
    furthest = jnp.where(solvable, jnp.max(away, axis=1), 0)
    order = jnp.argsort(furthest)
    in_order = jax.tree.map(lambda field: field[order], (boards.starts, boards.goals, distance, furthest))
    groups = jax.tree.map(
        lambda field: field.reshape(-1, WORDS, BOARDS_PER_WORD, *field.shape[1:]),
        pad_rows(in_order, BOARDS_PER_WORD * WORDS),
    )
    found, moves = jax.lax.map(lambda group: _find_disjoint_paths(horizon, *group), groups)
    back = jnp.argsort(order)
    found, moves = (field.reshape(-1, *field.shape[3:])[back] for field in (found, moves))
    proven = solvable & found
    return Certified(
        proven=proven | ~solvable,
        labels=Labels(
            status=jnp.where(solvable, Status.SOLVABLE, Status.UNSOLVABLE),
            certificate=jnp.full(count, Certificate.BOUND, jnp.int32),
            makespan=jnp.where(solvable, jnp.max(away, axis=1), -1),
            sum_of_costs=jnp.where(solvable, jnp.sum(away, axis=1), -1),
            wait_required=jnp.zeros(count, bool),
            moves=jnp.where(proven[:, None, None], moves, PAD),
        ),
    )


def _find_disjoint_paths(
    horizon: int, starts: jax.Array, goals: jax.Array, distance: jax.Array, away: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Shortest paths that never meet: whether they were found, bool [W, 32], and moves int8 [W, 32, K, horizon].

    Args:
        horizon: steps of the moves that are returned.
        starts: int32 [W, 32, K, 2].
        goals: int32 [W, 32, K, 2].
        distance: int16 [W, 32, K, n, n], of every cell to each goal.
        away: int32 [W, 32], the largest distance of a start on each board, at most `horizon`.
    """
    agents, size = distance.shape[2], distance.shape[-1]
    closer, steps = _find_closer_moves(distance), jnp.max(away)
    begin, end = _mark_cells(size, starts), _mark_cells(size, goals)
    found, paths = [], []
    for agents_in_order in dict.fromkeys([tuple(range(agents)), tuple(reversed(range(agents)))]):
        # Each path avoids `occupied`, the cells by time of the agents planned so far.
        occupied = jnp.zeros((horizon + 1, *space_cells(size, begin[0]).shape), jnp.uint32)
        by_agent = {}
        for agent in agents_in_order:
            by_agent[agent] = _plan_path(size, steps, begin[agent], end[agent], closer[agent], occupied)
            occupied = occupied | by_agent[agent]
        path = jnp.stack([by_agent[agent] for agent in range(agents)])
        paths.append(path)
        found.append(functools.reduce(jnp.bitwise_and, any_cell(path[:, 0])))
    return _pick_first_attempt(size, jnp.stack(found), jnp.stack(paths))


@functools.partial(jax.jit, static_argnums=0)  # so that it is traced once, and not for each agent and order
def _plan_path(
    size: int, steps: jax.Array, begin: jax.Array, end: jax.Array, closer: jax.Array, occupied: jax.Array
) -> jax.Array:
    """A shortest path of one agent that meets no other, for each of the ORDERS: its cells by time, like `occupied`.

    A path that does not exist has no cells.

    Args:
        size: n, the cells on a side of the boards.
        steps: int32 [], after which every agent is home.
        begin: uint32 [C, U], the cell where each path begins.
        end: uint32 [C, U], the cell where it ends.
        closer: uint32 [4, C, U], the cells from which each move leads one step nearer to the end.
        occupied: uint32 [T + 1, C', U], the spaced cells of other agents by time.
    """
    layout = _FlatCells(size, begin.shape[1])
    begin, end, closer = begin.reshape(-1), end.reshape(-1), closer.reshape(4, -1)
    flat = occupied.reshape(occupied.shape[0], -1)
    good, legal = _reachable_backward(layout, steps, end, closer, flat)
    return _walk_forward(layout, steps, begin & good, end, legal).reshape(occupied.shape)


def _reachable_backward(
    layout: _FlatCells, steps: jax.Array, end: jax.Array, closer: jax.Array, occupied: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The cells from which the end can be reached in time, and the moves that lead there.

    With O_t the occupied cells at time t, G_t the cells from which the end can still be reached, and M_{t,d} the cells
    from which move d at time t keeps it so:

        G_steps = end & ~O_steps
        M_{t,d} = cells c of closer_d with c + d in G_{t+1}, unless c + d is in O_t and c in O_{t+1}
        G_t     = (M_{t,0} | .. | M_{t,3} | end & G_{t+1}) & ~O_t

    The exception is the swap: another agent leaves c + d while an agent enters c. With one other agent it is exactly
    the swap; with more it sometimes forbids a legal move, which costs a certificate but makes no certificate wrong.

    Args:
        layout: where the cells lie in a buffer of S words.
        steps: int32 [], the time of the last arrival.
        end: uint32 [C U], one cell a board.
        closer: uint32 [4, C U], the cells from which each move leads one step nearer to the end.
        occupied: uint32 [T + 1, S], the cells of other agents by time.

    Returns: G_0, uint32 [C U], and M, uint32 [T, 4, S].
    """

    def step_back(i, carry):
        # `good` holds G_{time+1}.
        good, spare, legal = carry
        time = steps - 1 - i
        now, soon = _at_time(occupied, time), layout.read_cells(_at_time(occupied, time + 1))
        moves = [
            closer[d] & layout.read_cells(good, by) & ~(layout.read_cells(now, by) & soon)
            for d, by in enumerate(layout.moves)
        ]
        stays = end & layout.read_cells(good)
        reached = (functools.reduce(jnp.bitwise_or, moves) | stays) & ~layout.read_cells(now)
        for d, move in enumerate(moves):
            legal = jax.lax.dynamic_update_slice(legal, move[None, None], (time, d, layout.margin))
        # G_time goes into the spare buffer, which was last read one step ago: none is read and written at once.
        return layout.write_cells(spare, reached), good, legal

    nowhere = jnp.zeros_like(occupied[0])
    last = layout.write_cells(nowhere, end & ~layout.read_cells(_at_time(occupied, steps)))
    legal = jnp.zeros((occupied.shape[0] - 1, 4, *nowhere.shape), jnp.uint32)
    good, _, legal = jax.lax.fori_loop(0, steps, step_back, (last, nowhere, legal))
    return layout.read_cells(good), legal


def _walk_forward(
    layout: _FlatCells, steps: jax.Array, begin: jax.Array, end: jax.Array, legal: jax.Array
) -> jax.Array:
    """The path that takes the first legal move of its order at every step: its cells by time, uint32 [T + 1, S].

    Its cell at time t is in G_t of `_reachable_backward`. So until it is home it has a move in M_t, each move leads
    into G_{t+1}, and it arrives by time `steps`.

    Args:
        layout: where the cells lie in a buffer of S words.
        steps: int32 [], the time of the last arrival.
        begin: uint32 [C U], in G_0, at most one cell a board.
        end: uint32 [C U], one cell a board.
        legal: uint32 [T, 4, S], M of `_reachable_backward`.
    """
    repeats = legal.shape[-1] // layout.units
    before = {pair: jnp.tile(_mask_precedence(*pair), repeats) for pair in itertools.permutations(range(4), 2)}

    def step_forward(time, path):
        here, leaving = _at_time(path, time), _at_time(legal, time)
        arrived = []
        for d, by in enumerate(layout.moves):
            # Move d is taken where no move that comes before it in the unit's order is legal.
            preferred = functools.reduce(jnp.bitwise_or, [leaving[e] & before[e, d] for e in range(4) if e != d])
            arrived.append(layout.read_cells(here & leaving[d] & ~preferred, -by))
        following = functools.reduce(jnp.bitwise_or, arrived, layout.read_cells(here) & end)
        return jax.lax.dynamic_update_slice(path, following[None], (time + 1, layout.margin))

    nowhere = jnp.zeros((legal.shape[0] + 1, legal.shape[-1]), jnp.uint32)
    path = jax.lax.dynamic_update_slice(nowhere, begin[None], (0, layout.margin))
    return jax.lax.fori_loop(0, steps, step_forward, path)


def _at_time(stack: jax.Array, time: jax.Array) -> jax.Array:
    return jax.lax.dynamic_index_in_dim(stack, time, keepdims=False)


def _pick_first_attempt(size: int, found: jax.Array, paths: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first attempt that succeeded: uint32 [P, U] and [P, K, T + 1, C', U] to bool [W, 32], int8 [W, 32, K, T].

    The attempts are P orders of the agents, and in each unit of U the ORDERS.
    """
    attempts = found.reshape(found.shape[0] * len(ORDERS), -1)
    done, chosen = jnp.zeros_like(attempts[0]), []
    for attempt in attempts:
        # `done` holds the boards on which an earlier attempt succeeded.
        chosen.append(attempt & ~done)
        done = done | attempt
    mask = jnp.stack(chosen).reshape(found.shape)
    picked = functools.reduce(jnp.bitwise_or, [path & keep for path, keep in zip(paths, mask, strict=True)])
    by_word = functools.reduce(jnp.bitwise_or, jnp.split(picked, len(ORDERS), axis=-1))  # [K, T + 1, C', W]
    # A move is read off two neighbouring cells at consecutive times.
    now, soon = by_word[:, :-1], by_word[:, 1:]
    taken = jnp.stack(
        [any_cell(read_spaced(size, now) & read_spaced(size, soon, by)) for by in move_offsets(size)[:4]]
    )  # [4, K, T, W]
    lanes = jnp.arange(BOARDS_PER_WORD)
    by_lane = jnp.moveaxis(taken, 3, 1)[:, :, None]
    by_board = read_bit(by_lane, lanes.reshape(-1, 1, 1)).astype(jnp.int8)  # [4, W, 32, K, T]
    moves = functools.reduce(jnp.add, [by_board[move] * jnp.int8(move - PAD) for move in range(4)])
    return read_bit(done[:, None], lanes) == 1, moves + jnp.int8(PAD)


def _mask_precedence(move: int, other: int) -> jax.Array:
    """All ones for the ORDERS in which `move` comes before `other`: uint32 [U]."""
    ones = [0xFFFFFFFF if order.index(move) < order.index(other) else 0 for order in ORDERS]
    return jnp.repeat(jnp.array(ones, jnp.uint32), WORDS)


def _find_closer_moves(distance: jax.Array) -> jax.Array:
    """The cells from which each move leads one step nearer: int16 [W, 32, K, n, n] to uint32 [K, 4, C, U]."""
    size = distance.shape[-1]
    around = jnp.pad(distance, ((0, 0), (0, 0), (0, 0), (1, 1), (1, 1)), constant_values=NO_PATH)
    nearer = [
        around[..., 1 + row : 1 + row + size, 1 + column : 1 + column + size] == distance - 1
        for row, column in DELTAS[:WAIT]
    ]
    packed = jnp.pad(jax.vmap(pack_bits)(jnp.stack(nearer, axis=3)), ((0, 0), (0, 0), (0, 0), (0, 0), (0, 1)))
    return _repeat_by_order(packed.reshape(*packed.shape[:3], -1))


def _mark_cells(size: int, cells: jax.Array) -> jax.Array:
    """One cell for each agent and board: int32 [W, 32, K, 2] to uint32 [K, C, U]."""
    index = jnp.moveaxis(cell_index(size, cells), 2, 1)
    return _repeat_by_order(one_hots(index, cell_count(size)))


def _repeat_by_order(words: jax.Array) -> jax.Array:
    """uint32 [W, ..., C] to [..., C, U], the words once for each of the ORDERS."""
    return jnp.concatenate([jnp.moveaxis(words, 0, -1)] * len(ORDERS), axis=-1)
