"""Answers of a policy to boards: greedy plans for the held-out ones, and some groups of its training."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from lakewright.core_jax.rows import Row, board_key, plan_of
from lakewright.core_jax.support import check_digest, listed, write_atomically
from lakewright.core_jax.types import FAILURE_NAMES


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A plan, one string of moves for each agent, and its failure, by the first agent and step; `none` is valid.

    text: the answer of a policy that answers in text.
    """

    plan: list[str]
    failure: str
    agent: int
    step: int
    text: str = ""

    @classmethod
    def from_moves(cls, moves: np.ndarray, failure: int, agent: int, step: int, text: str = "") -> "Answer":
        """The answer of moves, int8 [K, T], and a verdict: failure, agent, step. text: the answer as text."""
        return cls(plan_of(moves), FAILURE_NAMES[int(failure)], int(agent), int(step), text)


class BoardAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of plans.jsonl or rollouts.jsonl: the answers to the board of a key (`core_jax.rows.board_key`).

    Older versions named a board by its place in the file of boards.
    """

    board: str | int
    answers: list[Answer]


def write_answers(path: Path, answers: Sequence[BoardAnswers]) -> None:
    """Writes a line for each board, all or none."""
    with listed(path):
        write_atomically(path, msgspec.json.Encoder().encode_lines(answers))


def read_answers(path: Path, row: Row, place: int) -> list[Answer]:
    """The answers to the board of a row; none where the file is not there. A line that is being written is ignored.

    place: of the row in the file of boards, by which older versions named it.
    """
    if not path.exists():
        return []
    check_digest(path)
    names, lines = (board_key(row), place), map(_LINE.decode, path.read_bytes().split(b"\n")[:-1])
    return [answer for line in lines if line.board in names for answer in line.answers]


_LINE = msgspec.json.Decoder(BoardAnswers)
