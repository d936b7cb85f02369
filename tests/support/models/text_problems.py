"""Problems in text: two letters are to be told in the other order, or two numbers to be added."""

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from lakewright.policy.codecs import TextSettings
from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.text_play import TextPlay, build_byte_policy, play_texts

SHAPE = ModelSettings(hidden=32, layers=1, heads=2, mlp=32, positions=32)
FAILURES = ("empty", "wrong")
LETTERS = "abcdef"


class Problem(NamedTuple):
    """What the policy needs to know of a problem."""

    prompt: str
    answer: str


class Verdict(msgspec.Struct, frozen=True):
    """What it needs to know of an answer."""

    valid: bool
    reward: float
    failure: str


def draw_pairs(first: int, count: int) -> list[Problem]:
    """Two letters each, to be told in the other order."""
    chosen = [random.Random(f"pair {place}").choices(LETTERS, k=2) for place in range(first, first + count)]
    return [Problem(f"{one}{other}?", other + one) for one, other in chosen]


def draw_sums(first: int, count: int) -> list[Problem]:
    """Sums of two numbers of two digits."""
    drawn = (random.Random(f"sum {place}") for place in range(first, first + count))
    terms = [(rng.randrange(10, 100), rng.randrange(10, 100)) for rng in drawn]
    return [Problem(f"{one}+{other}=", str(one + other)) for one, other in terms]


def judge(problems: Sequence[Problem], answers: list[str]) -> list[Verdict]:
    """Only the reference answer is right."""
    return [
        Verdict(answer == problem.answer, float(answer == problem.answer), failure_of(problem, answer))
        for problem, answer in zip(problems, answers, strict=True)
    ]


def failure_of(problem: Problem, answer: str) -> str:
    """Why an answer is wrong, empty where it is not."""
    return "" if answer == problem.answer else "wrong" if answer else "empty"


def byte_play(
    shape: Any = SHAPE, max_tokens: int = 4, judge: Callable[..., Any] = judge, seed: int = 0
) -> tuple[Any, TextPlay[Any]]:
    """A model of random weights that reads bytes, and its play."""
    model, tokenizer = build_byte_policy(shape, seed, "cpu")
    return model, play_texts(model, tokenizer, judge, FAILURES, text=TextSettings(max_tokens=max_tokens))
