"""Labels of boards for three agents by the layout for accelerators, on any platform; without plans.

    1. pairs     optima and a plan of each two agents, as if the third were not there: they bound the team's optima.
    2. third     a shortest path of the third that never meets the two: with their plan it is a plan of the team.
    3. makespans floods of all joint states of the boards whose makespan no such plan has.
    4. costs     floods of sums of costs likewise, and of those without waits.

Most boards end with the second phase. The certificate: let c be the optimum of two agents and d the distance of the
third. No plan of the team costs less than c + d, so a plan of that cost is optimal. In each other plan of that cost,
too, the third takes a shortest path and the two pay c, so the team must wait if and only if the two must.
"""

from functools import partial

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake.board_arrays import check_boards
from lakewright.core_jax.lake.label_batches import round_horizon
from lakewright.core_jax.solver.accelerator.cell_sets import CellSet, word_count
from lakewright.core_jax.solver.accelerator.device_solver import fill_up, label_cells
from lakewright.core_jax.solver.accelerator.makespan_floods import UNKNOWN
from lakewright.core_jax.solver.accelerator.packing import unload_boards
from lakewright.core_jax.solver.accelerator.row_groups import flood_unknown
from lakewright.core_jax.solver.accelerator.shortest_paths import IDLE, SinglePaths, find_third_paths, measure_paths
from lakewright.core_jax.solver.accelerator.sizes import (
    Sizes,
    choose_sizes,
    first_depth,
    flood_bytes,
    make_with_room,
    memory_per_thread,
)
from lakewright.core_jax.solver.accelerator.team_floods import PAIRS, flood_for_team_costs, flood_for_team_makespans
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import on_all_cores, on_gpu
from lakewright.core_jax.support.profiling import in_phase
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import Board, Certificate, Labels, Status

LARGEST = 10  # cells on a side
# Sets of states that a board takes while it is flooded: compiled for an H100 it takes 4, and on a processor, where XLA
# fuses less, 41 if a set has one word and 111 if it has four.
HELD, HELD_BY_WORD = 8, 45


@flax.struct.dataclass
class TeamBounds:
    """Optima, or bounds of them, of B boards of three agents by their pairs.

    alone: int32 [B], the sum of the distances. least: int32 [B], a lower bound on the slack, the cost beyond that.
    span: int32 [B], a lower bound on the makespan. makespan, cost, forced: int32 [B], the optima and whether a wait is
    required, 1 or 0; -1, -1 and 0 if unsolvable, UNKNOWN if pairs do not decide.
    """

    alone: jax.Array
    least: jax.Array
    span: jax.Array
    makespan: jax.Array
    cost: jax.Array
    forced: jax.Array


@flax.struct.dataclass
class _Pairs:
    """Of each of PAIRS, [3, B]: makespan, cost, wait, see `DeviceLabels`; fits, whether the third agent's path never
    meets the two, bool; length, the steps of all three then, int32.
    """

    makespan: jax.Array
    cost: jax.Array
    wait: jax.Array
    fits: jax.Array
    length: jax.Array


@stated_settings()
def label_teams_on_device(boards: Board, memory: int | None = None) -> Labels:
    """Labels a batch of boards for three agents as `solve` does, but without plans, by the layout for accelerators.

    Runs on every platform. A label that bounds of pairs prove has the certificate BOUND, each other FLOOD, also if
    `solve` says SEARCH. Raises InputError on another number of agents, on boards larger than LARGEST, on wrong arrays,
    see `check_boards`, or if the memory does not hold the smallest block.

    Args:
        boards: with leading axis B, any B >= 1, of one size.
        memory: bytes that each thread may take on its device; by default a share of the device's own.

    Returns: `Labels` of numpy arrays with leading axis B; moves are int8 [B, 3, 0].
    """
    boards = check_boards(boards)
    count, agents, size = len(boards.starts), boards.starts.shape[1], boards.holes.shape[-1]
    if agents != 3 or size > LARGEST:
        raise InputError(
            f"boards are {size}x{size} with {agents} agents: floods for teams label boards of three agents, of at most "
            f"{LARGEST}x{LARGEST}; call solve"
        )
    sizes = choose_sizes(size, count, memory_per_thread() if memory is None else memory)

    def label_rows(given: Sizes, begin: int) -> np.ndarray:
        rows = jax.tree.map(lambda field: field[begin : begin + given.block], boards)
        free, cells = unload_boards(size, fill_up(rows, given.block))
        return np.asarray(label_team_cells(size, given, free, cells))

    def label_from(begin: int) -> list[np.ndarray]:
        return make_with_room(label_rows, sizes, begin, count)

    kind = (label_teams_on_device.__qualname__, size, sizes)
    parts = on_all_cores(label_from, range(0, count, sizes.block), kind)
    return _make_labels(np.concatenate([part for some in parts for part in some], axis=1)[:, :count])


def label_team_cells(size: int, sizes: Sizes, free: CellSet, cells: jax.Array) -> jax.Array:
    """The labels of boards of three agents on the default device: int32 [4, B], makespan, cost, -1 if unsolvable,
    whether a wait is required, and whether bounds prove all of these.

    Args:
        size: n, the cells on a side of the boards.
        sizes: the boards' as boards of two agents.
        free: V words uint32 [B].
        cells: int32 [6, B], all starts, then all goals.
    """
    paths = in_phase("distances", measure_paths, size, free, cells)
    pairs = [_label_pair(size, sizes, free, cells, paths, place) for place in range(len(PAIRS))]
    bounds = _combine_pairs(paths.distance, jax.tree.map(lambda *fields: jnp.stack(fields), *pairs))
    few = choose_team_sizes(size, sizes)
    # Boards whose pairs have similar optima are flooded together.
    in_time = partial(flood_for_team_makespans, size, free, cells)
    makespan = in_phase("floods of makespans", flood_unknown, bounds.makespan, bounds.span, few, in_time)
    known, most = _know_costs(bounds, makespan)
    cheaply = partial(flood_for_team_costs, size, True, free, cells, most)
    cost = in_phase("floods of sums of costs", flood_unknown, known, bounds.alone + bounds.least, few, cheaply)
    forced, known = _know_waits(bounds, cost)
    moving = partial(flood_for_team_costs, size, False, free, cells, cost)
    unforced = in_phase("floods without waits", flood_unknown, known, cost, few, moving)
    return _join_labels(bounds, paths.distance, (makespan, cost, forced | (unforced != cost)))


def choose_team_sizes(size: int, sizes: Sizes) -> Sizes:
    """The boards of three agents to flood at once: as many as fit where the pairs' saved layers were, or one.

    Args:
        size: n, the cells on a side of the boards.
        sizes: the boards' as boards of two agents.
    """
    held = HELD if on_gpu() else HELD_BY_WORD * word_count(size)
    fit = flood_bytes(size, sizes.flood, first_depth(size)) // (4 * word_count(size) * size**4 * held)
    group = 1 << max(fit.bit_length() - 1, 0)
    return Sizes(sizes.block, group, max(group // 8, 1))


def _label_pair(size: int, sizes: Sizes, free: CellSet, cells: jax.Array, paths: SinglePaths, place: int) -> _Pairs:
    """Optima of two agents of each board, [B], and whether the third fits their plan.

    Args:
        size, sizes, free, cells: see `label_team_cells`.
        paths: the single paths of all three agents.
        place: the pair's in PAIRS.
    """
    one, two = PAIRS[place]
    third = 3 - one - two
    labels = label_cells(size, sizes, free, cells[jnp.array([one, two, 3 + one, 3 + two])])
    moves, horizon = labels.moves, round_horizon(int(paths.furthest))
    if len(moves) < horizon:  # the third agent may walk for longer than the two
        moves = jnp.pad(moves, ((0, horizon - len(moves)), (0, 0)), constant_values=IDLE)
    of_third = (cells[3 + third], paths.distance[third])
    ends = cells[jnp.array([3 + one, 3 + two, third])]
    fits, length = in_phase("certificates", find_third_paths, size, ends, of_third, paths.closer[third], moves)
    return _Pairs(labels.makespan, labels.cost, labels.wait, fits & (labels.cost >= 0), length)


@program
def _combine_pairs(distance: jax.Array, pairs: _Pairs) -> TeamBounds:
    """Bounds by the distances, int32 [3, B], and the pairs; excess: what two pay beyond their distances."""
    # A pair that has no plan, as one of which an agent has no path, leaves the team none.
    solvable = jnp.all(pairs.cost >= 0, axis=0)
    alone, span = jnp.sum(distance, axis=0, dtype=jnp.int32), jnp.max(pairs.makespan, axis=0)
    excess = pairs.cost - alone + distance[::-1]  # the third agents of PAIRS are 2, 1, 0
    least = jnp.maximum(jnp.max(excess, axis=0), (jnp.sum(excess, axis=0, dtype=jnp.int32) + 1) // 2)
    proven = pairs.fits & (excess == least)
    in_time = jnp.any(pairs.fits & (pairs.length == span), axis=0)
    known, waits = jnp.any(proven, axis=0), jnp.any(proven & pairs.wait, axis=0)

    def choose(is_known: jax.Array, number: jax.Array, none: int) -> jax.Array:
        return jnp.where(solvable, jnp.where(is_known, number, jnp.int32(UNKNOWN)), jnp.int32(none))

    cost = choose(known, alone + least, -1)
    return TeamBounds(alone, least, span, choose(in_time, span, -1), cost, choose(known, waits.astype(jnp.int32), 0))


@program
def _know_costs(bounds: TeamBounds, makespan: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Costs, int32 [B], UNKNOWN of boards that have a plan, by their makespan; and the largest cost to look for."""
    cost = jnp.where(makespan >= 0, bounds.cost, jnp.int32(-1))
    return cost, 3 * makespan


@program
def _know_waits(bounds: TeamBounds, cost: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The boards known to require a wait, bool [B]; sums of costs without waits, UNKNOWN if it may be required."""
    slack = cost - bounds.alone
    # Every detour without a wait is even.
    forced = (cost >= 0) & ((bounds.forced == 1) | (slack % 2 == 1))
    is_open = (cost >= 0) & (bounds.forced == UNKNOWN) & (slack > 0) & ~forced
    return forced, jnp.where(is_open, jnp.int32(UNKNOWN), cost)


@program
def _join_labels(bounds: TeamBounds, distance: jax.Array, labels: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    """The rows of `label_team_cells`.

    Args:
        bounds: by pairs.
        distance: int32 [3, B].
        labels: makespan and cost, int32 [B], and whether a wait is required, bool [B].
    """
    makespan, cost, waits = labels
    at_bounds = (cost == bounds.alone + bounds.least) & (makespan == jnp.max(distance, axis=0)) & ~waits
    by_bounds = jnp.where(cost >= 0, at_bounds, jnp.any(distance < 0, axis=0))
    return jnp.stack([makespan, cost, waits.astype(jnp.int32), by_bounds.astype(jnp.int32)])


def _make_labels(found: np.ndarray) -> Labels:
    """Labels of the rows of `label_team_cells`, int32 [4, B]."""
    makespan, cost, waits, by_bounds = found
    solvable = cost >= 0
    return Labels(
        status=np.where(solvable, np.int32(Status.SOLVABLE), np.int32(Status.UNSOLVABLE)),  # type: ignore[arg-type]
        certificate=np.where(by_bounds, np.int32(Certificate.BOUND), np.int32(Certificate.FLOOD)),  # type: ignore[arg-type]
        makespan=makespan,
        sum_of_costs=cost,
        wait_required=waits == 1,
        moves=np.zeros((len(cost), 3, 0), np.int8),  # type: ignore[arg-type]
    )
