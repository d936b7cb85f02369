"""The problems of a run on disk, and the training rollouts of a stage: each group of answers with its problem.

Of boards some answers are saved too: greedy plans for the held-out ones, and some groups of a training.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.rows import Row, board_key, plan_of, read_all, write_rows
from lakewright.core_jax.support import check_digest, convert, listed, update_listing, write_atomically
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.engineer.calls import show
from lakewright.engineer.problems import Problem, find_fault
from lakewright.experiments.environments.lake import problem_of, row_of
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage


def read_problems(path: Path) -> list[Problem]:
    """The problems of a file: boards of rows, or problems as lines of JSON. Raises InputError if it is damaged."""
    if path.suffix == ".parquet":
        return list(map(problem_of, read_all(path)))
    return [convert(raw, Problem, f"{path}:{line}") for line, raw in enumerate(_read_lines(path), 1)]


def write_problems(path: Path, problems: Sequence[Problem]) -> None:
    """Writes problems, whole or not at all: boards as rows if the file is Parquet, else lines of JSON.

    Raises InputError, and writes nothing, if one could not be read again.
    """
    with listed(path):
        if path.suffix == ".parquet":
            write_rows(path, list(map(row_of, problems)))
        else:
            for number, problem in enumerate(problems, 1):
                if fault := find_fault(problem):
                    raise InputError(f"{path}: problem {number} is {show(problem)}; {fault}")
            write_atomically(path, msgspec.json.Encoder().encode_lines(problems))


def read_stage_problems(stage: Stage) -> list[Problem]:
    """The problems that a stage trained on."""
    return read_problems(stage.saved_problems or stage.boards)


def read_held_out(folder: RunFolder) -> list[Problem]:
    """The held-out problems of a run."""
    return read_problems(folder.saved_held_out or folder.validation)


def read_rollouts(stage: Stage) -> list[tuple[Problem, RolloutGroup]]:
    """Each group of a stage with its problem, in the order of groups.jsonl; the problems may lie in any order.

    A problem that was drawn more than once has a group for each time; its cell is its first row's. Raises
    InputError if the file is damaged, or a group is of a problem that the stage doesn't have.
    """
    problems, rollouts = read_stage_problems(stage), []
    of_key = {problem.key: problem for problem in reversed(problems)}
    for number, line in enumerate(_read_lines(stage.groups), 1):
        place = line.get("board") if isinstance(line, dict) else None
        if isinstance(place, int) and 0 <= place < len(problems):  # as an older version named it
            line["board"] = problems[place].key
        group = convert(line, RolloutGroup, str(stage.groups))
        if group.key not in of_key:
            raise InputError(
                f"{stage.groups}:{number}: its board is not in {stage.boards.name}; "
                "restore the file that belongs to it, or run the stage again"
            )
        rollouts.append((of_key[group.key], group))
    return rollouts


def _read_lines(path: Path) -> list[Any]:
    check_digest(path)
    try:
        return msgspec.json.Decoder().decode_lines(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{path}: not lines of JSON ({error}); run the stage again") from error


class RecordedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A plan, one string of moves for each agent, and its failure, by the first agent and step; `none` is valid.

    text: the answer of a policy that answers in text.
    """

    plan: list[str]
    failure: str
    agent: int
    step: int
    text: str = ""

    @classmethod
    def from_moves(cls, moves: np.ndarray, failure: int, agent: int, step: int, text: str = "") -> "RecordedAnswer":
        """The answer of moves, int8 [K, T], and a verdict: failure, agent, step. text: the answer as text."""
        return cls(plan_of(moves), FAILURE_NAMES[int(failure)], int(agent), int(step), text)


class BoardAnswers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of plans.jsonl or rollouts.jsonl: the answers to the board of a key (`core_jax.rows.board_key`).

    Older versions named a board by its place in the file of boards.
    """

    board: str | int
    answers: list[RecordedAnswer]


def write_answers(path: Path, answers: Sequence[Any]) -> None:
    """Writes a line for each problem, whole or not at all: `BoardAnswers`, or what describes answers in text.

    A file that holds these lines already is left alone, so that a run which is killed often writes only the next one.
    """
    lines = msgspec.json.Encoder().encode_lines(answers)
    if path.exists() and path.read_bytes() == lines:
        update_listing(path)
        return
    with listed(path):
        write_atomically(path, lines)


def read_answers(path: Path, row: Row, place: int) -> list[RecordedAnswer]:
    """The answers to the board of a row; empty if the file is not there. A line that is being written is ignored.

    place: the row's in the file of boards, by which older versions named it.
    """
    if not path.exists():
        return []
    check_digest(path)
    names, lines = (board_key(row), place), map(_LINE.decode, path.read_bytes().split(b"\n")[:-1])
    return [answer for line in lines if line.board in names for answer in line.answers]


_LINE = msgspec.json.Decoder(BoardAnswers)
