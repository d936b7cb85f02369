"""Answers in words: what they mean is read strictly, how they are written does not matter, and nothing raises."""

import os
import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.lake import verify
from lakewright.core_jax.types import FAILURE_NAMES, MOVES, PAD
from lakewright.policy.codecs import Refusal, Refused, encode_prompt, parse_answer
from lakewright.policy.codecs.text_answer import MAX_STEPS
from lakewright.policy.codecs.text_prompt import EXAMPLE, MOVE_WORDS
from tests.support.boards.sample_boards import as_lists, as_moves, as_strings, assert_every, each, mixed_boards
from tests.support.boards.search_oracle import play
from tests.support.deep import count_examples
from tests.support.processes.processor_time import LONG_ANSWER, MOST_SECONDS, seconds_of

PLAIN = "agent 0: RIGHT RIGHT WAIT DOWN\nagent 1: UP LEFT"
MEANT = ["RRWD", "UL"]
SAME_MEANING = {
    "as asked": PLAIN,
    "in lower case": PLAIN.lower(),
    "with commas": "Agent 0: right, right, wait, down,\nAgent 1: up, left.",
    "in lists": "agent 0: [RIGHT, RIGHT, WAIT, DOWN]\nagent 1: [UP, LEFT]",
    "as letters": "agent 0: R R W D\nagent 1: U L",
    "as letters in a row": "agent 0: RRWD\nagent 1: UL",
    "with stay for wait": "agent 0: RIGHT RIGHT STAY DOWN\nagent 1: UP LEFT",
    "in a code fence": f"```text\n{PLAIN}\n```",
    "with bullets": "- agent 0: RIGHT RIGHT WAIT DOWN\n* agent 1: UP LEFT",
    "numbered": "1. agent 0: RIGHT RIGHT WAIT DOWN\n2) agent 1: UP LEFT",
    "in bold": "**Agent 0:** RIGHT RIGHT WAIT DOWN\n**Agent 1**: UP LEFT",
    "as code": "`agent 0: RIGHT RIGHT WAIT DOWN`\n`agent_1`: `UP LEFT`",
    "with arrows": "agent 0: RIGHT → RIGHT -> WAIT->DOWN\nagent 1: UP => LEFT",
    "as JSON": '{"agent 0": ["RIGHT", "RIGHT", "WAIT", "DOWN"],\n "agent 1": ["UP", "LEFT"]}',
    "as a table": "| agent 0 | RIGHT RIGHT WAIT DOWN |\n| agent 1 | UP LEFT |",
    "with remarks on who it is": "Agent 0 (S)'s moves: RRWD".replace("'s", "") + "\nagent #1's plan = U L",
    "with lines between": "agent 0: RIGHT RIGHT WAIT DOWN\n\n(then the other)\r\n  agent 1: UP LEFT  \n\nDone.",
    "after thoughts": f"<think>\nagent 0: UP\nagent 1: UP\n</think>\n\n{PLAIN}",
    "after thoughts begun in the prompt": f"agent 0: UP\nagent 1: UP\nNo.</think>{PLAIN}",
    "after a draft": f"agent 0: LEFT\nagent 1: UP\nThey meet, so rather\n{PLAIN}",
    "after half a draft": f"agent 0: LEFT\nagent 0: LEFT LEFT\n{PLAIN}",
    "after a draft of nonsense": f"agent 0: starts at S\nagent 1: is in the way\n{PLAIN}",
}
REFUSED = {
    "nothing": ("", Refusal.EMPTY),
    "spaces": (" \n\t", Refusal.EMPTY),
    "only thoughts": (f"<think>{PLAIN}</think>\n", Refusal.EMPTY),
    "thoughts without an end": (f"<think>Let us see.\n{PLAIN}", Refusal.UNFINISHED_THINKING),
    "a mark of thoughts on two lines": (f"<think\n>{PLAIN}", Refusal.UNFINISHED_THINKING),
    "a mark of thoughts with half a letter": (f"<think \ud800>{PLAIN}", Refusal.UNFINISHED_THINKING),
    "thoughts begun anew": (f"<think>a</think> {PLAIN} <THINK> wait", Refusal.UNFINISHED_THINKING),
    "prose": ("Both go RIGHT.", Refusal.NO_PLAN),
    "moves without names": ("RIGHT RIGHT\nUP LEFT", Refusal.NO_PLAN),
    "one agent too few": ("agent 0: UP", Refusal.WRONG_AGENTS),
    "one agent too many": (f"{PLAIN}\nagent 2: UP", Refusal.WRONG_AGENTS),
    "agents counted from one": ("agent 1: UP\nagent 2: LEFT", Refusal.WRONG_AGENTS),
    "agents out of order": ("agent 1: UP\nagent 0: LEFT", Refusal.WRONG_AGENTS),
    "an agent twice": (f"{PLAIN}\nagent 1: UP LEFT", Refusal.WRONG_AGENTS),
    "a last answer cut off": (f"{PLAIN}\nagent 0: UP", Refusal.WRONG_AGENTS),
    "talk of agents behind the plan": (f"{PLAIN}\nAgent 0: is home after 4 steps", Refusal.WRONG_AGENTS),
    "an agent without moves": ("agent 0: UP\nagent 1:", Refusal.NO_MOVES),
    "moves on a line of their own": ("agent 0:\nUP\nagent 1:\nLEFT", Refusal.NO_MOVES),
    "an empty list": ("agent 0: UP\nagent 1: []", Refusal.NO_MOVES),
    "a move that is none": ("agent 0: UP\nagent 1: LEFT JUMP", Refusal.UNKNOWN_MOVE),
    "a word cut off": ("agent 0: UP\nagent 1: LEFT RIG", Refusal.UNKNOWN_MOVE),
    "moves left out": ("agent 0: UP ... UP\nagent 1: LEFT", Refusal.UNKNOWN_MOVE),
    "moves left out at the end": ("agent 0: UP\nagent 1: LEFT...", Refusal.UNKNOWN_MOVE),
    "moves left out by one character": ("agent 0: UP\nagent 1: LEFT …", Refusal.UNKNOWN_MOVE),
    "a count of moves": ("agent 0: UP x3\nagent 1: LEFT", Refusal.UNKNOWN_MOVE),
    "a product of moves": ("agent 0: UP*3\nagent 1: LEFT", Refusal.UNKNOWN_MOVE),
    "arrows for moves": ("agent 0: → →\nagent 1: ↑", Refusal.UNKNOWN_MOVE),
    "cells": ("agent 0: (0, 1) (0, 2)\nagent 1: (1, 1)", Refusal.UNKNOWN_MOVE),
    "cells between moves": ("agent 0: (0, 0) -> RIGHT -> (0, 1)\nagent 1: UP", Refusal.UNKNOWN_MOVE),
    "prose with moves": ("agent 0: moves RIGHT\nagent 1: then UP", Refusal.UNKNOWN_MOVE),
    "all on one line": ("agent 0: RIGHT, agent 1: UP", Refusal.WRONG_AGENTS),
    "moves without end": ("agent 0: UP\nagent 1: " + "W" * (MAX_STEPS + 1), Refusal.TOO_LONG),
}
THOUSANDS = int(os.environ.get("LAKEWRIGHT_ANSWERS", "500"))  # of answers in the deep test
SEPARATORS = (" ", ", ", "  ", "; ", " | ", "\t", " -> ", '", "')
FRAGMENTS = (
    *("<think>", "</think>", "agent 0:", "Agent 1 :", "agent", "0", "UP", "left", "RRWD", "```", "\n", "\r", "**"),
    *(":", "|", "(", ")", "[", "'s", "->", "...", "\x00", "\ud800", "\u017f", "\u0131", "²", "٣", "\u2028", "🧊"),
    *("agent 99999999999:", "agent -1:", "1.", "moves", "UP" * 40, "W" * 2000, " " * 300, "-" * 50, "{", "\\"),
)


@pytest.mark.parametrize("name", SAME_MEANING)
def test_a_plan_is_read_however_it_is_written(name):
    assert as_strings(parse_answer(SAME_MEANING[name], 2)) == MEANT


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_clear_is_refused_with_the_reason(name):
    text, reason = REFUSED[name]
    found = parse_answer(text, 2)
    assert isinstance(found, Refused), found
    assert (found.reason, "\n" in found.problem) == (reason, False), found.problem
    found.problem.encode()


def test_the_example_of_the_prompt_is_an_answer():
    board = each(mixed_boards(0, 1, 5, 3))[0]
    words = {word: MOVES[move] for move, word in MOVE_WORDS.items()}
    meant = ["".join(words[word] for word in EXAMPLE[agent % len(EXAMPLE)].split()) for agent in range(3)]
    assert as_strings(parse_answer(encode_prompt(board), 3)) == meant


def written(plan: list[str], rng: random.Random) -> str:
    """A plan as some model might write it."""
    words = {MOVES[move]: word for move, word in MOVE_WORDS.items()}
    between = rng.choice(SEPARATORS)
    before, behind = rng.choice([("", ""), ("- ", ""), ("**", "**"), ('"', '"'), ("> ", ""), ("3. ", ".")])
    style = rng.choice([str.upper, str.lower, str.title])
    lines = [
        f"{before}{style('agent')} {agent}: {between.join(style(words[move]) for move in moves)}{behind}"
        for agent, moves in enumerate(plan)
    ]
    frame = rng.choice(["{}", "```\n{}\n```", "The plan:\n\n{}\n", "<think>agent 0: UP</think>{}", "agent 0: L\n{}"])
    return frame.format("\n".join(lines))


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=count_examples(10))
def test_an_answer_gets_the_verdict_of_its_plan_from_the_simulator_and_the_oracle(seed):
    rng = random.Random(seed)
    boards = mixed_boards(seed, 64, 5)
    plans = [["".join(rng.choices(MOVES, k=rng.randint(1, 8))) for _ in range(2)] for _ in range(64)]
    read = [parse_answer(written(plan, rng), 2) for plan in plans]
    assert [as_strings(moves) for moves in read] == plans
    moves = np.stack([as_moves(as_strings(found), 8) for found in read])
    found = [FAILURE_NAMES[code] for code in verify(boards, moves).failure]
    expected = [play(*as_lists(board), plan)[0] for board, plan in zip(each(boards), plans, strict=True)]
    assert_every(np.array(found) == np.array(expected), boards, moves=moves)


spoiling = st.tuples(st.integers(0, 1 << 30), st.integers(1, 8), st.text(max_size=200))  # seed, agents, a text


def spoilt(text: str, draw: Callable[[], float]) -> str:
    """The text after some edits, as the numbers in [0, 1) of `draw` have it."""
    for _ in range(1 + int(3 * draw())):
        begin = int(draw() * (len(text) + 1))
        end = begin + int(draw() * 12)
        kind = draw()
        if kind < 0.7:
            middle = FRAGMENTS[int(draw() * len(FRAGMENTS))]
        else:
            middle = text[begin:end] * 2 if kind < 0.9 else chr(int(draw() * 0x3000))
        text = text[:begin] + middle + text[end if draw() < 0.5 else begin :]
    return text


def spoilt_answers(seed: int, agents: int, text: str) -> Iterator[tuple[str, int]]:
    """500 answers of so many agents: a text and a good answer, spoilt."""
    rng = random.Random(seed)
    good = written(["".join(rng.choices(MOVES, k=rng.randint(1, 6))) for _ in range(agents)], rng)
    for source in [text] * 50 + [good] * 450:
        yield spoilt(source, rng.random), agents


def is_plan_or_problem(found: np.ndarray | Refused, agents: int) -> bool:
    """Whether this is moves int8 [agents, steps], one or more of each, or one line of text that can be encoded."""
    if isinstance(found, Refused):
        return "\n" not in found.problem and found.problem.encode().decode() == found.problem
    right = (found.dtype, found.shape[0], found.ndim) == (np.int8, agents, 2) and 1 <= found.shape[1] <= MAX_STEPS
    return right and bool((found[:, 0] != PAD).all())


@given(spoiling)
@settings(max_examples=count_examples(10))
def test_spoilt_answers_are_plans_or_refused_in_one_line(drawn):
    for answer, agents in spoilt_answers(*drawn):
        assert is_plan_or_problem(parse_answer(answer, agents), agents), repr(answer)


@pytest.mark.deep
@given(spoiling)
@settings(max_examples=2 * THOUSANDS)
def test_half_a_million_spoilt_answers_are_plans_or_refused_in_one_line(drawn):
    for answer, agents in spoilt_answers(*drawn):
        assert is_plan_or_problem(parse_answer(answer, agents), agents), repr(answer)


LONG = (
    "*",
    "agent 0",
    "agent 0 (",
    "1.",
    " ",
    "<think",
    "agent 0: ->",
    "'s",
    "\n- ",
    "_|",
    "\r",
    "1)*",
    "agent 0: U\n",
)


@pytest.mark.parametrize("begin", ["agent 0", "agent 0: ", ""])
@pytest.mark.parametrize("piece", [*LONG, "</think>", "<think>", "a->", "UP->", "U,", "agent 0 moves", "agent 0: U "])
def test_a_long_answer_is_read_in_no_time(begin, piece):
    answer = begin + piece * (LONG_ANSWER // len(piece))
    assert isinstance(parse_answer(answer, 1), Refused | np.ndarray)
    assert seconds_of(lambda text: parse_answer(text, 1), answer) < MOST_SECONDS
