"""Verdicts on answers, a batch at once from the lake's simulator, and the reward made of them."""

import dataclasses

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from core_jax.config import MAX_TOKEN_SIZE
from core_jax.dynamics import verdict
from core_jax.ranges import Weight
from core_jax.types import PAD, Board, Failure, Verdict
from policy.boards import Task
from policy.codecs.codec import Codec
from policy.codecs.tokens import decode_answer

CHUNK = 256  # plans judged at once; the last chunk is filled up, so that one program serves all


class RewardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of the reward of an answer, each at most its weight.

    An answer that cannot be parsed earns 0. One that breaks a rule earns `parsed` and the share of its steps before
    that of `legal`. One that breaks none but leaves agents away earns `parsed + legal` and the share of agents at home
    of `home`. A valid plan earns `valid` and `cost` / (1 + what its sum of costs is beyond the optimum).
    """

    parsed: Weight = 0.1
    legal: Weight = 0.2
    home: Weight = 0.2
    valid: Weight = 0.7
    cost: Weight = 0.3


def judge(
    tasks: list[Task], answers: list[list[int]], horizon: int, codec: Codec | None = None
) -> tuple[Verdict, np.ndarray]:
    """The verdict on each answer (token ids) to its task, numpy arrays [B], and the plans int8 [B, K, horizon].

    An answer that cannot be parsed gets PARSE_ERROR. codec: of the answers, by default the tokens codec, whose answers
    are read without a tokenizer.
    """
    decode = codec.decode_answer if codec else _of_tokens
    plans = [decode(answer, task.board, horizon) for task, answer in zip(tasks, answers, strict=True)]
    parsed = np.array([plan is not None for plan in plans])
    empty = np.full((len(tasks[0].board.starts), horizon), PAD, np.int8)
    moves = np.stack([empty if plan is None else plan for plan in plans])
    verdicts = play(tasks, moves)
    unparsed = Verdict(int(Failure.PARSE_ERROR), -1, -1, -1, -1, 0, False)  # type: ignore[arg-type]
    judged = jax.tree.map(lambda found, value: np.where(parsed, found.T, value).T, verdicts, unparsed)
    return judged, moves


def play(tasks: list[Task], moves: np.ndarray) -> Verdict:
    """The verdict on plans int8 [B, K, T] for boards of any sizes: numpy arrays [B].

    Boards are set into the largest size, the rest holes: a codec has already turned what leaves the board into JUMP.
    """
    size = max(MAX_TOKEN_SIZE, *(task.size for task in tasks))  # mostly one, for the sake of one program
    boards = [_set_in(task.board, size) for task in tasks]
    parts = []
    for begin in range(0, len(tasks), CHUNK):
        rows = np.minimum(np.arange(begin, begin + CHUNK), len(tasks) - 1)
        chunk = jax.tree.map(lambda *fields: jnp.asarray(np.stack(fields)), *(boards[row] for row in rows))
        part = _verdicts(chunk, jnp.asarray(moves[rows]))
        parts.append(jax.tree.map(np.asarray, part))
    return jax.tree.map(lambda *fields: np.concatenate(fields)[: len(tasks)], *parts)


def rewards(tasks: list[Task], verdicts: Verdict, moves: np.ndarray, settings: RewardSettings) -> np.ndarray:
    """The reward of each answer, float [B]."""
    length = np.maximum((moves != PAD).sum(axis=2).max(axis=1), 1)
    optimum = np.array([task.sum_of_costs for task in tasks])
    legal_share = np.minimum(verdicts.legal_steps / length, 1.0)
    broken = settings.parsed + settings.legal * legal_share
    unfinished = settings.parsed + settings.legal + settings.home * verdicts.at_goal.mean(axis=1)
    valid = settings.valid + settings.cost / np.maximum(1 + verdicts.sum_of_costs - optimum, 1)
    return np.select(
        [
            verdicts.failure == Failure.PARSE_ERROR,
            verdicts.failure == Failure.NONE,
            verdicts.failure == Failure.GOAL_NOT_REACHED,
        ],
        [np.zeros(len(tasks)), valid, unfinished],
        broken,
    )


_verdicts = jax.jit(jax.vmap(verdict))


def _of_tokens(answer: list[int], board: Board, horizon: int) -> np.ndarray | None:
    return decode_answer(answer, board.holes.shape[0], np.asarray(board.starts), horizon)


def _set_in(board: Board, size: int) -> Board:
    rest = size - board.holes.shape[0]
    holes = np.pad(np.asarray(board.holes), (0, rest), constant_values=True)
    return dataclasses.replace(board, holes=holes)  # type: ignore[arg-type]
