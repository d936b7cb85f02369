"""The verdict on any number of plans, in blocks on all cores."""

import dataclasses

import chex
import jax
import numpy as np

from lakewright.core_jax.lake.dynamics import verdict
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import on_all_cores
from lakewright.core_jax.support.programs import program
from lakewright.core_jax.support.threads import cores
from lakewright.core_jax.types import PAD, Board, BoardVerdict

# The most plans judged at a time; fewer where they are very long.
BLOCK_PLANS, BLOCK_STEPS = 8192, 1 << 20
SHORTEST_HORIZON = 8
ALIGNMENT = 64  # bytes; XLA reads aligned arrays in place and copies others


@stated_settings()
def verify(boards: Board, moves: np.ndarray) -> BoardVerdict:
    """The verdict on a plan for each board, as numpy arrays with leading axis B.

    Args:
        boards: boards of one size with leading axis B, any B >= 0.
        moves: int8 [B, K, T], a plan for each board.

    Plans are cut or padded to a power of two steps and the last block is filled up, so one program serves all plans of
    a size, a number of agents and such a horizon.
    """
    chex.assert_rank([boards.holes, boards.starts, boards.goals, moves], [3, 3, 3, 3])
    chex.assert_equal_shape_prefix([boards.starts, boards.goals, moves], 2)
    chex.assert_equal_shape_prefix([boards.holes, moves], 1)
    chex.assert_type(moves, np.int8)
    boards, moves = jax.tree.map(np.asarray, (boards, moves))
    count, agents, steps = moves.shape
    longest = _count_steps(moves)
    horizon = horizon_of(longest) if steps else 0
    block = max(1, min(BLOCK_PLANS, BLOCK_STEPS // max(horizon, 1)))
    found = _allocate_verdicts(count, agents)

    def judge_blocks(begins: range) -> None:
        # The buffers of one worker, reused for each of its blocks: new memory would cost as much as the verdicts.
        some = jax.tree.map(lambda field: _allocate_aligned((block, *field.shape[1:]), field.dtype), boards)
        plans = _allocate_aligned((block, agents, horizon), np.dtype(np.int8))
        plans[:] = PAD
        for begin in begins:
            rows = slice(begin, min(begin + block, count))
            filled = slice(rows.stop - begin)
            jax.tree.map(lambda buffer, field, at=filled, of=rows: np.copyto(buffer[at], field[of]), some, boards)
            plans[filled, :, :longest] = moves[rows, :, :longest]
            verdicts = jax.tree.map(np.asarray, _judge_plans(some, plans))
            jax.tree.map(lambda field, part, of=rows, at=filled: np.copyto(field[of], part[at]), found, verdicts)

    begins = range(0, count, block)
    judge_blocks(begins[:1])  # first and alone, as it may compile
    on_all_cores(judge_blocks, [begins[1 + worker :: cores()] for worker in range(cores())])
    return found


@program
def _judge_plans(boards: Board, moves: jax.Array) -> BoardVerdict:
    return jax.vmap(verdict)(boards, moves)


def _allocate_verdicts(count: int, agents: int) -> BoardVerdict:
    """Room for the verdicts on `count` plans."""
    numbers = [field.name for field in dataclasses.fields(BoardVerdict) if field.name != "at_goal"]
    room = {name: np.empty(count, np.int32) for name in numbers}
    return BoardVerdict(**room, at_goal=np.empty((count, agents), bool))  # type: ignore[arg-type]


def _count_steps(moves: np.ndarray) -> int:
    """The number of steps up to the last at which anyone moves, of int8 [B, K, T]."""
    all_pad = (np.bitwise_and.reduce(moves, axis=0) == PAD).all(axis=0)  # PAD has all bits set
    return int(np.flatnonzero(~all_pad).max(initial=-1)) + 1


def horizon_of(steps: int) -> int:
    """A power of two that is at least `steps`."""
    return max(SHORTEST_HORIZON, 1 << max(steps - 1, 0).bit_length())


def _allocate_aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros that XLA does not copy."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)
