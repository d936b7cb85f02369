"""The longest sequences of a run, in tokens, on which its memory depends."""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig, holds, holes_of, with_teams
from lakewright.core_jax.types import RIGHT, Board
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
    plan_text,
)
from lakewright.policy.inference import common_prefix
from lakewright.policy.model_settings import resolve_shape
from lakewright.policy.models import prepare_place

SAMPLES = 100  # of the engineer's examples, whose length varies
EACH = 4  # problems in text of each cell
PIECE = re.compile(r"\d|[^\W\d]+|[^\w\s]|\n+")  # of text: about a token, as most tokenizers split numbers into digits
TEMPLATE = 25  # tokens that the template of a chat adds to a prompt


class Lengths(msgspec.Struct, frozen=True):
    """Tokens of the longest prompt, of the longest answer, and of the longest example of the warm-up, prompt included.

    An example has a reference answer, which may be shorter than the longest that a policy gives.
    exact: whether the model's own tokenizer counted the prompt; otherwise words, digits and signs stand for tokens.
    shared: first tokens that all prompts have in common. held_out, warmup: of the longest prompt that is validated on,
    and of the warm-up; the stages have the longest of all.
    """

    prompt: int
    answer: int
    example: int
    exact: bool = True
    shared: int = 0
    held_out: int = 0
    warmup: int = 0


def longest_sequences(settings: RunSettings) -> Lengths:
    """The longest sequences that a run may meet, whatever is redesigned within its strata.

    Of the lake the largest boards with the least and the most holes, which full and compact prompts grow with; of other
    environments the longest of some problems of each cell of a forecast. Raises InputError if the environment cannot be
    used.
    """
    trainee, place = make_trainee(settings), prepare_place(settings.start) if settings.start else ""
    counted = settings.codec == "text" and not (Path(place) / "tokenizer.json").exists()
    if not settings.lake:
        return _measure_problems(trainee, place, counted=counted)
    warmup, held_out = list(_warmup_boards(settings)), list(_held_out_boards(settings))
    boards = [*_stage_boards(settings), *warmup, *held_out]
    codec = None if counted else _codec(settings, place)
    asked = encode_compact_prompt if settings.text.prompt == "compact" else encode_prompt

    def measure(board: Board) -> int:
        return len(codec.encode_prompt(board)) if codec else _count_pieces(asked(board)) + TEMPLATE

    longest_held_out, longest_warmup = (max(map(measure, part)) for part in (held_out, warmup))
    largest = max(boards, key=measure)
    answer, reference = settings.text.max_tokens, _longest_plan(settings, boards, codec)
    if codec is None:
        reference = min(answer, reference)
        return Lengths(
            measure(largest),
            answer,
            longest_warmup + reference,
            exact=False,
            held_out=longest_held_out,
            warmup=longest_warmup,
        )
    # A batch has prompts of similar length, so what the longest have in common is read once.
    turned = dataclasses.replace(largest, holes=largest.holes[::-1])
    shared = common_prefix([codec.encode_prompt(board) for board in (largest, turned)])
    answer = max(codec.answer_length(settings.horizon, len(board.starts)) for board in boards)
    example = max(longest_warmup + min(answer, reference), _longest_example(trainee))
    return Lengths(measure(largest), answer, example, shared=shared, held_out=longest_held_out, warmup=longest_warmup)


def _longest_plan(settings: RunSettings, boards: Sequence[Board], codec: Codec | None) -> int:
    """Tokens of the longest plan as a reference answer, its end included: every agent moves until the horizon."""
    board = max(boards, key=lambda board: len(board.starts))
    moves = np.full((len(board.starts), settings.horizon), RIGHT, np.int8)
    return len(codec.encode_answer(board, moves)) if codec else _count_pieces(plan_text(moves)) + 1


def _count_pieces(text: str) -> int:
    return len(PIECE.findall(text))


def _measure_problems(trainee: Trainee, place: str, *, counted: bool) -> Lengths:
    """The longest of some problems in text. counted: whether words, digits and signs stand for tokens."""
    settings, environment = trainee.settings, trainee.environment
    cells = [cell for cell in _list_cells(trainee) if is_drawable(environment, cell, trainee.start)]
    complete = (environment.space.complete_cell(cell, trainee.start) for cell in cells)
    problems = [problem for cell in complete for problem in environment.draw_cell(cell, EACH, 0)]
    answer = settings.text.max_tokens
    if counted:
        prompt = TEMPLATE + max(_count_pieces(problem.prompt) for problem in problems)
        reference = 1 + max(_count_pieces(problem.answer) for problem in problems)
        return Lengths(prompt, answer, prompt + min(answer, reference), exact=False, held_out=prompt, warmup=prompt)
    codec = ChatCodec(_read_tokenizer(place), settings.text) if place else ByteCodec(build_byte_tokenizer())
    prompts = [codec.encode_prompt(problem.prompt) for problem in problems]
    prompt = max(map(len, prompts))
    reference = min(answer, max(len(codec.encode_answer(problem.answer)) for problem in problems))
    longest = max(prompt + reference, _longest_example(trainee))
    return Lengths(prompt, answer, longest, shared=common_prefix(prompts), held_out=prompt, warmup=prompt)


def _list_cells(trainee: Trainee) -> list[Cell]:
    """The cells of a forecast and, of each stratum, those at both ends of all levels."""
    space, start = trainee.environment.space, trainee.start
    cells = list(space.forecast_cells(start))
    for stratum in start.strata:
        ends = [(True, True) if knob.trait else space.limits(stratum, knob) for knob in space.knobs]
        cells += [Cell(stratum, tuple(end[place] for end in ends)) for place in (0, 1)]
    return [space.complete_cell(cell, start) for cell in cells if space.allows(cell)]


def _stage_boards(settings: RunSettings) -> Iterator[Board]:
    """The boards of the stages, whose hole ratios the guard limits."""
    config = first_boards(settings)
    most = settings.guard.most.get("hole_ratio", MAX_HOLE_RATIO)
    yield from _extreme_boards(settings, config, [most, *(cell.hole_ratio for cell in config.sizes.values())])


def _warmup_boards(settings: RunSettings) -> Iterator[Board]:
    """The boards of the warm-up."""
    config = warmup_boards(settings)
    given = settings.warmup.hole_ratios if settings.warmup.fresh else ()
    yield from _extreme_boards(settings, config, given or [cell.hole_ratio for cell in config.sizes.values()])


def _held_out_boards(settings: RunSettings) -> Iterator[Board]:
    """The boards that are validated on."""
    yield from _extreme_boards(settings, first_boards(settings), settings.validation.hole_ratios)


def _extreme_boards(settings: RunSettings, config: EnvConfig, ratios: Sequence[float]) -> Iterator[Board]:
    """A board with the fewest holes and one with the most, for each size and number of agents."""
    for part in with_teams(config, settings.teams):
        for size in part.sizes:
            for ratio in {min(ratios), max(ratios)}:
                if holds(size, part.agents):
                    yield _board(size, part.agents, holes_of(size, part.agents, ratio))


def _board(size: int, agents: int, holes: int) -> Board:
    """A board whose first agents have the farthest ways, from cells to those opposite; holes are in the middle."""
    cells = np.stack(np.divmod(np.arange(size * size), size), -1).astype(np.int32)
    outermost = sorted(cells.tolist(), key=lambda cell: -sum(abs(2 * place - size + 1) for place in cell))
    starts: list[list[int]] = []
    for cell in outermost:
        opposite = [size - 1 - place for place in cell]
        if len(starts) < agents and opposite not in starts and opposite != cell:
            starts.append(cell)
    goals = [[size - 1 - place for place in cell] for cell in starts]
    lake: Any = np.zeros((size, size), bool)
    for row, column in [cell for cell in reversed(outermost) if cell not in starts + goals][:holes]:
        lake[row, column] = True
    ends: list[Any] = [np.array(places, np.int32) for places in (starts, goals)]
    return Board(lake, *ends)


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
