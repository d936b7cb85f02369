"""Six tasks of reasoning-gym as strata, with finer rungs than its ladders: the environment of the study reasoning-gym.

Each kind of problem has at least 5 000 distinct questions (count.py beside this file). Questions and answers are short,
as the policy reads bytes: the words around the numbers, the same in all questions of a task, become a letter, and
numbers have no `.0`. An answer is valid if it is the text of the reference; the tasks' own scorers give parts to texts
that contain it.
"""

import random
import re
from typing import Any

import reasoning_gym

from lakewright.engineer import Cell, DesignSpace, Environment, Knob, Problem, Verdict

DIGITS = ((1, 2), (2, 2), (2, 3), (3, 3))
"""The least and the most digits of a number, by rung."""
LARGEST = {
    "complex_arithmetic": (5, 10, 20, 50),
    "number_filtering": (20, 50, 100, 500),
    "gcd": (100, 200, 400, 1000),
}
"""The largest number, by rung, of tasks that are about values."""
LETTERS = {
    "chain_sum": "c",
    "basic_arithmetic": "b",
    "products": "p",
    "complex_arithmetic": "i",
    "number_filtering": "f",
    "gcd": "g",
}
FILTERS = {"remove_larger": "r>", "remove_smaller": "r<", "keep_larger": "k>", "keep_smaller": "k<"}
EXPRESSION = re.compile(r"[-(\d][-\d\s.,+*/()i]*")


def config_of(task: str, terms: int, rung: int) -> dict[str, Any]:
    """The config of a task.

    task: one of LETTERS. terms: numbers in a question, 2 or 3; of lists one more. rung: how large they are, 0 to 3.
    """
    if task == "gcd":
        return {"min_numbers": terms, "max_numbers": terms, "max_value": LARGEST[task][rung]}
    if task == "number_filtering":
        most, several = LARGEST[task][rung], terms + 1
        config = {"min_numbers": several, "max_numbers": several, "min_decimals": 0, "max_decimals": 0}
        return config | {"min_value": -most, "max_value": most}
    if task == "complex_arithmetic":
        most = LARGEST[task][rung]
        config = {"operations": ("+", "-"), "operations_weights": [0.5, 0.5]}
        return config | {"min_real": -most, "max_real": most, "min_imag": -most, "max_imag": most}
    least, most = DIGITS[rung]
    return {"min_digits": least, "max_digits": most, "min_terms": terms, "max_terms": terms}


class Mixture(Environment):
    """Arithmetic of six tasks: how many numbers a question may have, and how large they may be.

    A cell contains the easier ones of its task, as the levels of reasoning-gym's own curricula do.
    """

    terms = Knob(name="terms", meaning="the most numbers in a question", low=2, high=3, step=1, reach=1, whole=True)
    rung = Knob(name="rung", meaning="how large the numbers may be", low=0, high=3, step=1, reach=1, whole=True)
    space = DesignSpace(
        tuple(LETTERS),
        (terms, rung),
        limits={
            "chain_sum": {"rung": (0.0, 2.0)},
            "basic_arithmetic": {"rung": (0.0, 2.0)},
            "products": {"rung": (0.0, 2.0)},
            "complex_arithmetic": {"terms": (2.0, 2.0)},
        },
        ranked=False,
        failures=("no_number", "wrong"),
    )

    def make(self, cell: Cell, rng: random.Random) -> Problem:
        """A question of a task, in short."""
        task = str(cell.stratum)
        config = config_of(task, rng.randint(2, cell["terms"]), rng.randint(0, cell["rung"]))
        entry = reasoning_gym.create_dataset(task, seed=rng.getrandbits(31), size=1, **config)[0]
        return Problem(LETTERS[task] + shorten_question(task, entry) + "=", shorten(entry["answer"]))

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """Valid if it is the reference answer."""
        if answer == problem.answer:
            return Verdict(True, 1.0)
        return Verdict(False, 0.0, "wrong" if any(map(str.isdigit, answer)) else "no_number")


def shorten_question(task: str, entry: dict[str, Any]) -> str:
    """The numbers of a question and what is between them: its longest part without words; of lists also what to do."""
    if task == "number_filtering":
        found = entry["metadata"]
        return f"{FILTERS[found['operation']]}{found['filter_value']}:{','.join(found['original_numbers'])}"
    question = entry["question"].split(": ")[-1] if task == "complex_arithmetic" else entry["question"]
    return shorten(max((part.strip(" .,") for part in EXPRESSION.findall(question)), key=len))


def shorten(text: str) -> str:
    """A text without spaces and quotes, and numbers without `.0`."""
    return re.sub(r"\.0+(?!\d)|[\s']", "", text)
