"""Optimal plans and certificates for two agents, on batches of one map size.

A label comes from a pair of shortest paths that meets the lower bounds, or else from an exhaustive flood: none is ever
undecided.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

import chex
import jax
import jax.numpy as jnp
import numpy as np

from core_jax.bitboards import by_word, cell_index, pack_cells
from core_jax.descent import each_board, joint_cost, optimal_plans
from core_jax.floods import CostTable, makespan_flood, sum_of_costs_flood
from core_jax.parallel import on_all_cores
from core_jax.shortest import FAR, Certified, certify, distances
from core_jax.types import PAD, Board, Certificate, Labels, Status

BLOCK = 512  # boards flooded at once, 16 words
CERTIFY_BLOCK = 1024
T = TypeVar("T")


def solve(boards: Board) -> Labels:
    """Labels a batch of two-agent boards of one size: by shortest paths that never meet, else by flood.

    Args: boards with leading axis B, any B >= 1. Returns: `Labels` of numpy arrays with leading axis B. Raises
    ValueError on another number of agents.
    """
    agents = boards.starts.shape[1]
    if agents != 2:
        raise ValueError(f"solve handles 2 agents, not {agents}")
    certified = _in_blocks(_certify_block, boards, CERTIFY_BLOCK)
    labels = concatenate([part.labels for part in certified])
    open_rows = np.flatnonzero(~np.concatenate([part.proven for part in certified]))
    if not len(open_rows):
        return labels
    flooded = solve_by_flood(_rows(boards, open_rows))
    return _with_rows(labels, open_rows, flooded)


def solve_by_flood(boards: Board) -> Labels:
    """The same labels for any two-agent boards, all from floods."""
    return concatenate(_in_blocks(lambda block: read_labels(flood(~block.holes, block.goals), block), boards, BLOCK))


def _certify_block(boards: Board) -> Certified:
    distance = distances(boards)
    furthest = int(jnp.max(jnp.where(distance < FAR, distance, 0)))
    return certify(_horizon(furthest), boards, distance)


def _in_blocks(function: Callable[[Board], T], boards: Board, block: int) -> list[T]:
    """`function` of every block of boards, as numpy arrays; the last is filled up: one program serves all."""
    count = boards.starts.shape[0]

    def of_block(begin: int) -> T:
        part = function(_rows(boards, np.minimum(np.arange(begin, begin + block), count - 1)))
        return jax.tree.map(lambda field: np.asarray(field)[: count - begin], part)

    begins = range(0, count, block)  # the first alone, as it may compile
    return [of_block(begins[0]), *on_all_cores(of_block, begins[1:])]


def _rows(boards: Board, rows: np.ndarray) -> Board:
    return jax.tree.map(lambda field: jnp.asarray(np.asarray(field)[rows]), boards)


def _with_rows(labels: Labels, rows: np.ndarray, replacements: Labels) -> Labels:
    """`labels` with those of `rows` replaced."""
    both = concatenate([labels, replacements])
    order = np.arange(len(labels.status))
    order[rows] = len(order) + np.arange(len(rows))
    return jax.tree.map(lambda field: field[order], both)


def _horizon(steps: int) -> int:
    """A plan length of at least `steps`; few are ever used, each compiled once."""
    return 1 << max(4, (steps - 1).bit_length())


@jax.jit
def flood(free: jax.Array, goals: jax.Array) -> CostTable:
    """The cost tables of B maps, free bool [B, n, n], goals int32 [B, 2, 2]; each word of 32 ends on its own."""
    size = free.shape[-1]
    chex.assert_shape(goals, (free.shape[0], 2, 2))

    def one_word(word):
        free, goals = word
        return sum_of_costs_flood(size, pack_cells(free), cell_index(size, goals).T)

    return jax.lax.map(one_word, (by_word(free), by_word(goals)))


def read_labels(tables: CostTable, boards: Board) -> Labels:
    """The labels and plans of B boards from the cost tables of their maps and goals."""
    size = boards.holes.shape[-1]
    if not bool(jnp.all(tables.complete)):
        raise RuntimeError(f"a {size}x{size} board costs more than {tables.cost.shape[1]} bits hold: raise cost_bits")
    makespan, cost, wait = _optima(tables, boards)
    horizon = _horizon(int(jnp.max(cost)))  # no plan is longer than its cost
    return Labels(
        status=jnp.where(cost >= 0, Status.SOLVABLE, Status.UNSOLVABLE),
        certificate=jnp.full_like(cost, Certificate.FLOOD),
        makespan=makespan,
        sum_of_costs=cost,
        wait_required=wait,
        moves=optimal_plans(horizon, tables, boards.starts),
    )


def concatenate(parts: Sequence[Labels]) -> Labels:
    """One batch of labels from several whose plans may differ in length."""
    horizon = max(part.moves.shape[-1] for part in parts)
    moves = np.concatenate([pad_moves(np.asarray(part.moves), horizon) for part in parts])
    unmoved = [dataclasses.replace(part, moves=None) for part in parts]  # type: ignore[arg-type]
    return dataclasses.replace(jax.tree.map(lambda *fields: np.concatenate(fields), *unmoved), moves=moves)


def pad_moves(moves: np.ndarray, horizon: int) -> np.ndarray:
    """Pads int8 [..., T] with PAD to `horizon` steps."""
    width = [(0, 0)] * (moves.ndim - 1) + [(0, horizon - moves.shape[-1])]
    return np.pad(moves, width, constant_values=PAD)


@jax.jit
def _optima(tables: CostTable, boards: Board) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Makespan, sum of costs (both -1 where unsolvable) and wait_required of the boards, each [B]."""
    size = boards.holes.shape[-1]
    starts = cell_index(size, boards.starts)
    cost, wait = each_board(joint_cost, tables, starts)

    def one_word(word):
        free, goals, starts, solvable = word
        return makespan_flood(size, pack_cells(free), goals, starts.T, solvable)

    words = (by_word(~boards.holes), tables.goals, by_word(starts), by_word(cost >= 0))
    return jax.lax.map(one_word, words).reshape(-1), cost, wait
