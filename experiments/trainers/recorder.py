"""The recorder: appends the verdicts on answers to the outcomes of a folder, from as many processes as there are."""

import operator
import os
import uuid
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import show
from lakewright.engineer.cells import list_parts
from lakewright.engineer.environment import Environment
from lakewright.engineer.number_limits import MOST_COUNT, is_reward, is_whole_number
from lakewright.engineer.problems import NUMBER, Problem, Verdict, find_fault_of_verdict, make_plain
from lakewright.engineer.space_checks import check_cell_of
from lakewright.experiments.trainers.outcome_lines import LONGEST, Line, Split, append_whole, open_appended
from lakewright.experiments.trainers.versions import VersionFiles


class OutcomeRecorder:
    """Appends outcomes to a folder."""

    def __init__(self, path: str | Path, environment: Environment | None = None) -> None:
        """Opens the outcomes of a folder.

        environment: the folder's environment, if it is already at hand. Raises InputError without an engineer.
        """
        self._files = files = VersionFiles(path)
        self._newest = -1
        self.path = files.folder
        self.environment = environment or files.load_environment()
        self._outcomes = files.outcomes_path
        self._descriptor = open_appended(self._outcomes)
        weakref.finalize(self, os.close, self._descriptor)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the folder again."""
        return type(self), (self.path,)

    def record(
        self,
        problem: Problem,
        answers: Sequence[str],
        outcomes: Sequence[Verdict | float] | None = None,
        *,
        split: Split = "train",
        tokens: Sequence[int] | None = None,
        group: str = "",
        first: int = 0,
    ) -> list[Verdict]:
        """Appends a line for each answer to a problem; once it returns they survive the end of this process.

        Args:
            problem: a problem from a source.
            answers: the texts of the answers.
            outcomes: a verdict for each answer, or a reward, in addition to the environment's verdict; by default only
                the environment's verdict.
            split: `train` or `held_out`.
            tokens: the length of each answer.
            group: a name for these answers; a trainer that repeats a step after it resumes should reuse the name, so
                that they count once; by default a new name.
            first: the number of the first answer in the group, if several processes record one group.

        Returns the verdicts. Raises InputError, and writes nothing, on a problem of another space or of a version that
        is not there, on a single text, and on lists of unequal lengths. So it does on a reward beyond MOST_REWARD, a
        verdict that the environment could not give, a broken length, another split, and a group that isn't a text.
        """
        check_group_name(group)
        verdicts, lengths = self.judge_answers(problem, answers, outcomes, split=split, tokens=tokens, first=first)
        self.append_verdicts(problem, verdicts, lengths, split=split, group=group or uuid.uuid4().hex, first=first)
        return verdicts

    def judge_answers(
        self,
        problem: Problem,
        answers: Sequence[str],
        outcomes: Sequence[Verdict | float] | None = None,
        *,
        split: Split = "train",
        tokens: Sequence[int] | None = None,
        first: int = 0,
    ) -> tuple[list[Verdict], list[int]]:
        """The verdicts and lengths of answers, checked as in `record`, with its arguments; nothing is written."""
        if split not in get_args(Split):
            raise InputError(f"split is {split!r:.40}; choose from {', '.join(get_args(Split))}")
        check_cell_of(problem, Problem, self.environment.space, "record: problem")
        self._check_version(problem.version)
        answers = list_parts("record: answers", answers)  # a single text would be read letter by letter
        verdicts = self._judge_answers(problem, answers, outcomes)
        counts = [0] * len(answers) if tokens is None else list(map(_as_int, list_parts("tokens", tokens)))
        _check_length("tokens", counts, answers)
        for name, numbers in (("tokens", counts), ("first", [first, first + len(answers)])):
            if wrong := [number for number in numbers if not is_whole_number(number)]:
                raise InputError(f"{name} is {show(wrong[0], 20)}; give a whole number, 0 to {MOST_COUNT}")
        return verdicts, counts

    def append_verdicts(
        self,
        problem: Problem,
        verdicts: Sequence[Verdict],
        tokens: Sequence[int],
        *,
        split: Split,
        group: str,
        first: int,
    ) -> None:
        """Appends a line for each verdict, which is not checked; see `record`.

        A verdict that was made elsewhere may have a failure that the space doesn't declare, which readers drop.

        Args:
            problem: a problem from a source.
            verdicts: one for each answer.
            tokens: the length of each answer.
            split: `train` or `held_out`.
            group: a name for these answers.
            first: the number of the first answer in the group.
        """
        lines = [
            self._make_line(problem, verdict, tokens=count, split=split, group=group, answer=number)
            for number, (verdict, count) in enumerate(zip(verdicts, tokens, strict=True), first)
        ]
        self._append_lines([msgspec.json.encode(line) + b"\n" for line in lines])

    def _make_line(
        self, problem: Problem, verdict: Verdict, *, tokens: int, split: Split, group: str, answer: int
    ) -> Line:
        """The line of an answer."""
        space, cell = self.environment.space, self.environment.space.name_cell(problem.cell)
        return Line(
            version=problem.version,
            key=problem.key,
            group=group,
            stratum=cell.stratum,
            knobs={knob.name: value for knob, value in zip(space.knobs, cell.values, strict=True)},
            valid=verdict.valid,
            failure=verdict.failure,
            reward=float(verdict.reward),
            tokens=tokens,
            split=split,
            answer=answer,
            grades=verdict.grades,
            given={given.name: value for given, value in zip(space.givens, cell.given, strict=False)},
        )

    def _check_version(self, version: int) -> None:
        """Raises InputError on a version that the folder does not have; its files are read only if it may be new."""
        if not is_whole_number(version) or version > self._newest:
            self._newest = self._files.newest()
        if not is_whole_number(version) or version > self._newest:
            said = f"record: problem: version {show(version, 20)}, but the newest here is {self._newest}"
            raise InputError(f"{said}; give problems of a source of this folder")

    def _judge_answers(
        self, problem: Problem, answers: Sequence[str], outcomes: Sequence[Verdict | float] | None
    ) -> list[Verdict]:
        if outcomes is not None:
            _check_length("outcomes", outcomes, answers)
        found = []
        for number, answer in enumerate(answers):
            given = None if outcomes is None else outcomes[number]
            if outcomes is not None and given is None:
                raise InputError(f"outcomes: outcome {number} is missing; give a reward or a verdict for each answer")
            verdict = given if isinstance(given, Verdict) else self.environment.check_verdict(problem, answer)
            if given is not None and not isinstance(given, Verdict):
                verdict = msgspec.structs.replace(verdict, reward=_as_float(given))
            if not is_reward(verdict.reward):
                raise InputError(f"outcomes: reward {number} is {show(verdict.reward, 20)}; {NUMBER}")
            if verdict.valid:
                verdict = msgspec.structs.replace(verdict, failure="")
            if fault := find_fault_of_verdict(verdict, self.environment.space):
                raise InputError(f"outcomes: answer {number}: {fault}")
            found.append(make_plain(verdict))
        return found

    def _append_lines(self, lines: list[bytes]) -> None:
        """Appends lines, all by one call if they are not too long for that."""
        if (longest := max(map(len, lines), default=0)) > LONGEST:
            raise InputError(f"outcome: a line has {longest} bytes; give the problem a key of at most 64 letters")
        together = b"".join(lines)
        for data in [together] if len(together) <= LONGEST else lines:
            append_whole(self._descriptor, data, self._outcomes)


def check_group_name(group: Any) -> None:
    """Raises InputError on a name that no line can hold, so that no reader leaves the line out later."""
    try:
        whole = isinstance(group, str) and len(group.encode()) >= 0
    except UnicodeEncodeError:
        whole = False
    if not whole:
        raise InputError(f"group is {show(group, 40)}; give a text, such as f'step {{step}} place {{place}}'")


def _check_length(name: str, given: Sequence[Any], answers: Sequence[str]) -> None:
    if len(given) != len(answers):
        raise InputError(f"{name}: {len(given)} for {len(answers)} answers; give one for each")


def _as_int(number: Any) -> Any:
    """A whole number of NumPy, of torch or written as a float as an int of Python; anything else unchanged."""
    try:
        return int(number) if isinstance(number, float) and number.is_integer() else operator.index(number)
    except TypeError:
        return number


def _as_float(number: Any) -> Any:
    """Likewise as a float."""
    try:
        return float(number)
    except (TypeError, ValueError, OverflowError):
        return number
