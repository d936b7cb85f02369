"""The compact prompt holds the whole board, in few tokens."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.rows import plan_of
from lakewright.core_jax.types import DELTAS, MOVES, Board
from lakewright.policy.codecs import TextCodec, TextSettings, parse_answer
from lakewright.policy.codecs.text_prompt import SYSTEM, encode_compact_prompt
from tests.support.boards.sample_boards import drawing, each, mixed_boards, picture
from tests.support.models.small_language_model import language
from tests.support.models.tiny_policy import tasks
from tests.support.refusals import refused

WORDS = {"left": "L", "down": "D", "right": "R", "up": "U"}
COMPACT = TextSettings(prompt="compact", max_tokens=60)


def read_compact(prompt: str) -> Board:
    """The board that a compact prompt names, read without the code that wrote it."""
    head, *ways = prompt.split("\n")
    size, _, holes = head.partition(" H")
    side = int(size.split("x")[0])
    lake = np.zeros((side, side), bool)
    for row, column in filter(None, holes.split(",")):
        lake[int(row), int(column)] = True
    found = [re.fullmatch(r"(\d+): ([a-z ]+) from (\d)(\d)", way).groups() for way in ways]
    assert [agent for agent, *_ in found] == [str(agent) for agent in range(len(ways))]
    starts = np.array([(int(row), int(column)) for _, _, row, column in found])
    offsets = [
        np.sum([DELTAS[MOVES.index(WORDS[word])] for word in words.split() if word != "here"] or [(0, 0)], 0)
        for _, words, *_ in found
    ]
    return Board(lake, starts, starts + np.array(offsets))


@settings(deadline=None)
@given(seed=st.integers(0, 1 << 30), agents=st.integers(1, 8), size=st.integers(4, 10))
def test_the_compact_prompt_is_the_whole_board(seed, agents, size):
    for board in each(mixed_boards(seed, 4, size, agents)):
        again = read_compact(encode_compact_prompt(board))
        for field in ("holes", "starts", "goals"):
            assert np.array_equal(getattr(again, field), getattr(board, field)), picture(board) + field


def test_an_agent_at_home_is_named_as_such():
    home = drawing(["..."] * 3, [(0, 0), (1, 1)], [(0, 0), (2, 2)])
    assert encode_compact_prompt(home) == "3x3\n0: here from 00\n1: down right from 11"


@settings(deadline=None)
@given(task=st.sampled_from(tasks()))
def test_an_answer_in_lower_case_is_read_by_the_same_strict_parser(task):
    codec = TextCodec(language(), COMPACT)
    answer = codec.encode_answer(task.board, task.moves)
    said = codec.decode_text([], answer)
    assert said == said.lower()
    moves = parse_answer(said, len(task.moves))
    assert plan_of(moves) == plan_of(task.moves), picture(task.board)
    assert plan_of(codec.decode_answer(answer, task.board, 24)) == plan_of(task.moves)


def test_the_chat_begins_with_its_own_system_turn():
    board = tasks()[0].board
    said = language().decode(TextCodec(language(), COMPACT).encode_prompt(board))
    assert said == (
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{encode_compact_prompt(board)}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_boards_whose_cells_need_three_digits_are_refused():
    with refused("board", "11x11", "10x10"):
        encode_compact_prompt(each(mixed_boards(0, 1, 11))[0])
