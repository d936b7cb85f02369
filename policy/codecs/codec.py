"""Codecs of boards: boards as prompts and plans as answers, in token ids."""

from typing import Protocol

import numpy as np
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.config import MAX_TOKEN_SIZE, MIN_SIZE
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.types import DELTAS, JUMP, MOVES, PAD, Board
from lakewright.policy.codecs import tokens
from lakewright.policy.codecs.settings import CodecName, TextSettings
from lakewright.policy.codecs.text_answer import Refused, parse_answer, plan_text
from lakewright.policy.codecs.text_prompt import MAX_AGENTS, MOVE_WORDS, SYSTEM, encode_compact_prompt, encode_prompt
from lakewright.policy.codecs.thought_marks import THINK, ThoughtMarks

TURNS = {"system": "You are a lake.", "user": "How cold are you?"}  # of a conversation by which templates are tried


class Codec(Protocol):
    """A translation of boards into prompts and of answers into plans, one at a time."""

    name: CodecName
    tokenizer: PreTrainedTokenizerFast
    batch: int  # answers decoded together

    def encode_prompt(self, board: Board) -> list[int]:
        """Return the prompt of a board of numpy arrays. Raises InputError on a board that the codec cannot describe."""
        ...

    def encode_answer(self, board: Board, moves: np.ndarray) -> list[int]:
        """Return the answer that plays `moves`, int8 [K, T] padded with PAD."""
        ...

    def decode_answer(self, answer: list[int], board: Board, horizon: int) -> np.ndarray | None:
        """Return the moves int8 [K, horizon] of an answer, JUMP for a move off the board; None if it names no plan."""
        ...

    def answer_length(self, horizon: int, agents: int) -> int:
        """Return the most tokens of an answer of `horizon` steps, its end included."""
        ...

    def decode_text(self, prompt: list[int], answer: list[int]) -> str:
        """Return the text of an answer; empty for answers in tokens of cells."""
        ...


class TokensCodec:
    """One token for each cell, for models trained from scratch: see `lakewright.policy.codecs.tokens`."""

    name: CodecName = "tokens"
    batch = 512

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer

    def encode_prompt(self, board: Board) -> list[int]:
        """See `Codec`."""
        if not MIN_SIZE <= (size := board.holes.shape[0]) <= MAX_TOKEN_SIZE:
            raise InputError(
                f"a board is {size}x{size}, the tokens codec has words for {MIN_SIZE} to {MAX_TOKEN_SIZE}; leave it out"
            )
        return tokens.encode_prompt_tokens(board)

    def encode_answer(self, board: Board, moves: np.ndarray) -> list[int]:
        """See `Codec`."""
        return tokens.encode_answer(board, moves)

    def decode_answer(self, answer: list[int], board: Board, horizon: int) -> np.ndarray | None:
        """See `Codec`."""
        return tokens.decode_answer(answer, board.holes.shape[0], np.asarray(board.starts), horizon)

    def answer_length(self, horizon: int, agents: int) -> int:
        """See `Codec`."""
        return tokens.answer_length(horizon, agents)

    def decode_text(self, prompt: list[int], answer: list[int]) -> str:
        """See `Codec`."""
        return ""


class TextCodec:
    """Text, for language models: see `text_prompt` for prompts, `text_answer` for answers."""

    name: CodecName = "text"

    def __init__(self, tokenizer: PreTrainedTokenizerFast, settings: TextSettings = TextSettings()) -> None:  # noqa: B008
        self.tokenizer, self.settings, self.batch = tokenizer, settings, settings.batch
        self._compact = settings.prompt == "compact"
        self.thoughts = ThoughtMarks(tokenizer)
        self._begin = self.encode_request("")  # whether a template begins a thought does not depend on the board

    def encode_prompt(self, board: Board) -> list[int]:
        """See `Codec`."""
        if self._compact:
            return self.encode_request(encode_compact_prompt(board))
        if (agents := len(board.starts)) > MAX_AGENTS:
            raise InputError(f"a board has {agents} agents; the text codec has letters for {MAX_AGENTS}; leave it out")
        return self.encode_request(encode_prompt(board))

    def encode_request(self, words: str) -> list[int]:
        """Return the ids of a request in the model's chat template, up to where its answer begins."""
        if not self.tokenizer.chat_template:
            return self.tokenizer.encode(words)
        system = [{"role": "system", "content": SYSTEM}] if self._compact else []
        text = self.tokenizer.apply_chat_template(
            [*system, {"role": "user", "content": words}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=self.settings.thinking,
        )
        return self.tokenizer.encode(str(text), add_special_tokens=False)

    def encode_answer(self, board: Board, moves: np.ndarray) -> list[int]:
        """See `Codec`; without a thought."""
        text = plan_text(moves).lower() if self._compact else plan_text(moves)
        return [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]

    def move_word(self, move: int) -> str:
        """Return the word of a move in `encode_answer`."""
        return MOVE_WORDS[move].lower() if self._compact else MOVE_WORDS[move]

    def decode_text(self, prompt: list[int], answer: list[int]) -> str:
        """Return the text of an answer, preceded by the mark of a thought if the prompt began one."""
        return THINK * bool(self.thoughts.find_begun(prompt)) + self.thoughts.decode(answer)

    def decode_answer(self, answer: list[int], board: Board, horizon: int) -> np.ndarray | None:
        """See `Codec`."""
        return text_plan(self.decode_text(self._begin, answer), board, horizon)

    def answer_length(self, horizon: int, agents: int) -> int:
        """See `Codec`."""
        return self.settings.max_tokens


def codec_for(name: str, tokenizer: PreTrainedTokenizerFast, settings: TextSettings = TextSettings()) -> Codec:  # noqa: B008
    """Return the codec of that name. Raises InputError on an unknown name."""
    if name == TextCodec.name:
        return TextCodec(tokenizer, settings)
    if name == TokensCodec.name:
        return TokensCodec(tokenizer)
    raise InputError(f"codec is {name!r:.40}; this version knows {TokensCodec.name} and {TextCodec.name}")


def check_template(place: str, tokenizer: PreTrainedTokenizerFast, needed_by: str = "") -> None:
    """Raise InputError, one line that names `place`, if a chat template fails or drops a turn.

    Args:
        place: the name of the model in messages.
        tokenizer: the model's tokenizer; if it has no template, nothing is checked.
        needed_by: the setting whose requests have a system turn, such as "teacher self"; empty if no setting has.
    """
    choose = f"choose another model{f' or another {needed_by.split()[0]}' if needed_by else ''}"
    for role in ["user", *(["system"] if needed_by else [])] if tokenizer.chat_template else []:
        turn = f"the {role} turn" + f", which {needed_by} needs" * (role == "system")
        messages = [{"role": name, "content": words} for name, words in TURNS.items() if name in ("user", role)]
        try:
            said = str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        except Exception as error:  # a template is a program of the model's authors, which may raise anything
            first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"{place}: its chat template fails on {turn} ({first_line:.100}); {choose}") from error
        if TURNS[role] not in said:
            raise InputError(f"{place}: its chat template drops {turn}; {choose}")


def text_plan(text: str, board: Board, horizon: int) -> np.ndarray | None:
    """Return the moves int8 [K, horizon] that a text names, JUMP for a move off the board; None if it names no plan."""
    moves = parse_answer(text, len(board.starts))
    if isinstance(moves, Refused) or moves.shape[1] > horizon:
        return None
    plan = np.full((len(moves), horizon), PAD, np.int8)
    plan[:, : moves.shape[1]] = moves
    return _mark_jumps(board, plan)


def _mark_jumps(board: Board, moves: np.ndarray) -> np.ndarray:
    """Return the moves int8 [K, T] with JUMP for each that ends off the board."""
    steps = np.array([*DELTAS, (0, 0)])[np.where(moves == PAD, len(MOVES), moves)]
    cells = np.asarray(board.starts)[:, None] + np.cumsum(steps, axis=1)
    off = ((cells < 0) | (cells >= board.holes.shape[0])).any(-1)
    return np.where(off & (moves != PAD), JUMP, moves).astype(np.int8)
