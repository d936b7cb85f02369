"""Verdicts on answers by the lake's simulator, in batches, and their rewards."""

import dataclasses

import jax
import numpy as np

from lakewright.core_jax.config import MAX_TOKEN_SIZE
from lakewright.core_jax.lake import verdict
from lakewright.core_jax.support import program
from lakewright.core_jax.types import PAD, Board, BoardVerdict, Failure
from lakewright.policy.codecs.codec import Codec, text_plan
from lakewright.policy.codecs.tokens import decode_answer
from lakewright.policy.tasks import BoardTask
from lakewright.policy.training.settings import RewardSettings

CHUNK = 256  # plans judged at a time; the last chunk is filled up, so that one program serves all of a team size


def judge_answers(
    tasks: list[BoardTask], answers: list[list[int]], horizon: int, codec: Codec | None = None
) -> tuple[BoardVerdict, np.ndarray]:
    """Return the verdict on each answer to its task, numpy arrays [B], and the plans int8 [B, K, horizon].

    K is the size of the largest team; in smaller ones the missing agents do not move (PAD) and are never `at_goal`. An
    answer that cannot be parsed gets PARSE_ERROR.

    Args:
        tasks: B tasks.
        answers: token ids.
        horizon: steps of the longest plan.
        codec: reads the answers; by default the codec `tokens`, which needs no tokenizer.
    """
    decode = codec.decode_answer if codec else _decode_tokens
    return _judge_plans(
        tasks, [decode(answer, task.board, horizon) for task, answer in zip(tasks, answers, strict=True)], horizon
    )


def reward_texts(tasks: list[BoardTask], texts: list[str], horizon: int, settings: RewardSettings) -> np.ndarray:
    """Return the reward of each answer in text to its task, float [B].

    Args:
        tasks: B tasks.
        texts: the answers.
        horizon: a longer answer holds no plan.
        settings: the parts of the reward.
    """
    plans = [text_plan(text, task.board, horizon) for task, text in zip(tasks, texts, strict=True)]
    verdicts, moves = _judge_plans(tasks, plans, horizon)
    return compute_rewards(tasks, verdicts, moves, settings)


def _judge_plans(
    tasks: list[BoardTask], plans: list[np.ndarray | None], horizon: int
) -> tuple[BoardVerdict, np.ndarray]:
    """Return the verdict on each plan, int8 [K, horizon] or None, and all plans int8 [B, K, horizon]."""
    parsed = np.array([plan is not None for plan in plans])
    moves = np.full((len(tasks), int(_count_agents(tasks).max()), horizon), PAD, np.int8)
    for row, plan in zip(moves, plans, strict=True):
        if plan is not None:
            row[: len(plan)] = plan
    verdicts = play_plans(tasks, moves)
    unparsed = BoardVerdict(int(Failure.PARSE_ERROR), -1, -1, -1, -1, 0, False)  # type: ignore[arg-type]
    judged = jax.tree.map(lambda found, value: np.where(parsed, found.T, value).T, verdicts, unparsed)
    return judged, moves


def play_plans(tasks: list[BoardTask], moves: np.ndarray) -> BoardVerdict:
    """Return the verdicts on plans int8 [B, K, T] for boards of any sizes and teams, as in `judge_answers`.

    Teams of equal size are played together. Boards are padded with holes to the largest size: codecs have already
    turned moves that leave the board into JUMP.
    """
    size = max(MAX_TOKEN_SIZE, *(task.size for task in tasks))  # usually the same, so that one program serves all
    boards = [_pad_board(task.board, size) for task in tasks]
    agents = _count_agents(tasks)
    played: list[tuple[np.ndarray, BoardVerdict]] = []
    for number in np.unique(agents):
        mine = np.flatnonzero(agents == number)
        for begin in range(0, len(mine), CHUNK):
            rows = mine[begin : begin + CHUNK]
            played.append((rows, _judge_chunk([boards[row] for row in rows], moves[rows, :number], moves.shape[1])))
    rows, parts = zip(*played, strict=True)
    order = np.argsort(np.concatenate(rows))
    return jax.tree.map(lambda *fields: np.concatenate(fields)[order], *parts)


def _count_agents(tasks: list[BoardTask]) -> np.ndarray:
    return np.array([len(task.board.starts) for task in tasks])


def _judge_chunk(boards: list[Board], moves: np.ndarray, agents: int) -> BoardVerdict:
    """Return the verdicts on a chunk of plans for one number of agents, `at_goal` padded to `agents`."""
    rows = np.minimum(np.arange(CHUNK), len(boards) - 1)
    chunk = jax.tree.map(lambda *fields: np.stack(fields), *(boards[row] for row in rows))
    found = jax.tree.map(lambda field: np.asarray(field)[: len(boards)], _verdicts(chunk, moves[rows]))
    absent = agents - moves.shape[1]
    return dataclasses.replace(found, at_goal=np.pad(found.at_goal, ((0, 0), (0, absent))))


def compute_rewards(
    tasks: list[BoardTask], verdicts: BoardVerdict, moves: np.ndarray, settings: RewardSettings
) -> np.ndarray:
    """Return the reward of each answer, float [B].

    Args:
        tasks: B tasks.
        verdicts: arrays [B].
        moves: int8 [B, K, T].
        settings: the parts of the reward.
    """
    length = np.maximum((moves != PAD).sum(axis=2).max(axis=1), 1)
    optimum = np.array([task.sum_of_costs for task in tasks])
    legal_share = np.minimum(verdicts.legal_steps / length, 1.0)
    broken = settings.parsed + settings.legal * legal_share
    unfinished = settings.parsed + settings.legal + settings.home * verdicts.at_goal.sum(axis=1) / _count_agents(tasks)
    valid = settings.reward_valid_plan(verdicts.sum_of_costs - optimum)
    return np.select(
        [
            verdicts.failure == Failure.PARSE_ERROR,
            verdicts.failure == Failure.NONE,
            verdicts.failure == Failure.GOAL_NOT_REACHED,
        ],
        [np.zeros(len(tasks)), valid, unfinished],
        broken,
    )


@program
def _verdicts(boards: Board, moves: jax.Array) -> BoardVerdict:
    return jax.vmap(verdict)(boards, moves)


def _decode_tokens(answer: list[int], board: Board, horizon: int) -> np.ndarray | None:
    return decode_answer(answer, board.holes.shape[0], np.asarray(board.starts), horizon)


def _pad_board(board: Board, size: int) -> Board:
    rest = size - board.holes.shape[0]
    holes = np.pad(np.asarray(board.holes), (0, rest), constant_values=True)
    return dataclasses.replace(board, holes=holes)  # type: ignore[arg-type]
