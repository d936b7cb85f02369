"""Boards and joint states from token ids, wherever the padding is."""

import dataclasses

import torch

from lakewright.core_jax.config import MAX_TOKEN_SIZE
from lakewright.policy.codecs.tokens import CELLS, FIRST_CELL, ID

NOWHERE = -2
STARTS, GOALS, PLAN = (ID[word] for word in ("<starts>", "<goals>", "<plan>"))


@dataclasses.dataclass(frozen=True)
class Boards:
    """A batch of boards on a grid of n x n cells, cells numbered row by row.

    free: bool [B, n * n]. starts, goals: int [B, K], 0 if an agent is not there. there: bool [B, K].
    """

    free: torch.Tensor
    starts: torch.Tensor
    goals: torch.Tensor
    there: torch.Tensor

    @property
    def side(self) -> int:
        """n, at least as large as every board."""
        return round(self.free.shape[1] ** 0.5)

    def __getitem__(self, boards: torch.Tensor) -> "Boards":
        """Return some of the boards, int [B']."""
        return Boards(self.free[boards], self.starts[boards], self.goals[boards], self.there[boards])

    def cells_of(self, words: torch.Tensor) -> torch.Tensor:
        """Return the cells that words name; 0 for a word that names no cell of the grid."""
        row, column = (words - FIRST_CELL) // MAX_TOKEN_SIZE, (words - FIRST_CELL) % MAX_TOKEN_SIZE
        known = _is_cell(words) & (row < self.side) & (column < self.side)
        return torch.where(known, row * self.side + column, 0)

    def words_of(self, cells: torch.Tensor) -> torch.Tensor:
        """Return the words that name cells; `<pad>` for cells below 0."""
        named = FIRST_CELL + cells // self.side * MAX_TOKEN_SIZE + cells % self.side
        return torch.where(cells < 0, ID["<pad>"], named)


@dataclasses.dataclass(frozen=True)
class JointStates:
    """Joint states: the cells of all agents of a board at one time, and the known part of the step that follows.

    Args:
        board: int [S], the state's board.
        cells, before, following: int [S, K], where agents are, were a step ago, and are a step later if the answer says
            so already.
        past: int [S, T, K], where they were at every step so far; NOWHERE at later steps.
        place: int [S, K], the place in the sequence whose logits choose the agent's move.
    """

    board: torch.Tensor
    cells: torch.Tensor
    before: torch.Tensor
    following: torch.Tensor
    past: torch.Tensor
    place: torch.Tensor


def parse_boards(ids: torch.Tensor) -> Boards:
    """Return the boards of prompts, int [B, L]; an answer may follow."""
    # Section 0 lists free cells, 1 starts, 2 goals, 3 the answer: the marks seen so far.
    section = sum((ids == word).cumsum(1) for word in (STARTS, GOALS, PLAN))
    named = _is_cell(ids) & (section == 0)
    cells = torch.where(named, ids - FIRST_CELL, 0)
    rows, columns = cells // MAX_TOKEN_SIZE, cells % MAX_TOKEN_SIZE
    side = int(torch.maximum(rows, columns).max()) + 1
    # One cell too many, so that what is not a free cell has a place to be written to; it is dropped below.
    free = torch.zeros(len(ids), side * side + 1, dtype=torch.bool, device=ids.device)
    free.scatter_(1, torch.where(named, rows * side + columns, side * side), True)
    agents = (_is_cell(ids) & (section == 1)).sum(1)
    numbers = torch.arange(max(1, int(agents.max())), device=ids.device)
    empty = torch.zeros(len(ids), len(numbers), dtype=torch.long, device=ids.device)
    boards = Boards(free[:, :-1], empty, empty, numbers < agents[:, None])

    def read_ends(word: int) -> torch.Tensor:
        places = (ids == word).int().argmax(1)[:, None] + 1 + numbers
        return boards.cells_of(ids.gather(1, places.clamp(max=ids.shape[1] - 1))) * boards.there

    return dataclasses.replace(boards, starts=read_ends(STARTS), goals=read_ends(GOALS))


def parse_answers(ids: torch.Tensor, boards: Boards) -> JointStates:
    """Return the joint states that answers pass through: the start, every complete step, and the last one."""
    plan = (ids == PLAN).int().argmax(1)
    later = torch.arange(ids.shape[1], device=ids.device) > plan[:, None]
    agents = boards.there.sum(1).clamp(min=1)
    steps = (_is_cell(ids) & later).sum(1) // agents
    times = torch.arange(int(steps.max()) + 1, device=ids.device)
    board, time = (times <= steps[:, None]).nonzero(as_tuple=True)
    place = (
        plan[board, None] + time[:, None] * agents[board, None] + torch.arange(boards.there.shape[1], device=ids.device)
    )

    def cells_at(step: int) -> torch.Tensor:
        """Return the cells of agents `step` steps from now; before the first move they are at their starts."""
        places = place + 1 + (step - 1) * agents[board, None]
        named = boards.cells_of(ids[board[:, None], places.clamp(0, ids.shape[1] - 1)])
        return torch.where((time + step <= 0)[:, None], boards.starts[board], named) * boards.there[board]

    cells = cells_at(0)
    paths = cells.new_full((len(ids), len(times), cells.shape[1]), NOWHERE).index_put((board, time), cells)
    past = torch.where((times <= time[:, None])[..., None], paths[board], NOWHERE)
    return JointStates(board, cells, cells_at(-1), cells_at(1), past, place)


def _is_cell(words: torch.Tensor) -> torch.Tensor:
    return (words >= FIRST_CELL) & (words < FIRST_CELL + len(CELLS))
