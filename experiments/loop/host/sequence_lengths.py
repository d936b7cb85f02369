"""The longest sequences of a run, in tokens, on which its memory depends."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.config import holds, holes_of, with_teams
from lakewright.core_jax.types import Board
from lakewright.engineer.cells import Cell
from lakewright.engineer.guard import is_drawable
from lakewright.engineer.lessons import synthetic_examples
from lakewright.experiments.loop.settings.lake_settings import first_boards, warmup_boards
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import Trainee, make_trainee
from lakewright.policy.codecs import (
    ByteCodec,
    ChatCodec,
    Codec,
    build_byte_tokenizer,
    build_tokenizer,
    codec_for,
    encode_compact_prompt,
    encode_prompt,
)
from lakewright.policy.inference import common_prefix
from lakewright.policy.model_settings import resolve_shape
from lakewright.policy.models import prepare_place

SAMPLES = 100  # of the engineer's examples, whose length varies
EACH = 4  # problems in text of each cell
PIECE = re.compile(r"\w+|[^\w\s]|\n+")  # of text: about a token


class Lengths(msgspec.Struct, frozen=True):
    """Tokens of the longest prompt, of the longest answer, and of the longest example of the warm-up, prompt included.

    An example has a reference answer, which is shorter than the longest that a policy may give.
    exact: whether the model's own tokenizer counted the prompt; otherwise words and signs stand for tokens.
    shared: first tokens that all prompts have in common.
    """

    prompt: int
    answer: int
    example: int
    exact: bool = True
    shared: int = 0


def longest_sequences(settings: RunSettings) -> Lengths:
    """The longest sequences that a run may meet, whatever is redesigned within its strata.

    Of the lake the largest boards with the least hole ratio; of other environments the longest of some
    problems of each cell of a forecast. Raises InputError if the environment cannot be used.
    """
    trainee, place = make_trainee(settings), prepare_place(settings.start) if settings.start else ""
    counted = settings.codec == "text" and not (Path(place) / "tokenizer.json").exists()
    if not trainee.lake:
        return _measure_problems(trainee, place, counted=counted)
    boards = list(_boards(settings))
    if counted:
        asked = encode_compact_prompt if settings.text.prompt == "compact" else encode_prompt
        prompt = max(len(PIECE.findall(asked(board))) for board in boards)
        return Lengths(prompt, settings.text.max_tokens, prompt + settings.text.max_tokens, exact=False)
    codec = _codec(settings, place)
    largest = max(boards, key=lambda board: len(codec.encode_prompt(board)))
    # A batch has prompts of similar length, so what the longest have in common is read once.
    turned = dataclasses.replace(largest, holes=largest.holes[::-1])
    prompts = [codec.encode_prompt(board) for board in (largest, turned)]
    answer = max(codec.answer_length(settings.horizon, len(board.starts)) for board in boards)
    prompt, longest = len(prompts[0]), _longest_example(trainee)
    return Lengths(prompt, answer, max(prompt + answer, longest), shared=common_prefix(prompts))


def _measure_problems(trainee: Trainee, place: str, *, counted: bool) -> Lengths:
    """The longest of some problems in text. counted: whether words and signs stand for tokens."""
    settings, environment = trainee.settings, trainee.environment
    cells = [cell for cell in _list_cells(trainee) if is_drawable(environment, cell, trainee.start)]
    complete = (environment.space.complete_cell(cell, trainee.start) for cell in cells)
    problems = [problem for cell in complete for problem in environment.draw_cell(cell, EACH, 0)]
    answer = settings.text.max_tokens
    if counted:
        prompt = max(len(PIECE.findall(problem.prompt)) for problem in problems)
        reference = 1 + max(len(PIECE.findall(problem.answer)) for problem in problems)
        return Lengths(prompt, answer, prompt + min(answer, reference), exact=False)
    codec = ChatCodec(_read_tokenizer(place), settings.text) if place else ByteCodec(build_byte_tokenizer())
    prompts = [codec.encode_prompt(problem.prompt) for problem in problems]
    prompt = max(map(len, prompts))
    reference = min(answer, max(len(codec.encode_answer(problem.answer)) for problem in problems))
    longest = max(prompt + reference, _longest_example(trainee))
    return Lengths(prompt, answer, longest, shared=common_prefix(prompts))


def _list_cells(trainee: Trainee) -> list[Cell]:
    """The cells of a forecast and, of each stratum, those at both ends of all levels."""
    space, start = trainee.environment.space, trainee.start
    cells = list(space.forecast_cells(start))
    for stratum in start.strata:
        ends = [(True, True) if knob.trait else space.limits(stratum, knob) for knob in space.knobs]
        cells += [Cell(stratum, tuple(end[place] for end in ends)) for place in (0, 1)]
    return [space.complete_cell(cell, start) for cell in cells if space.allows(cell)]


def _boards(settings: RunSettings) -> Iterator[Board]:
    """A board with the fewest holes for each size and number of agents."""
    both = first_boards(settings), warmup_boards(settings)
    configs = [part for config in both for part in with_teams(config, settings.teams)]
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
    return codec_for("text", _read_tokenizer(place), settings.text)


def _read_tokenizer(place: str) -> PreTrainedTokenizerFast:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(place, trust_remote_code=False, local_files_only=True)


def _longest_example(trainee: Trainee) -> int:
    """Of the examples that teach the engineer's form in the warm-up, see `synthetic_examples`; else 0."""
    settings = trainee.settings
    board_network = resolve_shape(settings.model).architecture == "board"
    if settings.start or board_network or not settings.teaches_engineer:
        return 0
    rng, space = np.random.default_rng(0), trainee.environment.space
    pairs = synthetic_examples(SAMPLES, trainee.start, space, settings.stages, rng, settings.taught)
    return max(len(prompt) + len(answer) for prompt, answer in pairs)
