"""The prompt shows the whole board."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.types import MOVES
from lakewright.policy.codecs import encode_prompt
from lakewright.policy.codecs.text_prompt import FROZEN, GOALS, HOLE, MAX_AGENTS, MOVE_WORDS, STARTS
from tests.support.boards.prompt_boards import read_board
from tests.support.boards.sample_boards import drawing, each, mixed_boards, picture

PUBLISHED = ("SsABC", "Ggabc")
THREE = drawing(["..H", "...", "..."], [(0, 0), (0, 1), (2, 2)], [(1, 0), (2, 0), (1, 2)])


@given(seed=st.integers(0, 1 << 30), agents=st.integers(1, MAX_AGENTS), size=st.integers(4, 16))
def test_the_grid_of_the_prompt_is_the_board(seed, agents, size):
    for board in each(mixed_boards(seed, 4, size, agents)):
        again = read_board(encode_prompt(board))
        for field in ("holes", "starts", "goals"):
            assert np.array_equal(getattr(again, field), getattr(board, field)), picture(board) + field


def test_the_letters_are_the_published_ones_and_none_means_two_things():
    assert (STARTS[:5], GOALS[:5]) == PUBLISHED
    assert len({*STARTS, *GOALS, FROZEN, HOLE}) == 2 * MAX_AGENTS + 2


def test_the_trap_of_the_letters_is_kept():
    lines = encode_prompt(THREE).splitlines()
    assert lines[4:7] == ["S s H", "G F a", "g F A"]
    assert "agent 2: starts at A (2, 2), its goal is a (1, 2)" in lines


def test_every_move_has_its_word_and_every_agent_its_line_of_the_answer():
    prompt = encode_prompt(THREE)
    assert set(MOVE_WORDS) == set(range(len(MOVES)))
    assert all(re.search(rf"^{word}: ", prompt, re.MULTILINE) for word in MOVE_WORDS.values())
    assert [line.split(":")[0] for line in prompt.splitlines()[-3:]] == ["agent 0", "agent 1", "agent 2"]
    assert "{" not in prompt


def test_what_cannot_be_written_is_refused():
    home = drawing(["..."] * 3, [(0, 0), (1, 1)], [(0, 0), (2, 2)])
    with pytest.raises(ValueError, match=r"cell \(0, 0\) is both S and G"):
        encode_prompt(home)
    crowd = each(mixed_boards(0, 1, 6, MAX_AGENTS + 1))[0]
    with pytest.raises(ValueError, match="letters for 8 agents, not 9"):
        encode_prompt(crowd)
