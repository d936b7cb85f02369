"""Six tasks of reasoning-gym as strata, with finer rungs than its ladders: the environment of the study reasoning-gym.

Each kind of problem has at least 5 000 distinct questions (`python docs/data/studies/reasoning-gym/count.py`). Questions
are short, as the policy reads bytes: the words around the numbers, the same in all questions of a task, become a letter.
An answer is valid if it is the text of the reference; the tasks' own scorers give parts to texts that contain it.
"""

import random
import re
from typing import Any

import reasoning_gym
from lakewright.engineer import Cell, DesignSpace, Environment, Knob, Problem, Verdict

SIZES = ((1, 2), (2, 2), (2, 3), (3, 3))
"""The least and the most digits of a number, by rung."""
VALUES = (100, 200, 400, 1000)
"""The largest number, by rung, of tasks that are about values."""
LETTERS = {
    "chain_sum": "c",
    "decimal_chain_sum": "d",
    "basic_arithmetic": "b",
    "products": "p",
    "fraction_simplification": "f",
    "gcd": "g",
}
EXPRESSION = re.compile(r"[-(\d][-\d\s.,+*/()]*")


def config_of(task: str, terms: int, rung: int) -> dict[str, Any]:
    """The config of a task.

    task: one of LETTERS. terms: numbers in a question, 2 or 3; of fractions, whether they are reduced by more. rung: how
    large the numbers are, 0 to 3.
    """
    if task == "gcd":
        return {"min_numbers": terms, "max_numbers": terms, "max_value": VALUES[rung]}
    if task == "fraction_simplification":
        most = VALUES[rung] // (2 if terms == 2 else 1)
        return {"max_value": VALUES[rung], "max_factor": most, "styles": ("plain",)}
    digits = dict(zip(("min_digits", "max_digits"), SIZES[rung], strict=True))
    if task == "decimal_chain_sum":
        return digits | {"min_terms": terms, "max_terms": terms, "min_decimal_places": 1, "max_decimal_places": 1}
    return digits | {"min_terms": terms, "max_terms": terms}


class Mixture(Environment):
    """Arithmetic of six tasks: how many numbers a question has, and how large they are."""

    terms = Knob(name="terms", meaning="the numbers in a question", low=2, high=3, step=1, reach=1, whole=True)
    rung = Knob(name="rung", meaning="how large the numbers are", low=0, high=3, step=1, reach=1, whole=True)
    space = DesignSpace(tuple(LETTERS), (terms, rung), ranked=False, failures=("no_number", "wrong"))

    def make(self, cell: Cell, rng: random.Random) -> Problem:
        """A question of a task, in short."""
        task = str(cell.stratum)
        config = config_of(task, cell["terms"], cell["rung"])
        entry = reasoning_gym.create_dataset(task, seed=rng.getrandbits(31), size=1, **config)[0]
        return Problem(LETTERS[task] + shorten(entry["question"]) + "=", entry["answer"])

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """Valid if it is the reference answer."""
        if answer == problem.answer:
            return Verdict(True, 1.0)
        return Verdict(False, 0.0, "wrong" if any(map(str.isdigit, answer)) else "no_number")


def shorten(question: str) -> str:
    """The numbers of a question and what is between them: its longest part without words."""
    parts = [part.strip(" .,") for part in EXPRESSION.findall(question)]
    return max(parts, key=len).replace(" ", "")
