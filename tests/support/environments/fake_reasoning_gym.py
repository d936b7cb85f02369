"""What stands for reasoning-gym in tests: its interface, with a task for each way in which its tasks go wrong."""

import dataclasses
import importlib.machinery
import os
import random
import sys
import types
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes.commands import surroundings

ELSEWHERE = Path(__file__).parent / "elsewhere"


@dataclasses.dataclass
class Scalar:
    """An attribute that writes one field."""

    name: str
    levels: list
    field_name: str
    description: str = ""


@dataclasses.dataclass
class Range:
    """An attribute that writes a lower and an upper bound."""

    name: str
    levels: list
    lower_field_name: str
    upper_field_name: str
    ensure_interval: bool = False
    description: str = ""


@dataclasses.dataclass
class Config:
    """The fields of all tasks."""

    seed: int | None = None
    size: int = 5
    min_terms: int = 2
    max_terms: int = 2
    digits: int = 1
    low: int = 1
    high: int = 10
    level: int = 0
    sign: str = "+"


class DataSet:
    """Sums, drawn from the seed plus the index, as most of reasoning-gym's tasks are."""

    def __init__(self, config: Config) -> None:
        self.config, self.seed = config, config.seed

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A sum."""
        rng = random.Random(self.seed + index)
        terms = [rng.randrange(10**self.config.digits) for _ in range(self.config.max_terms)]
        question = f" {self.config.sign} ".join(map(str, terms))
        return {"question": question, "answer": str(sum(terms)), "metadata": {"terms": terms, "object": object()}}

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """1 for the answer, and a part for a text that holds it."""
        oracle = entry["answer"]
        if answer == oracle:
            return 1.0
        return len(oracle) / len(answer) if answer and oracle in answer else 0.0


class Intervals(DataSet):
    """Refuses wide bounds when it is made."""

    def __init__(self, config: Config) -> None:
        assert config.high <= 20, "high must be <= 20"
        super().__init__(config)


class Loops(DataSet):
    """Never ends beyond level 0, and catches what would stop it."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A sum at level 0."""
        while self.config.level:
            try:
                index += 1
            except Exception:
                continue
        return super().__getitem__(index)


class Raises(DataSet):
    """Its scorer reads numbers alone."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """1 for the number, 0.5 for one near it."""
        return max(0.0, 1 - abs(int(answer or "") - int(entry["answer"])) / 2)


class Evaluates(DataSet):
    """Its scorer evaluates the answer as Python, as those of ten tasks do."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """1 for an expression of the same value."""
        return float(eval(str(answer)) == int(entry["answer"]))


class Fractions(DataSet):
    """Its scorer reads any fraction, in C, which no signal stops."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """1 for the same number."""
        return float(Fraction(str(answer).removeprefix("is ").replace("huge", "1e999999999")) == int(entry["answer"]))


class Hashed(DataSet):
    """Draws in the order of a set, which depends on the hashes of the process."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A number."""
        rng = random.Random(self.seed + index)
        number = next(iter({str(rng.randrange(10**6)) for _ in range(30)}))
        return {"question": number, "answer": number, "metadata": {}}


class Shared(DataSet):
    """Draws from the generator of the whole process."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A random number."""
        number = str(random.random())
        return {"question": number, "answer": number, "metadata": {}}


class Silent(DataSet):
    """Knows no answer."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A sum."""
        return super().__getitem__(index) | {"answer": None}

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """1 for the sum."""
        return float(answer == str(sum(entry["metadata"]["terms"])))


class Classwide(DataSet):
    """Keeps the digits of its numbers in the class, so that all data sets have those of the last one."""

    DIGITS = 1

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        Classwide.DIGITS = config.digits

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A number."""
        number = str(random.Random(self.seed + index).randrange(10 ** (self.DIGITS - 1), 10**self.DIGITS))
        return {"question": number, "answer": number, "metadata": {}}


class Wrong(DataSet):
    """Does not accept its own answer."""

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """Always a little."""
        return 0.01


class Gaps(DataSet):
    """Gives no problem for a number in four."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        """A sum."""
        if (self.seed + index) % 4 == 1:
            raise IndexError("no word is that long")
        return super().__getitem__(index)


TERMS = Range("num_terms", [2, 3, 4], "min_terms", "max_terms", description="Number of terms")
DIGITS = Scalar("num_digits", [1, 2], "digits")
LEVEL = Scalar("difficulty", [0, 1], "level")
TASKS = {
    "sums": (DataSet, [TERMS, DIGITS]),
    "intervals": (Intervals, [Range("bounds", [1, 10, 20, 30], "low", "high", ensure_interval=True)]),
    "loops": (Loops, [LEVEL]),
    "raises": (Raises, [LEVEL]),
    "evaluates": (Evaluates, [LEVEL]),
    "fractions": (Fractions, [LEVEL]),
    "hashed": (Hashed, [LEVEL]),
    "shared": (Shared, [LEVEL]),
    "silent": (Silent, [LEVEL]),
    "classwide": (Classwide, [DIGITS]),
    "wrong": (Wrong, [LEVEL]),
    "gaps": (Gaps, [LEVEL]),
}


def make_modules() -> dict[str, types.ModuleType]:
    """The package and its factory, by name."""
    package, factory = types.ModuleType("reasoning_gym"), types.ModuleType("reasoning_gym.factory")
    found: dict[str, Any] = {
        "DATASETS": {name: (data_set, Config) for name, (data_set, _) in TASKS.items()},
        "CURRICULA": dict.fromkeys(TASKS),
        "create_curriculum": lambda name: types.SimpleNamespace(attributes={one.name: one for one in TASKS[name][1]}),
    }
    vars(factory).update(found)
    package.__spec__ = importlib.machinery.ModuleSpec("reasoning_gym", None)
    vars(package).update(
        {"factory": factory, "create_dataset": lambda name, **fields: TASKS[name][0](Config(**fields))}
    )
    return {"reasoning_gym": package, "reasoning_gym.factory": factory}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes it what `import reasoning_gym` finds, here and in processes that are started here."""
    for name, module in make_modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ELSEWHERE), surroundings()["PYTHONPATH"]]))
