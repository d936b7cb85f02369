"""Optimal plans and certificates, on batches of one map size and number of agents.

A label comes from shortest paths that meet the lower bounds, or else, for two agents, from an exhaustive flood
(`core_jax.solver.two_agents`), for more from a search on the host (`core_jax.solver.teams`). With up to three agents no
board is ever undecided.
"""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.lake.bitboards import BOARDS_PER_WORD, by_word, cell_index, pack_cells
from lakewright.core_jax.lake.board_arrays import check_boards
from lakewright.core_jax.lake.label_batches import join_labels, round_horizon, take_rows, with_rows
from lakewright.core_jax.solver.accelerator.sizes import suits_device, suits_teams
from lakewright.core_jax.solver.memory import check_memory
from lakewright.core_jax.solver.single_agent.certificate import Certified, certify_boards
from lakewright.core_jax.solver.single_agent.distances import NO_PATH, measure_distances
from lakewright.core_jax.solver.teams.team_solver import BUDGET, SolvedBoards, SolverStage
from lakewright.core_jax.solver.two_agents.joint_floods import CostTable, flood_costs, flood_makespans
from lakewright.core_jax.solver.two_agents.plan_extraction import (
    extract_cheapest_plans,
    extract_fastest_plans,
    map_boards,
    read_joint_cost,
    read_state_number,
)
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import in_blocks, on_gpu, on_host
from lakewright.core_jax.support.profiling import in_phase
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.types import Board, Certificate, Labels, Status

BLOCK = 512  # boards flooded at once, 16 words
CERTIFY_BLOCK = 512
OPEN_BLOCK = 128  # boards left open by the certificate: few, so a block is not to be mostly filling


def solve(
    boards: Board, makespan_plans: bool = False, budget: int = BUDGET, wanted: np.ndarray | None = None
) -> Labels:
    """Labels a batch of boards of one size and number of agents, up to MAX_AGENTS.

    Shortest paths that never meet decide most boards; the others are flooded for two agents, searched for more. On a
    GPU `solve_on_device` labels boards of two agents, of at most 16x16 if the GPU's memory holds a block of them; the
    host labels all others. Where they are labelled changes no label. `label_boards` returns no plans and is faster for
    three agents there. Raises InputError on wrong arrays, see `check_boards`, on too many agents, or if the boards take
    too much memory.

    Args:
        boards: with leading axis B, any B >= 1.
        makespan_plans: whether to return `makespan_moves` too.
        budget: conflicts of the satisfiability solver for four or more agents, after which a board stays undecided.
        wanted: bool [B], or None. If `wait_required[b]` of a board of three or more agents differs from it, makespan
            and plan of b may be omitted (-1, empty).

    Returns: `Labels` of numpy arrays with leading axis B.
    """
    return solve_with_stages(boards, makespan_plans, budget, wanted).labels


@stated_settings()
def label_boards(boards: Board) -> Labels:
    """Labels a batch of boards as `solve` does, for callers who need no plans: `moves` is int8 [B, K, 0].

    On a GPU `label_teams_on_device` labels boards of three agents, of at most 8x8 if the GPU's memory holds a block of
    them; `solve` labels all others. Where they are labelled changes no label, except that FLOOD may stand for SEARCH as
    the `certificate`. Raises InputError as `solve`.

    Args:
        boards: with leading axis B, any B >= 1.
    """
    boards = check_boards(boards)
    if boards.starts.shape[1] == 3 and on_gpu() and suits_teams(boards.holes.shape[-1]):
        from lakewright.core_jax.solver.accelerator.team_labels import label_teams_on_device  # takes its time

        return label_teams_on_device(boards)
    labels = solve(boards)
    return dataclasses.replace(labels, moves=labels.moves[..., :0])


@stated_settings()
def solve_with_stages(
    boards: Board, makespan_plans: bool = False, budget: int = BUDGET, wanted: np.ndarray | None = None
) -> SolvedBoards:
    """`solve`, and what decided each board.

    Args: boards, makespan_plans, budget, wanted: see `solve`.
    """
    boards = check_boards(boards)
    agents, size = boards.starts.shape[1], boards.holes.shape[-1]
    prepare_solver(size, agents)
    if agents == 2 and not makespan_plans and on_gpu() and suits_device(size):
        from lakewright.core_jax.solver.accelerator.device_solver import solve_on_device  # takes its time

        labels = solve_on_device(boards)
        proven = np.asarray(labels.certificate) == Certificate.BOUND
        return SolvedBoards(
            labels, np.where(proven, SolverStage.CERTIFICATE, SolverStage.FLOOD), np.zeros(len(proven), int)
        )
    # By all cores of the host: teams are searched for there, and blocks of this layout are of a size for their caches.
    with on_host():
        return _solve_by_stages(boards, makespan_plans, budget, wanted)


def _solve_by_stages(boards: Board, makespan_plans: bool, budget: int, wanted: np.ndarray | None) -> SolvedBoards:
    """Like `solve_with_stages`, by the layout for CPUs, or a search."""
    agents = boards.starts.shape[1]
    certified = in_blocks(_certify_block, boards, CERTIFY_BLOCK)
    labels = join_labels([part.labels for part in certified])
    if makespan_plans:  # shortest paths are optimal for both objectives
        labels = dataclasses.replace(labels, makespan_moves=labels.moves)
    proven = np.concatenate([part.proven for part in certified])
    found = SolvedBoards(
        labels, np.where(proven, SolverStage.CERTIFICATE, SolverStage.NOTHING), np.zeros(len(proven), int)
    )
    open_rows = np.flatnonzero(~proven)
    if not len(open_rows):
        return found
    # Boards of similar costs side by side, as each word is flooded as far as its largest.
    open_rows = open_rows[np.argsort(labels.sum_of_costs[open_rows], kind="stable")]
    left = take_rows(boards, open_rows)
    if agents == 2:
        rest = SolvedBoards(solve_by_flood(left, makespan_plans), np.array(SolverStage.FLOOD), np.array(0))
    else:
        from lakewright.core_jax.solver.teams.team_solver import solve_teams  # as in `prepare_solver`

        rest = solve_teams(left, makespan_plans, budget, None if wanted is None else wanted[open_rows])
    found.stage[open_rows], found.conflicts[open_rows] = rest.stage, rest.conflicts
    return dataclasses.replace(found, labels=with_rows(labels, open_rows, rest.labels))


def prepare_solver(size: int, agents: int) -> None:
    """Begins to compile in another thread what takes long and is needed late; call it early, any number of times.

    Raises InputError as `solve`.
    """
    check_memory(size, agents)
    if agents > 2:
        from lakewright.core_jax.solver.teams.team_solver import start_compiling  # numba takes its time to import

        start_compiling()


@stated_settings()
def solve_by_flood(boards: Board, makespan_plans: bool = False) -> Labels:
    """The same labels for any two-agent boards, all from floods."""

    def of_block(block: Board) -> Labels:
        tables = in_phase("floods of sums of costs", flood_boards, ~block.holes, block.goals, block.starts)
        return read_labels(tables, block, makespan_plans)

    return join_labels(in_blocks(of_block, boards, OPEN_BLOCK))


def _certify_block(boards: Board) -> Certified:
    distance = in_phase("distances", measure_distances, boards)
    horizon = round_horizon(int(_find_furthest(distance)))
    return in_phase("certificates", certify_boards, horizon, boards, distance)


@program
def _find_furthest(distance: jax.Array) -> jax.Array:
    return jnp.max(jnp.where(distance < NO_PATH, distance, 0))


@program
def flood_boards(free: jax.Array, goals: jax.Array, starts: jax.Array | None = None) -> CostTable:
    """The cost tables of B maps, free bool [B, n, n], goals int32 [B, 2, 2].

    Each word of 32 ends on its own: at the fixed point or, given starts like goals, as soon as they are reached.
    """
    size = free.shape[-1]
    chex.assert_shape(goals, (free.shape[0], 2, 2))
    ends = [_index_by_word(size, cells) for cells in (goals, starts) if cells is not None]
    return flood_costs(size, _pack_boards(free), *ends)


def read_labels(tables: CostTable, boards: Board, makespan_plans: bool = False) -> Labels:
    """The labels and plans of B boards from the cost tables of their maps and goals."""
    size = boards.holes.shape[-1]
    labels, arrival, certain, longest = in_phase("floods of makespans", _read_optima, tables, boards)
    if not bool(certain):
        raise RuntimeError(f"a {size}x{size} board costs more than {tables.cost.shape[1]} bits hold: raise cost_bits")
    horizon = round_horizon(int(longest))  # no plan is longer than its cost
    labels = dataclasses.replace(
        labels, moves=in_phase("plans", extract_cheapest_plans, horizon, tables, boards.starts)
    )
    if not makespan_plans:
        return labels
    moves = in_phase("plans", extract_fastest_plans, horizon, arrival, ~boards.holes, boards.starts, labels.makespan)
    return dataclasses.replace(labels, makespan_moves=moves)


@program
def _read_optima(tables: CostTable, boards: Board) -> tuple[Labels, jax.Array, jax.Array, jax.Array]:
    """The labels of B boards, yet without plans; the makespans of all joint states in binary uint32 [W, bits, N, N];
    whether no flood ended too early, bool []; and the largest sum of costs.
    """
    size = boards.holes.shape[-1]
    starts = cell_index(size, boards.starts)
    cost, wait = map_boards(read_joint_cost, tables, starts)
    certain = jnp.all((cost >= 0) | jnp.repeat(tables.complete, BOARDS_PER_WORD))
    # A board without a plan ends at once: its goals count as reached in layer 0.
    sought = jnp.where((cost >= 0)[:, None, None], boards.starts, boards.goals)
    free, goals, sought = _pack_boards(~boards.holes), tables.goals, _index_by_word(size, sought)
    arrival, _ = flood_makespans(size, free, goals, sought)
    makespan = map_boards(read_state_number, arrival, starts)
    labels = Labels(
        status=jnp.where(cost >= 0, Status.SOLVABLE, Status.UNSOLVABLE),
        certificate=jnp.full_like(cost, Certificate.FLOOD),
        makespan=jnp.where(cost >= 0, makespan, -1),
        sum_of_costs=cost,
        wait_required=wait,
        moves=jnp.zeros((*boards.starts.shape[:2], 0), jnp.int8),
    )
    return labels, arrival, certain, jnp.max(cost)


def _pack_boards(free: jax.Array) -> jax.Array:
    """bool [B, n, n] to bitboards uint32 [W, N]."""
    return jax.vmap(pack_cells)(by_word(free))


def _index_by_word(size: int, cells: jax.Array) -> jax.Array:
    """Cells of two agents, int32 [B, 2, 2], as padded indices int32 [W, 2, 32]."""
    return jnp.swapaxes(by_word(cell_index(size, cells)), 1, 2)
