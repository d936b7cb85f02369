"""The longest sequences of a run, in tokens: what its memory is reckoned for."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lakewright.core_jax.config import holds, holes_of, with_teams
from lakewright.core_jax.types import Board
from lakewright.engineer.lessons import synthetic_examples
from lakewright.experiments.loop.settings import RunSettings
from lakewright.policy.codecs import Codec, build_tokenizer, codec_for, encode_prompt
from lakewright.policy.models import prepare_place, resolve_shape

SAMPLES = 100  # of the engineer's examples, whose length varies
PIECE = re.compile(r"\w+|[^\w\s]|\n+")  # of text: about a token


class Lengths(msgspec.Struct, frozen=True):
    """Tokens of the longest prompt, of the longest answer, and of the longest example of the warm-up, prompt included.

    exact: whether the model's own tokenizer counted the prompt; otherwise words and signs stand for tokens.
    """

    prompt: int
    answer: int
    example: int
    exact: bool = True


def longest_sequences(settings: RunSettings) -> Lengths:
    """The longest sequences that a run may meet, whatever is redesigned within its sizes and least hole ratio."""
    boards = list(_boards(settings))
    place = prepare_place(settings.start) if settings.start else ""
    if settings.codec == "text" and not (Path(place) / "tokenizer.json").exists():
        prompt = max(len(PIECE.findall(encode_prompt(board))) for board in boards)
        return Lengths(prompt, settings.text.max_tokens, prompt + settings.text.max_tokens, exact=False)
    codec = _codec(settings, place)
    prompt = max(len(codec.encode_prompt(board)) for board in boards)
    answer = max(codec.answer_length(settings.horizon, len(board.starts)) for board in boards)
    return Lengths(prompt, answer, max(prompt + answer, _longest_example(settings)))


def _boards(settings: RunSettings) -> Iterator[Board]:
    """A board with the fewest holes for each size and number of agents."""
    configs = [part for env in (settings.env, settings.warmup_env) for part in with_teams(env, settings.teams)]
    ratios = [cell.hole_ratio for config in configs for cell in config.sizes.values()]
    least = min(*ratios, *settings.warmup.hole_ratios, *settings.validation.hole_ratios)
    for size, agents in {(size, config.agents) for config in configs for size in config.sizes}:
        if holds(size, agents):
            yield _board(size, agents, holes_of(size, agents, least))


def _board(size: int, agents: int, holes: int) -> Board:
    cells: Any = np.stack(np.divmod(np.arange(size * size), size), -1).astype(np.int32)
    last: Any = np.arange(size * size) >= size * size - holes
    return Board(last.reshape(size, size), cells[:agents], cells[agents : 2 * agents])


def _codec(settings: RunSettings, place: str) -> Codec:
    if settings.codec == "tokens":
        return codec_for("tokens", build_tokenizer())
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False, local_files_only=True)
    return codec_for("text", tokenizer, settings.text)


def _longest_example(settings: RunSettings) -> int:
    """Of the examples that teach the engineer's form in the warm-up, see `synthetic_examples`."""
    if settings.codec == "text" or settings.start or resolve_shape(settings.model).architecture == "board":
        return 0
    rng = np.random.default_rng(0)
    pairs = synthetic_examples(SAMPLES, settings.env, settings.stages, rng, settings.taught)
    return max(len(prompt) + len(answer) for prompt, answer in pairs)
