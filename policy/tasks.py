"""The task: a board with its labels, for training and evaluation."""

import dataclasses

import numpy as np

from lakewright.core_jax.config import hole_ratio_of
from lakewright.core_jax.rows import Row, board_key, board_of, moves_of, plan_of
from lakewright.core_jax.types import DELTAS, PAD, STATUS_NAMES, Board, Status


@dataclasses.dataclass(frozen=True)
class BoardTask:
    """One solvable board (numpy arrays), its optima, and a plan int8 [K, T] that reaches `sum_of_costs`.

    `hole_ratio` is the ratio that the board was drawn for; with its size and `wait_required` it names the stratum. The
    ratio counted on the board differs with the number of agents. None if it is unknown.
    """

    board: Board
    makespan: int
    sum_of_costs: int
    wait_required: bool
    moves: np.ndarray
    hole_ratio: float | None

    @property
    def size(self) -> int:
        """The side of the board."""
        return self.board.holes.shape[0]

    @property
    def key(self) -> str:
        """The name of the board in files, see `lakewright.core_jax.rows.board_key`."""
        return board_key(row_of_task(self, ""))


def task_of(row: Row) -> BoardTask:
    """Return the task of a labelled row. Raises ValueError on a row without labels or without a solution."""
    if row.plan is None or row.makespan is None or row.sum_of_costs is None or row.wait_required is None:
        raise ValueError(f"row {row.id} is {row.status or 'not solved'}: only boards with a plan can be trained on")
    moves = moves_of([row.plan], max(len(letters) for letters in row.plan))[0]
    return BoardTask(board_of(row), row.makespan, row.sum_of_costs, row.wait_required, moves, row.hole_ratio)


def row_of_task(task: BoardTask, name: str) -> Row:
    """Return the row of a task with the id `name`, without a certificate, which tasks do not hold."""
    board = task.board
    agents, holes = len(board.starts), np.asarray(board.holes)
    counted = round(hole_ratio_of(task.size, agents, int(holes.sum())), 4)
    return Row(
        name,
        task.size,
        agents,
        ["".join(".H"[hole] for hole in line) for line in holes.astype(int)],
        [(int(row), int(column)) for row, column in board.starts],
        [(int(row), int(column)) for row, column in board.goals],
        hole_ratio=counted if task.hole_ratio is None else task.hole_ratio,
        status=STATUS_NAMES[Status.SOLVABLE],
        makespan=task.makespan,
        sum_of_costs=task.sum_of_costs,
        wait_required=task.wait_required,
        plan=plan_of(task.moves),
    )


def augment_task(task: BoardTask, rng: np.random.Generator) -> BoardTask:
    """Return the task under a random symmetry of the grid and a random order of its agents."""
    rotations, mirror = int(rng.integers(4)), bool(rng.integers(2))
    agents = rng.permutation(len(task.moves))
    size = task.size
    grid = np.arange(size * size).reshape(size, size)
    grid = np.rot90(grid.T if mirror else grid, rotations)
    cells = np.empty((size * size, 2), np.int32)
    cells[grid.reshape(-1)] = np.stack(np.divmod(np.arange(size * size), size), axis=-1)
    moved_to = cells.reshape(size, size, 2)
    starts, goals = (moved_to[ends[:, 0], ends[:, 1]][agents] for ends in (task.board.starts, task.board.goals))
    holes = task.board.holes.reshape(-1)[grid]
    return dataclasses.replace(
        task, board=Board(holes, starts, goals), moves=rotate_moves(rotations, mirror)[task.moves[agents]]
    )


def rotate_moves(rotations: int, mirror: bool) -> np.ndarray:
    """Return what each move becomes under a symmetry: int8 by move code; PAD, the last, stays PAD."""
    turned = []
    for row, column in DELTAS:
        if mirror:
            row, column = column, row
        for _ in range(rotations):
            row, column = -column, row
        turned.append(DELTAS.index((row, column)))
    return np.array([*turned, PAD], np.int8)
