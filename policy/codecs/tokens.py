"""The `tokens` codec: one token for each cell, for models trained from scratch.

Prompt: `<bos> <size_n>`, every free cell, `<starts>` and the start of each agent, `<goals>` and their goals, `<plan>`.
Answer: the next cell of each agent, step by step, then `<eos>`. An agent that waits, or has arrived, repeats its cell.
"""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.config import MAX_TOKEN_SIZE, MIN_SIZE
from lakewright.core_jax.types import DELTAS, JUMP, PAD, WAIT, Board

PAD_TOKEN, UNKNOWN, BOS, EOS, STARTS, GOALS, PLAN = "<pad>", "<unk>", "<bos>", "<eos>", "<starts>", "<goals>", "<plan>"
SPECIAL = (PAD_TOKEN, UNKNOWN, BOS, EOS, STARTS, GOALS, PLAN)
SIZES = tuple(f"<size_{size}>" for size in range(MIN_SIZE, MAX_TOKEN_SIZE + 1))
CELLS = tuple(f"{row},{column}" for row in range(MAX_TOKEN_SIZE) for column in range(MAX_TOKEN_SIZE))
VOCABULARY = (*SPECIAL, *SIZES, *CELLS)
ID = {token: number for number, token in enumerate(VOCABULARY)}
FIRST_CELL = ID[CELLS[0]]


def build_tokenizer(extra: tuple[str, ...] = ()) -> PreTrainedTokenizerFast:
    """Return a word-level tokenizer of this codec's vocabulary and `extra` tokens (those already known count once)."""
    words = dict.fromkeys((*VOCABULARY, *extra))
    core = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token=UNKNOWN))
    core.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=PAD_TOKEN, unk_token=UNKNOWN, bos_token=BOS, eos_token=EOS, padding_side="left"
    )


def token_ids(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[str]) -> list[int]:
    """Return the ids of tokens of the vocabulary."""
    ids = tokenizer.vocab  # a property that builds a new dictionary
    return [ids[token] for token in tokens]


def cell_ids(cells: np.ndarray) -> np.ndarray:
    """Return the token ids of (row, column) pairs: int [..., 2] to int [...]."""
    return FIRST_CELL + cells[..., 0] * MAX_TOKEN_SIZE + cells[..., 1]


def encode_prompt_tokens(board: Board) -> list[int]:
    """Return the prompt of one board of numpy arrays."""
    size = board.holes.shape[0]
    free = cell_ids(np.argwhere(~board.holes))
    starts, goals = cell_ids(np.asarray(board.starts)), cell_ids(np.asarray(board.goals))
    return [ID[BOS], ID[f"<size_{size}>"], *free, ID[STARTS], *starts, ID[GOALS], *goals, ID[PLAN]]


def encode_answer(board: Board, moves: np.ndarray) -> list[int]:
    """Return the answer that plays `moves`, int8 [K, T] padded with PAD, on one board."""
    length = int((moves != PAD).sum(axis=1).max())
    deltas = np.array(DELTAS)[np.where(moves[:, :length] == PAD, WAIT, moves[:, :length])]
    cells = np.asarray(board.starts)[:, None] + np.cumsum(deltas, axis=1)  # [K, T, 2]
    return [*cell_ids(cells).T.reshape(-1), ID[EOS]]


def decode_answer(answer: list[int], size: int, starts: np.ndarray, horizon: int) -> np.ndarray | None:
    """Return the moves int8 [K, horizon] that an answer names, or None if it cannot be parsed.

    It must hold cells only, as many for each agent, ended by `<eos>`, and be no longer than `horizon` steps. A cell
    that is off the board, or not a neighbour of the one before, becomes JUMP, which the simulator calls an illegal
    move.

    Args:
        answer: token ids.
        size: the side of the board.
        starts: int [K, 2].
        horizon: steps of the longest plan.
    """
    agents = len(starts)
    if ID[EOS] not in answer:
        return None
    cells = np.array(answer[: answer.index(ID[EOS])], dtype=np.int64) - FIRST_CELL
    steps = len(cells) // agents
    if len(cells) % agents or steps > horizon or np.any((cells < 0) | (cells >= len(CELLS))):
        return None
    path = np.stack([cells // MAX_TOKEN_SIZE, cells % MAX_TOKEN_SIZE], axis=-1).reshape(steps, agents, 2)
    change = np.diff(np.concatenate([starts[None], path]), axis=0)  # [T, K, 2]
    matches = np.all(change[..., None, :] == np.array(DELTAS), axis=-1)
    moves = np.where(matches.any(-1) & (path < size).all(-1), matches.argmax(-1), JUMP)
    plan = np.full((agents, horizon), PAD, np.int8)
    plan[:, :steps] = moves.T
    return plan


def answer_length(horizon: int, agents: int) -> int:
    """Return the tokens of an answer of `horizon` steps, its end included."""
    return agents * horizon + 1
