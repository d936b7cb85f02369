"""What a policy answered to boards: its greedy plans for the held-out ones, and some groups of its training."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from core_jax.rows import plan_of
from core_jax.support import write_atomically
from core_jax.types import FAILURE_NAMES


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A plan, one string of moves for each agent, and its failure, by the first agent and step; `none` is valid.

    text: what a policy that speaks in words said.
    """

    plan: list[str]
    failure: str
    agent: int
    step: int
    text: str = ""

    @classmethod
    def of(cls, moves: np.ndarray, failure: int, agent: int, step: int, text: str = "") -> "Answer":
        """The answer of these moves, int8 [K, T], and of this verdict."""
        return cls(plan_of(moves), FAILURE_NAMES[int(failure)], int(agent), int(step), text)


class BoardAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of plans.jsonl or rollouts.jsonl: the answers to a board, which is its place in the file of boards."""

    board: int
    answers: list[Answer]


def write_answers(path: Path, answers: Sequence[BoardAnswers]) -> None:
    """Writes a line for each board, all or none."""
    write_atomically(path, msgspec.json.Encoder().encode_lines(answers))


def read_answers(path: Path, board: int) -> list[Answer]:
    """The answers to a board; none where the file is not there. A line that is being written is ignored."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [answer for line in lines if (found := _LINE.decode(line)).board == board for answer in found.answers]


_LINE = msgspec.json.Decoder(BoardAnswers)
