"""The tasks of reasoning-gym as environments: one by its attributes, or many as strata."""

import itertools
import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell, Knob, Stratum
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.words import Words
from lakewright.experiments.environments.gym_tasks import GymTask, NoProblemError, Places

FAILURES = ("no_answer", "wrong", "partial")
WHOLE = "task"
MOST_RUNGS = 16  # of the ladder that is the strata by default: each has a floor of the data
LITTLE = 0.1  # scores up to here are given to nearly any text
TRIES = 16  # numbers for a problem, as now and then one gives none


class GymWords(Words, frozen=True, kw_only=True):
    """The names of strata. labels: one for each."""

    labels: Mapping[Stratum, str] = MappingProxyType({})

    def label(self, stratum: Stratum) -> str:
        """A task, or a rung of a ladder with its value."""
        return self.labels.get(stratum, str(stratum))


class ReasoningGym(Environment):
    """Tasks of reasoning-gym (https://github.com/open-thought/reasoning-gym).

    Of one task the strata are the places on the ladder of one attribute, and the knobs are the places on the others.
    Or the task is the one stratum, and all its attributes are knobs. Of many tasks each is a stratum, and the one knob
    is the level, which moves all attributes of a task together, as its own curricula do.

    left_out: the places on the ladder of the strata of which no problem can be drawn, each with the reason; these are
    no strata, unless nothing would be left.
    """

    def __init__(
        self,
        tasks: str | list[str] = "chain_sum",
        by: str = "",
        threshold: float = 1.0,
        graded: bool = False,
        settings: dict[str, dict[str, Any]] = {},  # noqa: B006
        seconds: float = 5.0,
    ) -> None:
        """Makes the environment.

        tasks: the name of a task, or several names.
        by: with one task, the attribute whose ladder is the strata, or "task" for one stratum; by default the first
            attribute with 2 to MOST_RUNGS places.
        threshold: the lowest score of a valid answer, above 0, at most 1.
        graded: whether the reward is the score, not 1 or 0. Many scorers give partial credit to any text that contains
            the answer, so a policy learns to list all candidates.
        settings: fields of the tasks' configs that have no ladder, by task.
        seconds: the longest time for drawing or scoring one problem.

        Raises InputError if the package, a task, an attribute or a setting is missing, or a number out of range.
        """
        names = [tasks] if isinstance(tasks, str) else list(tasks)
        if not names:
            raise InputError("reasoning_gym: tasks is empty; name at least one")
        if not 0 < threshold <= 1:
            raise InputError(f"reasoning_gym: threshold is {threshold:g}; choose more than 0, at most 1")
        if not 0 < seconds < float("inf"):
            raise InputError(f"reasoning_gym: seconds is {seconds:g}; choose more than 0")
        if unknown := [name for name in settings if name not in names]:
            raise InputError(f"reasoning_gym: settings.{unknown[0]:.60} is not among the tasks; choose from {names}")
        self.threshold, self.graded = threshold, graded
        self._tasks = {name: GymTask(name, settings.get(name, {}), seconds) for name in names}
        self._by = self._choose_ladder(by)
        self.left_out = self._find_left_out()
        self.space = self._make_space()

    def start(self) -> Design:
        """Equal shares, and for every task the easiest level at which problems can be drawn.

        With one task, these are its strata from which problems can be drawn. Raises InputError if no problems can be.
        """
        rows: dict[Stratum, DesignRow] = {}
        for stratum in self.space.strata:
            task = self._task_of(stratum)
            level = task.find_easiest()
            places = dict(zip(task.ladders, task.places_at(level), strict=True))
            values: DesignRow = (
                {knob.name: places[knob.name] for knob in self.space.knobs} if self._is_alone else {"level": level}
            )
            if self.drawable(self.space.cell(stratum, **values)):
                rows[stratum] = values
        if not rows:
            raise InputError(f"reasoning_gym: no {self._by} can be drawn at the easiest level; choose another by")
        shares = {stratum: {self.space.share.name: 1 / len(rows), **row} for stratum, row in rows.items()}
        return self.space.design(shares)

    def make(self, cell: Cell, rng: random.Random) -> Problem:
        """A problem of a cell. Raises InputError if the task gives no problem."""
        task, places = self._locate_cell(cell)
        why = ""
        for _ in range(TRIES):
            number = rng.getrandbits(31)
            try:
                entry = task.draw(places, number)
            except NoProblemError as error:
                why = str(error)
                continue
            data = {"task": task.name, "places": dict(zip(task.ladders, places, strict=True)), "number": number}
            return Problem(entry.question, entry.answer, data)
        raise InputError(f"reasoning_gym: {task.name} gives no problem at {cell} ({why}); choose easier values")

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """The verdict by the task's own scorer. A text that earns LITTLE is wrong, one below the threshold partial.

        It is scored in a process of its own, which is ended if a text takes more than `seconds`; the text is wrong
        then. Raises InputError if the problem is not from these tasks, or its task does not draw it again.
        """
        if not answer.strip():
            return Verdict(False, 0.0, "no_answer")
        task, places, number = self._read_data(problem)
        try:
            again = task.draw(places, number).question
            score = task.score(places, number, answer)
        except NoProblemError as error:
            raise InputError(f"reasoning_gym: {task.name} does not draw problem {number} again: {error}") from error
        if again != problem.prompt:
            raise InputError(
                f"reasoning_gym: {task.name} draws another problem {number} than before; "
                "use the version of reasoning-gym that drew it"
            )
        valid = score >= self.threshold - 1e-9
        failure = "" if valid else "partial" if score > LITTLE else "wrong"
        return Verdict(valid, score if self.graded else float(valid), failure)

    def drawable(self, cell: Cell) -> bool:
        """Whether problems are drawn at these places, each within the time, and their own answers are right."""
        return not self.why_not(cell)

    def why_not(self, cell: Cell) -> str:
        """Why a cell cannot be drawn; empty if it can."""
        task, places = self._locate_cell(cell)
        return task.explain(places)

    def _choose_ladder(self, by: str) -> str:
        """The attribute that is the strata; WHOLE if tasks are."""
        (task, *others) = self._tasks.values()
        if others and by not in ("", WHOLE):
            raise InputError(f"reasoning_gym: by is {by!r:.60}, but of several tasks each is a stratum; leave it out")
        if others or by == WHOLE:
            return WHOLE
        if by and by not in task.ladders:
            raise InputError(
                f"reasoning_gym: by is {by!r:.60}, not an attribute of {task.name}; choose from "
                f"{', '.join([*task.ladders, WHOLE])}"
            )
        fitting = (name for name, ladder in task.ladders.items() if 2 <= len(ladder.rungs) <= MOST_RUNGS)
        return by or next(fitting, WHOLE)

    def _find_left_out(self) -> dict[int, str]:
        """Why no problem of a stratum can be drawn, whichever places the other attributes have, by stratum."""
        if self._by == WHOLE:
            return {}
        (task,) = self._tasks.values()
        place_of = list(task.ladders).index(self._by)
        found: dict[int, str] = {}
        count = len(task.ladders[self._by].rungs)
        for place in range(count):
            others = dict.fromkeys(task.places_at(level) for level in range(task.top + 1))
            ways = dict.fromkeys((*one[:place_of], place, *one[place_of + 1 :]) for one in others)
            reasons = itertools.takewhile(bool, map(task.explain, ways))
            if len(listed := list(reasons)) == len(ways):
                found[place] = listed[-1]
        return found if len(found) < count else {}

    def _make_space(self) -> DesignSpace:
        (task, *others) = self._tasks.values()
        if others:
            tops: dict[Stratum, int] = {one.name: one.top for one in self._tasks.values()}
            level = _make_knob("level", "the place of all attributes of a task", max(tops.values()))
            limits = {name: {"level": (0.0, float(top))} for name, top in tops.items()}
            words = GymWords(stratum="task", task="A policy learns to solve generated problems of several tasks.")
            return DesignSpace(self._tasks, [level], limits=limits, ranked=False, failures=FAILURES, words=words)
        ladders = [ladder for name, ladder in task.ladders.items() if name != self._by]
        knobs = [
            _make_knob(ladder.name, f"the place on {', '.join(ladder.labels)}", len(ladder.rungs) - 1)
            for ladder in ladders
        ]
        strata: Sequence[Stratum] = [task.name]
        labels: dict[Stratum, str] = {}
        if self._by != WHOLE:
            found = task.ladders[self._by].labels
            labels = {place: f"{self._by} {label}" for place, label in enumerate(found) if place not in self.left_out}
            strata = list(labels)
        words = GymWords(
            stratum="task" if self._by == WHOLE else self._by,
            task=f"A policy learns to solve generated problems of the task {task.name}.",
            labels=labels,
        )
        return DesignSpace(strata, knobs, ranked=True, failures=FAILURES, words=words)

    @property
    def _is_alone(self) -> bool:
        """Whether there is one task, by its attributes."""
        return len(self._tasks) == 1

    def _task_of(self, stratum: Stratum) -> GymTask:
        return next(iter(self._tasks.values())) if self._is_alone else self._tasks[str(stratum)]

    def _locate_cell(self, cell: Cell) -> tuple[GymTask, Places]:
        """The task and the places of a cell."""
        values = [round(float(value)) for value in cell.values]
        task = self._task_of(cell.stratum)
        if not self._is_alone:
            return task, task.places_at(values[0])
        named = dict(zip((knob.name for knob in self.space.knobs), values, strict=True))
        if self._by != WHOLE:
            named[self._by] = int(cell.stratum)
        return task, tuple(named[name] for name in task.ladders)

    def _read_data(self, problem: Problem) -> tuple[GymTask, Places, int]:
        """Task, places and number of a problem. Raises InputError if it is not one of this environment."""
        data = problem.data if isinstance(problem.data, dict) else {}
        task, places, number = (data.get(name) for name in ("task", "places", "number"))
        if task not in self._tasks or not isinstance(places, dict) or not isinstance(number, int):
            known = ", ".join(self._tasks)
            raise InputError(f"reasoning_gym: data {problem.data!r:.80} belong to no problem; give one of {known}")
        found = self._tasks[task]
        for name, ladder in found.ladders.items():
            place = places.get(name)
            if not isinstance(place, int) or not 0 <= place < len(ladder.rungs):
                raise InputError(
                    f"reasoning_gym: data.places.{name} is {place!r:.20}; choose 0 to {len(ladder.rungs) - 1}"
                )
        return found, tuple(places[name] for name in found.ladders), number


def _make_knob(name: str, meaning: str, top: int) -> Knob:
    """A place on a ladder, which a round changes by one."""
    return Knob(name=name, meaning=meaning, low=0, high=top, step=1, reach=1, whole=True)
