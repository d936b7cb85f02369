"""The tasks of reasoning-gym: their ladders, problems by places on these, and scores of answers.

The faults of its tasks end here: settings that they refuse only while they draw, loops without an end, scorers that
raise or evaluate an answer as Python, draws from the generators of the whole process, and items that two seeds share.

Scorers get no text with numbers too large to compute with or with Python code, and no more time than a limit
(`answer_limits`).
"""

import contextlib
import functools
import inspect
import itertools
import random
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support import naming_extra
from lakewright.engineer.judge_process import ask_process
from lakewright.experiments.environments.answer_limits import OutOfTimeError, has_huge_number, is_plain, run_within

CACHED = 4096  # problems of a task that are cached for the judge
SLACK = 1.1  # times the seconds of a problem or score, after which a loop in Python was stopped already
PROBES = 3  # problems by which a setting is tried
LONGEST_LABEL = 24
EVALUATES = re.compile(r"\b(eval|exec|parse_expr|sympify)\(")

_ALONE = threading.RLock()

Places = tuple[int, ...]
"""A place on each ladder of a task, from 0, the easiest."""


class Ladder(NamedTuple):
    """An attribute of a task: its name and meaning, and for each place the fields of the config and their label."""

    name: str
    meaning: str
    rungs: tuple[dict[str, Any], ...]
    labels: tuple[str, ...]


class Entry(NamedTuple):
    """A problem: question, answer, empty if the task knows no answer, and what the scorer takes."""

    question: str
    answer: str
    raw: dict[str, Any]


class NoProblemError(Exception):
    """Why a task gave no problem."""


def load_gym() -> Any:
    """The package. Raises InputError if it is not installed."""
    with naming_extra("reasoning-gym", "reasoning-gym"):
        import reasoning_gym
        import reasoning_gym.factory
    return reasoning_gym


class GymTask:
    """A task of reasoning-gym. Its problems are drawn and scored in a process of its own, which is ended if it hangs.

    A place on a ladder is a narrow setting: for a range attribute, lower and upper bound are both its value there, or
    if it needs an interval, that value and the next. A place does not contain the easier ones.
    """

    def __init__(self, name: str, settings: Mapping[str, Any], seconds: float, *, here: bool = False) -> None:
        """Raises InputError on an unknown task or setting, or a task without a curriculum.

        Args:
            name: the name of the task.
            settings: fields of its config that have no ladder.
            seconds: the longest time for a problem or a score.
            here: whether to draw and score in this process.
        """
        self.name, self.settings, self.seconds, self.here = name, dict(settings), seconds, here
        words = msgspec.json.encode({"name": name, "settings": self.settings, "seconds": seconds})
        self._maker = ("lakewright.experiments.environments.gym_tasks:make_task", words.decode())
        self._gym = load_gym()
        known = self._gym.factory.CURRICULA
        if name not in known:
            listed = suggest(name, sorted(known))
            raise InputError(f"reasoning_gym: {name!r:.60} is not a task with a curriculum; {listed}")
        attributes = self._gym.factory.create_curriculum(name).attributes
        self.ladders = {attribute.name: _read_ladder(attribute) for attribute in attributes.values()}
        data_set, config = self._gym.factory.DATASETS[name]
        self.evaluates = bool(EVALUATES.search(inspect.getsource(data_set.score_answer)))
        fields = getattr(config, "__dataclass_fields__", {})
        for field in self.settings:
            if field not in fields:
                raise InputError(f"reasoning_gym: settings.{name}.{field:.60} is unknown; {suggest(field, fields)}")
        self.draw = functools.lru_cache(CACHED)(self._draw_entry)
        self.explain = functools.lru_cache(None)(self._find_fault)
        self._data_set = functools.lru_cache(None)(self._make_data_set)

    @property
    def top(self) -> int:
        """The highest place of the longest ladder."""
        return max((len(ladder.rungs) - 1 for ladder in self.ladders.values()), default=0)

    def places_at(self, level: int) -> Places:
        """A level of the whole task, as its own coaching has it: each ladder at that place, or at its top."""
        return tuple(min(level, len(ladder.rungs) - 1) for ladder in self.ladders.values())

    def find_easiest(self) -> int:
        """The lowest level at which problems can be drawn. Raises InputError without such a level."""
        reasons = {}
        for level in range(self.top + 1):
            if not (why := self.explain(self.places_at(level))):
                return level
            reasons[why] = level
        listed = "; ".join(reasons)
        raise InputError(f"reasoning_gym: {self.name} has no level that can be drawn ({listed}); leave it out")

    def score(self, places: Places, number: int, answer: str) -> float:
        """The score of an answer, 0 to 1, white space around it aside; 0 if the scorer raises or runs out of time.

        Some scorers evaluate the answer as Python. They see only the problem's own and what is plain.
        Raises NoProblemError if the problem cannot be drawn again.
        """
        entry = self.draw(places, number)
        text = answer if answer == entry.answer else answer.strip()
        if not self.here:
            if text != entry.answer and has_huge_number(text):
                return 0.0
            return float(self._ask_process(places, number, text.encode(errors="replace").decode()) or 0.0)
        if self.evaluates and text != entry.answer and not is_plain(text):
            return 0.0
        try:
            with _seed_process(number):
                score = run_within(
                    self.seconds, lambda: float(self._choose_data_set(places).score_answer(text, entry.raw))
                )
        except (Exception, OutOfTimeError):  # many scorers raise on text that they cannot read, and some run on and on
            return 0.0
        return min(1.0, score) if score > 0 else 0.0  # NaN counts as 0

    def _draw_entry(self, places: Places, number: int) -> Entry:
        """The problem of places and a number: item 0 of a data set that is seeded with the number, because items with
        equal seed + index are identical. Raises NoProblemError without a problem.
        """
        if not self.here:
            if (found := self._ask_process(places, number)) is None:
                raise NoProblemError(f"no problem in {self.seconds:g} s")
            if found["why"]:
                raise NoProblemError(found["why"])
            return Entry(found["question"], found["answer"], {})
        try:
            with _seed_process(number):
                return run_within(self.seconds, lambda: self._read_entry(places, number))
        except OutOfTimeError as error:
            raise NoProblemError(f"no problem in {self.seconds:g} s") from error
        except Exception as error:  # of any kind: they come from about a hundred authors
            raise NoProblemError(f"{type(error).__name__}: {error}"[:200]) from error

    def reply(self, request: bytes) -> bytes:
        """The problem of places and a number, or the score of an answer to it, all in JSON: see `judge_process`."""
        listed, number, answer = msgspec.json.decode(request, type=tuple[list[int], int, str | None])
        places = tuple(listed)
        if answer is not None:
            return msgspec.json.encode(self.score(places, number, answer))
        try:
            entry = self.draw(places, number)
        except NoProblemError as error:
            return msgspec.json.encode({"why": str(error).encode(errors="replace").decode()})
        question, right = (text.encode(errors="replace").decode() for text in entry[:2])
        return msgspec.json.encode({"question": question, "answer": right, "why": ""})

    def _ask_process(self, places: Places, number: int, answer: str | None = None) -> Any:
        """The reply of the process; None if it was ended."""
        request = msgspec.json.encode((places, number, answer))
        found = ask_process(self._maker, request, SLACK * self.seconds)
        return None if found is None else msgspec.json.decode(found)

    def _read_entry(self, places: Places, number: int) -> Entry:
        data_set = self._choose_data_set(places)
        data_set.seed = data_set.config.seed = number
        raw = data_set[0]
        known = raw["answer"]
        return Entry(str(raw["question"]), "" if known is None else str(known), raw)

    def _choose_data_set(self, places: Places) -> Any:
        """The data set of places; its class has the attributes of when it was made, because some keep data there."""
        data_set, attributes = self._data_set(places)
        for name, value in attributes.items():
            if vars(type(data_set)).get(name) is not value:
                setattr(type(data_set), name, value)
        return data_set

    def _make_data_set(self, places: Places) -> tuple[Any, dict[str, Any]]:
        """The data set of places, and the attributes that its class has then."""
        fields = dict(self.settings)
        for ladder, place in zip(self.ladders.values(), places, strict=True):
            fields |= ladder.rungs[place]
        data_set = self._gym.create_dataset(self.name, seed=0, **fields)
        return data_set, dict(vars(type(data_set)))

    def _find_fault(self, places: Places) -> str:
        """Why problems cannot be drawn; empty if most numbers give one whose own answer, if any, is right."""
        gaps = []
        for number in range(PROBES):
            try:
                entry = self.draw(places, number)
            except NoProblemError as error:
                gaps.append(str(error))
                if len(gaps) > PROBES // 2:
                    return gaps[-1]
                continue
            if entry.answer and self.score(places, number, entry.answer) < 1:
                return f"its own answer {entry.answer!r:.60} does not earn the full score"
        return ""


def make_task(words: str) -> GymTask:
    """The task of arguments in JSON, in the process that draws and scores."""
    return GymTask(**msgspec.json.decode(words), here=True)


def _read_ladder(attribute: Any) -> Ladder:
    """The ladder of an attribute of a curriculum."""
    levels = list(attribute.levels)
    if not hasattr(attribute, "lower_field_name"):
        rungs = [{attribute.field_name: value} for value in levels]
        labels = list(map(_write_label, levels))
    else:
        lower, upper = attribute.lower_field_name, attribute.upper_field_name
        pairs = [_find_bounds(value, value) for value in levels]
        if attribute.ensure_interval and len(levels) > 1:
            pairs = [_find_bounds(low, high) for low, high in itertools.pairwise(levels)]
        rungs = [{lower: low, upper: high} for low, high in pairs]
        labels = [
            _write_label(low) if low == high else f"{_write_label(low)}..{_write_label(high)}" for low, high in pairs
        ]
    return Ladder(attribute.name, attribute.description or "", tuple(rungs), tuple(labels))


def _find_bounds(low: Any, high: Any) -> tuple[Any, Any]:
    """The least and the largest of two values, each of which may be several."""
    values = [one for part in (low, high) for one in (part if isinstance(part, list | tuple) else [part])]
    return min(values), max(values)


def _write_label(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 3]}..."


@contextlib.contextmanager
def _seed_process(number: int) -> Iterator[None]:
    """Seeds the generators of the whole process inside the block, and restores their states after it.

    One at a time because they are shared, and a data set has one seed.
    """
    with _ALONE:
        before, arrays = random.getstate(), np.random.get_state()
        random.seed(number)
        np.random.seed(number)
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(arrays)
