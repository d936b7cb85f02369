"""Attempts at boards for two agents, as programs for accelerators: maps are drawn, flooded, picked from, and labelled.

An attempt floods a map once from its goals. The flood gives all starts, says which of them force a wait, and costs the
start that is picked. Its layers are saved, so the plan needs no second flood; only makespans do. An attempt draws
what `attempts` draws for the same board and number: the same random numbers choose among the same states in the same
order.
"""

import functools

import flax.struct
import jax
import jax.numpy as jnp
from jax import lax

from lakewright.core_jax.generator.placements import make_lots, scale_below, scatter_cells
from lakewright.core_jax.solver.accelerator.cell_sets import (
    WORD,
    CellSet,
    pack_free_cells,
    spread_flag,
)
from lakewright.core_jax.solver.accelerator.cost_floods import CostFlood, find_start_costs, flood_everywhere
from lakewright.core_jax.solver.accelerator.joint_sets import JointSet, by_cell_of_a, read_row
from lakewright.core_jax.solver.accelerator.makespan_floods import UNKNOWN, flood_for_makespans
from lakewright.core_jax.solver.accelerator.plan_walks import walk_down_costs
from lakewright.core_jax.solver.accelerator.shortest_paths import IDLE
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import Board

NEVER = 1 << 30  # larger than the number of any attempt


@flax.struct.dataclass
class Stream:
    """The streams of B boards.

    holes: int32 [], on a board. keys: [2], of the strata without and with a forced wait. wait: bool [B], the strata.
    index: uint32 [B], the boards. number: int32 [B], the first attempt at each.
    """

    holes: jax.Array
    keys: jax.Array
    wait: jax.Array
    index: jax.Array
    number: jax.Array

    def at(self, rows: jax.Array, number: jax.Array) -> "Stream":
        """Streams of attempts at some boards: their places `rows` and numbers of attempts, int32 [G] both."""
        return self.replace(wait=self.wait[rows], index=self.index[rows], number=number)  # type: ignore[attr-defined]


@flax.struct.dataclass
class AttemptBatch:
    """G attempts. free: V words [G]. cells: int32 [4, G], starts, then goals. cost: int32 [G]. moves: uint8 [T, G].

    met: bool [G], which have their stratum. known: bool [G], whether the flood came to its end; if not, the attempt
    must be repeated with a deeper one, and nothing else of it counts.
    """

    free: CellSet
    cells: jax.Array
    cost: jax.Array
    moves: jax.Array
    met: jax.Array
    known: jax.Array


@flax.struct.dataclass
class BoardProgress:
    """B boards on their way.

    free, cells, cost, moves: as in `AttemptBatch`, of those that are drawn. number: int32 [B], of the attempt that drew
    the board, else of the first that is not decided. is_open: bool [B], not yet drawn. is_deep: bool [B], whose attempt
    needs a deeper flood; no other is made at these boards until it is decided, so that the lowest attempt wins.
    """

    free: CellSet
    cells: jax.Array
    cost: jax.Array
    moves: jax.Array
    number: jax.Array
    is_open: jax.Array
    is_deep: jax.Array


@program(static_argnums=(0, 1, 2, 3))
def begin_boards(size: int, depth: int, steps: int, group: int, stream: Stream, spare: jax.Array) -> BoardProgress:
    """Makes the first attempts at B boards, B a multiple of `group`, in groups one after another.

    Args:
        size: n, the cells on a side of the boards.
        depth: layers of a flood.
        steps: length of the plans in the result, at least `depth`.
        group: number of boards flooded at once.
        stream: the boards' streams.
        spare: int32 [], how many floods of a group may stay unfinished.
    """
    rows = lax.iota(jnp.int32, len(stream.wait)).reshape(-1, group)

    def attempt_group(_, rows):
        return None, make_attempts(size, depth, stream.at(rows, stream.number[rows]), spare)

    _, made = lax.scan(attempt_group, None, rows)

    def join(field: jax.Array) -> jax.Array:
        """[groups, ..., G] to [..., B]."""
        return jnp.moveaxis(field, 0, -2).reshape(*field.shape[1:-1], -1)

    made = jax.tree.map(join, made)
    moves = jnp.pad(made.moves, ((0, steps - depth), (0, 0)), constant_values=IDLE)
    number = stream.number + (made.known & ~made.met).astype(jnp.int32)
    is_open = ~(made.known & made.met)
    return BoardProgress(made.free, made.cells, made.cost, moves, number, is_open, jnp.zeros_like(is_open))


@program(static_argnums=(0, 1, 2))
def continue_boards(
    size: int, depth: int, group: int, stream: Stream, progress: BoardProgress, rounds: jax.Array
) -> BoardProgress:
    """Makes further attempts at open boards, in at most `rounds` groups, until no board is open that can go on.

    A group is always full: if fewer boards are open, it makes several attempts at each, and the lowest that has the
    stratum wins. So a board does not depend on its group, and rare strata cost no idle lanes.

    Args:
        size: n, the cells on a side of the boards.
        depth: layers of a flood, which finishes unless it needs more.
        group: number of attempts made at once.
        stream: the boards' streams.
        progress: the boards so far, with room for plans of at least `depth` steps.
        rounds: int32 [], the most groups.
    """

    def goes_on(carry):
        done, progress = carry
        return (done < rounds) & jnp.any(progress.is_open & ~progress.is_deep)

    def attempt_group(carry):
        done, progress = carry
        can_go = progress.is_open & ~progress.is_deep
        count = jnp.sum(can_go, dtype=jnp.int32)
        lane = lax.iota(jnp.int32, group)
        place, turn = lane % count, lane // count
        rows = jnp.nonzero(can_go, size=group, fill_value=0)[0].astype(jnp.int32)[place]
        number = progress.number[rows] + turn
        made = make_attempts(size, depth, stream.at(rows, number), jnp.int32(0))
        return done + 1, _take_lowest(progress, rows, number, made)

    return lax.while_loop(goes_on, attempt_group, (jnp.int32(0), progress))[1]


def _take_lowest(progress: BoardProgress, rows: jax.Array, number: jax.Array, made: AttemptBatch) -> BoardProgress:
    """The progress of boards with a group of attempts at some of them.

    Invariant: all attempts at a board below its `number` are known to lack the stratum. So the lowest that has it wins
    if no attempt below it is undecided.

    Args:
        progress: the boards so far.
        rows: int32 [G], places of boards.
        number: int32 [G], numbers of the attempts at them.
        made: results of the attempts.
    """
    boards, group = len(progress.is_open), len(rows)

    def find_lowest(among: jax.Array) -> jax.Array:
        return jnp.full(boards, NEVER, jnp.int32).at[rows].min(jnp.where(among, number, NEVER))

    met, unknown = find_lowest(made.known & made.met), find_lowest(~made.known)
    won = made.known & made.met & (number == met[rows]) & (met[rows] < unknown[rows])
    into = jnp.where(won, rows, boards + lax.iota(jnp.int32, group))  # beyond the boards: dropped

    def put(field: jax.Array, found: jax.Array) -> jax.Array:
        found = found.astype(field.dtype)
        return field.at[..., into].set(found, mode="drop", unique_indices=True)

    steps = made.moves.shape[0]
    moves = jnp.pad(made.moves, ((0, len(progress.moves) - steps), (0, 0)), constant_values=IDLE)
    tried = jnp.zeros(boards, jnp.int32).at[rows].add(1)
    drawn = met < unknown
    return BoardProgress(
        tuple(put(word, found) for word, found in zip(progress.free, made.free, strict=True)),
        put(progress.cells, made.cells),
        put(progress.cost, made.cost),
        put(progress.moves, moves),
        jnp.where(drawn, met, jnp.where(unknown < NEVER, unknown, progress.number + tried)),
        progress.is_open & ~drawn,
        progress.is_deep | (~drawn & (unknown < NEVER)),
    )


@program
def count_open(progress: BoardProgress) -> jax.Array:
    """int32 [3]: the open boards that can go on, those that need a deeper flood, the highest number of an open one."""
    can_go = progress.is_open & ~progress.is_deep
    return jnp.stack(
        [
            jnp.sum(can_go, dtype=jnp.int32),
            jnp.sum(progress.is_open & progress.is_deep, dtype=jnp.int32),
            jnp.max(jnp.where(progress.is_open, progress.number, 0)),
        ]
    )


@program(static_argnums=0)
def lengthen_plans(steps: int, progress: BoardProgress) -> BoardProgress:
    """The same with room for plans of `steps`."""
    more = ((0, steps - len(progress.moves)), (0, 0))
    return progress.replace(moves=jnp.pad(progress.moves, more, constant_values=IDLE))  # type: ignore[attr-defined]


@program(static_argnums=(0, 1, 2))
def find_makespans(
    size: int, group: int, tail: int, free: CellSet, cells: jax.Array, cost: jax.Array, spare: jax.Array
) -> jax.Array:
    """The makespans of B solvable boards, int32 [B]; a multiple of `group`, which are flooded at once, by rising cost.

    Args:
        size: n, the cells on a side of the boards.
        group: number of boards flooded at once.
        tail: the same for boards that their group's flood left open.
        free: V words uint32 [B].
        cells: int32 [4, B].
        cost: int32 [B].
        spare: int32 [], how many boards a group's flood may leave open.
    """
    boards = cost.shape[0]
    _, order = lax.sort((cost.astype(jnp.uint32), lax.iota(jnp.uint32, boards)), num_keys=1, is_stable=True)
    rows = order.astype(jnp.int32)

    def flood_group(_, rows):
        return None, flood_for_makespans(size, free, cells, rows, spare)

    _, found = lax.scan(flood_group, None, rows.reshape(-1, group))
    makespan = jnp.zeros(boards, jnp.int32).at[rows].set(found.reshape(-1), unique_indices=True)

    def flood_tail(makespan):
        is_left = makespan == UNKNOWN
        place = lax.iota(jnp.int32, tail) % jnp.sum(is_left, dtype=jnp.int32)
        rows = jnp.nonzero(is_left, size=tail, fill_value=0)[0].astype(jnp.int32)[place]
        return makespan.at[rows].set(flood_for_makespans(size, free, cells, rows, jnp.int32(0)))

    return lax.while_loop(lambda makespan: jnp.any(makespan == UNKNOWN), flood_tail, makespan)


def make_attempts(size: int, depth: int, stream: Stream, spare: jax.Array) -> AttemptBatch:
    """Makes G attempts.

    The start is picked among the states that force a wait, or among the others, so a board's label `wait_required` is
    its stratum.

    Args:
        size: n, the cells on a side of the boards.
        depth: layers of a flood, a multiple of 4.
        stream: the boards' streams.
        spare: see `begin_boards`.
    """
    free, goals, tickets = _draw_maps(size, stream)
    flood = CostFlood.of_boards(size, free, goals)
    layers, reached, unforced, known = flood_everywhere(flood, depth, goals, spare)
    home = tuple(x | y for x, y in zip(*flood.home, strict=True))
    off_a, with_wait = ~by_cell_of_a(size, home), spread_flag(stream.wait)[None, None]
    states = tuple(
        r & (u ^ with_wait) & off_a & ~h[None, None] for r, u, h in zip(reached, unforced, home, strict=True)
    )
    starts, met = pick_states(size, lax.optimization_barrier(states), tickets)
    cost = jnp.where(met & known, find_start_costs(layers, starts), jnp.int32(0))
    moves = walk_down_costs(size, layers, starts, cost)
    return AttemptBatch(free, jnp.concatenate([starts, goals]), cost, moves, met, known)


def _draw_maps(size: int, stream: Stream) -> tuple[CellSet, jax.Array, jax.Array]:
    """The maps of G attempts: V words uint32 [G], goals int32 [2, G], and random uint32 [G] to pick the starts by."""

    def draw_one(wait, index, number):
        key = jax.random.fold_in(jax.random.fold_in(stream.keys[wait.astype(int)], index), number)
        bits = jax.random.bits(key, (size * size + 1,))
        return make_lots(bits[1:]), bits[0]

    lots, tickets = jax.vmap(draw_one)(stream.wait, stream.index, stream.number.astype(jnp.uint32))
    free, goals = jax.vmap(scatter_cells, (0, 0, None, None))(lots, jnp.sort(lots, axis=1), 2, stream.holes)
    words = pack_free_cells(Board(~free, goals, goals))
    return lax.optimization_barrier((words, (goals[..., 0] * size + goals[..., 1]).T, tickets))


def pick_states(size: int, states: JointSet, tickets: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One state of each board among those set: both cells, int32 [2, G], and whether there were any, bool [G].

    The states are counted by A's cell and then by B's, as `attempts.pick_states` does. tickets: uint32 [G], random.
    Invariant: `left` is the number of states to pass over from the place on that was found so far.
    """
    counts = functools.reduce(jnp.add, [lax.population_count(word).astype(jnp.int32) for word in states])
    in_row = jnp.sum(counts, axis=1, dtype=jnp.int32)  # [n, G]
    total = jnp.sum(in_row, axis=0, dtype=jnp.int32)
    row, left = _pass_over(list(in_row), scale_below(tickets, total))
    in_column = [_choose(list(counts[:, column]), row) for column in range(size)]
    column, left = _pass_over(in_column, left)
    a = row * size + column
    line = read_row(states, a)
    word, left = _pass_over([lax.population_count(bits).astype(jnp.int32) for bits in line], left)
    b = word * WORD + _find_bit(_choose(list(line), word), left)
    return jnp.stack([jnp.where(total > 0, a, 0), jnp.where(total > 0, b, 0)]), total > 0


def _pass_over(counts: list[jax.Array], left: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first of some counts that `left`, int32 [G], does not pass over, and what is left there: int32 [G] both."""
    place, rest, before = jnp.zeros_like(left), left, jnp.zeros_like(left)
    for count in counts[:-1]:
        before = before + count
        passed = left >= before
        place, rest = place + passed.astype(jnp.int32), jnp.where(passed, left - before, rest)
    return place, rest


def _choose(fields: list[jax.Array], place: jax.Array) -> jax.Array:
    """The field, [G] each, at a place, int32 [G]."""
    return functools.reduce(lambda found, k: jnp.where(place == k, fields[k], found), range(1, len(fields)), fields[0])


def _find_bit(word: jax.Array, left: jax.Array) -> jax.Array:
    """The place of the set bit that `left` other set bits precede: uint32, int32 [G] to int32 [G].

    Halves the word at each step: if its lower half has at most `left` set bits, the bit is in the upper half.
    """
    place = jnp.zeros_like(left)
    for half in (16, 8, 4, 2, 1):
        lower = word >> place.astype(jnp.uint32) & jnp.uint32((1 << half) - 1)
        count = lax.population_count(lower).astype(jnp.int32)
        is_above = left >= count
        place, left = jnp.where(is_above, place + half, place), jnp.where(is_above, left - count, left)
    return place
