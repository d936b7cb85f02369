"""The outcomes of a folder as they are read: a line an answer, appended by many, of which each counts once.

They are read as a stream: memory does not grow with the number of lines, but for 16 bytes an answer, by which it is
known when its line comes again.
"""

import functools
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from lakewright.core_jax.errors import one_line
from lakewright.core_jax.results import RolloutGroup
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.problems import Group, Problem, Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.experiments.trainers.outcome_index import EMPTY, Index, Names, digest_name
from lakewright.experiments.trainers.outcome_lines import Line, LineChecker, RefusedError, read_lines, split_torn
from lakewright.experiments.trainers.stratum_counts import MOST_OPEN, StratumBook
from lakewright.experiments.trainers.versions import Counts

FEW = 32  # answers of a group
MOST_TALLIED = 1 << 10  # held-out answers that are counted one by one

Find = Callable[[], Sequence[Problem]]
Take = Callable[[list[Group]], None]


class Answer(msgspec.Struct, frozen=True):
    """A line that counts.

    group: the name of its group, of one version and one problem. end: the bytes up to its end. fresh: whether the
    engineer has not read it yet.
    """

    line: Line
    cell: Cell
    group: bytes
    end: int
    fresh: bool

    @property
    def verdict(self) -> Verdict:
        """The verdict on the answer."""
        line = self.line
        return Verdict(line.valid, line.reward, line.failure, line.grades)

    @property
    def problem(self) -> Problem:
        """The problem, without its text."""
        return Problem("", cell=self.cell, version=self.line.version, key=self.line.key)


class LeftOutLine(msgspec.Struct, frozen=True):
    """A line that is left out, and why: a reason, and what was there."""

    number: int
    reason: str
    detail: str
    fresh: bool


class Repeated(msgspec.Struct, frozen=True):
    """A line whose answer was there before, by its group, key and number."""

    number: int
    group: str
    fresh: bool


class OutcomeReader:
    """Reads the outcomes of a folder.

    Args:
        path: the file outcomes.jsonl.
        space: the design space.
        design: the current design.
        newest: the newest version that a line may name.
        index: the lines that need not be read again; by default all are read.
    """

    def __init__(self, path: Path, space: DesignSpace, design: Design, newest: int, index: Index = EMPTY) -> None:
        self.path, self.space, self.index = path, space, index
        self.offset, self.lines = index.offset, index.lines
        self.repeats = Repeats(index)
        self._checker = LineChecker(space, design, newest)

    def read_answers(self, offset: int = 0) -> Iterator[Answer | LeftOutLine | Repeated]:
        """The result of each line after the index; lines that end after `offset` are fresh.

        Lines that are appended from now on, and a last line without an end, are left for the next time.
        """
        for end, text in read_lines(self.path, self.offset):
            self.offset, self.lines, fresh = end, self.lines + 1, end > offset
            for part in split_torn(text) if isinstance(text, bytes) else [text]:
                try:
                    line, cell = self._checker.check_line(part)
                except RefusedError as error:
                    yield LeftOutLine(self.lines, error.reason, error.detail, fresh)
                    continue
                if self.repeats.add_line(line):
                    group = digest_name(msgspec.json.encode((line.group, line.version, line.key, cell)))
                    yield Answer(line, cell, group, end, fresh)
                else:
                    yield Repeated(self.lines, line.group, fresh)

    def read(self, offset: int, take: Take | None = None, find_held_out: Find = tuple) -> "Read":
        """The lines after the index, counted.

        Args:
            offset: lines that end after it are fresh.
            take: gets the groups of fresh answers of training, some at a time.
            find_held_out: finds the held-out problems of the folder, if there are fresh answers to any.
        """
        read, groups = Read(self, find_held_out), GroupBook(self.space)
        for one in self.read_answers(offset):
            read.add(one)
            if take and isinstance(one, Answer) and one.fresh and one.line.split == "train":
                read.groups += groups.add_answer(one)
                if groups.is_full():
                    take(groups.close_groups(MOST_OPEN // 2))
        if take and (left := groups.close_groups()):
            take(left)
        return read


class Read:
    """The results of some lines, counted.

    strata: counts of all lines of training. groups: those with fresh answers of training. repeated: fresh lines whose
    answers were there before. left_out: fresh lines that do not count, by reason.
    """

    def __init__(self, reader: OutcomeReader, find_held_out: Find = tuple) -> None:
        self._reader = reader
        self.strata = StratumBook(reader.index.counts, reader.index.open_groups)
        self._held_out = reader.index.held_out
        self._first: dict[str, LeftOutLine] = {}
        self._repeated: Repeated | None = None
        self.answers = self.tokens = self.groups = self.repeated = 0
        self.left_out: Counter[str] = Counter()
        self.tested = TestedAnswers(reader.space, find_held_out)

    def add(self, one: Answer | LeftOutLine | Repeated) -> None:
        """Counts a line."""
        if isinstance(one, Answer):
            self._add_answer(one)
        elif not one.fresh:
            pass
        elif isinstance(one, LeftOutLine):
            self.left_out[one.reason] += 1
            self._first.setdefault(one.reason, one)
        else:
            self.repeated += 1
            self._repeated = self._repeated or one

    def _add_answer(self, answer: Answer) -> None:
        line = answer.line
        if line.split == "train":
            self.strata.add_answer(line, str(answer.cell.stratum), answer.group)
            self.answers += answer.fresh
        else:
            self._held_out += 1
            if answer.fresh:
                self.tested.add_answer(answer)
        if answer.fresh:
            self.tokens += line.tokens

    @property
    def offset(self) -> int:
        """The number of bytes of all lines."""
        return self._reader.offset

    @property
    def pending(self) -> int:
        """The number of answers that the engineer has not read."""
        return self.answers + self.tested.count

    def held_out(self) -> int:
        """The number of answers to held-out problems in all lines."""
        return self._held_out

    def count_fresh(self) -> Counts:
        """The fresh lines, counted."""
        return Counts(self.answers, self.tested.count, self.groups, self.tokens, dict(self.left_out))

    def make_index(self, digest: str) -> Index:
        """The index of all lines. digest: the SHA-256 of their bytes."""
        repeats = self._reader.repeats
        return Index(
            offset=self._reader.offset,
            lines=self._reader.lines,
            digest=digest,
            counts=self.strata.counts,
            open_groups=self.strata.open_groups,
            held_out=self._held_out,
            group=repeats.group,
            together=dict(repeats.together),
            names=repeats.names.encode(),
        )

    def complaint(self, path: Path) -> str:
        """One line on the lines that do not count among the new ones; empty if there aren't any."""
        parts = []
        if self.left_out:
            found = [
                f"{count} with {reason} (line {self._first[reason].number}: {self._first[reason].detail})"
                for reason, count in self.left_out.items()
            ]
            parts.append(
                f"{_count_lines(self.left_out.total())} left out: {', '.join(found)}; "
                "correct the program that writes them"
            )
        if again := self._repeated:
            parts.append(
                f"{_count_lines(self.repeated)} with the group, key and number of an earlier answer (line "
                f"{again.number}: group {again.group!r:.40}), which count once; another training needs other groups"
            )
        if unknown := self.tested.unknown:
            parts.append(
                f"{unknown.total()} held-out answers to problems that are not held out here (the first has the key "
                f"{next(iter(unknown))!r:.40}), which count by their cells alone; answer what held_out() gives"
            )
        return one_line(f"{path}: {'; '.join(parts)}") if parts else ""


def _count_lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


class Repeats:
    """Notices lines that are written twice. index: the lines before."""

    def __init__(self, index: Index = EMPTY) -> None:
        self.names = Names(index.names)
        self.group, self.together = index.group, Counter[bytes](index.together)

    def add_line(self, line: Line) -> bool:
        """Notes a line; whether it is there for the first time."""
        if line.group != self.group:
            self.group, self.together = line.group, Counter()
        if line.answer is not None:
            return self.names.add(digest_name(msgspec.json.encode((line.group, line.key, line.answer))))
        text = digest_name(msgspec.json.encode(line))
        self.together[text] += 1
        return self.names.add(digest_name(text + str(self.together[text]).encode()))


class GroupBook:
    """The groups of answers to problems of training, of one version and one cell each, as their answers are read."""

    def __init__(self, space: DesignSpace) -> None:
        self._codes = {"": 0} | {name: place for place, name in enumerate(space.failures, 1)}
        self._names = ["", *space.failures]
        self._open: dict[bytes, tuple[Problem, array[int], array[float], array[int]]] = {}

    def add_answer(self, answer: Answer) -> bool:
        """Adds an answer; whether it is the first of its group."""
        line = answer.line
        if new := answer.group not in self._open:
            self._open[answer.group] = (answer.problem, array("H"), array("d"), array("q"))
        _, codes, rewards, tokens = self._open[answer.group]
        codes.append(self._codes[line.failure])
        rewards.append(line.reward)
        tokens.append(line.tokens)
        return new

    def is_full(self) -> bool:
        """Return True if no further group should be begun."""
        return len(self._open) >= MOST_OPEN

    def close_groups(self, count: int | None = None) -> list[Group]:
        """The groups that began first, which get no further answers; by default all."""
        names = list(self._open)[:count]
        return [self._make_group(*self._open.pop(name)) for name in names]

    def _make_group(
        self, problem: Problem, codes: "array[int]", rewards: "array[float]", tokens: "array[int]"
    ) -> Group:
        count = _count_few if len(codes) <= FEW else _count_rewards
        fields = msgspec.structs.asdict(count(codes.tobytes(), rewards.tobytes())) | {"board": problem.key}
        fields["failures"] = {self._names[code]: number for code, number in Counter(codes).items() if code}
        fields["tokens"] = sum(tokens) if all(tokens) else msgspec.UNSET  # 0 of a trainer that gives none
        return Group(**fields, rewards=tuple(rewards), cell=problem.cell, version=problem.version)


def _count_rewards(codes: bytes, rewards: bytes) -> RolloutGroup:
    return RolloutGroup.of("", np.frombuffer(codes, "H") == 0, np.frombuffer(rewards))


_count_few = functools.lru_cache(1 << 10)(_count_rewards)  # most groups are like others


class TestedAnswers:
    """Fresh answers to held-out problems. find: gives the problems of the folder. count: the counts of the answers."""

    __test__ = False  # for pytest, which takes it for tests

    def __init__(self, space: DesignSpace, find: Find) -> None:
        self._space, self._find = space, find
        self._last: dict[str, Verdict] = {}
        self._some: list[Answer] = []
        self._strata: dict[Stratum, Tally] = {}
        self._cells = Counter[tuple[Cell, bool]]()
        self.count = 0
        self.unknown = Counter[str]()  # keys of problems that the folder does not hold out

    @functools.cached_property
    def _problems(self) -> Sequence[Problem]:
        return self._find()

    @functools.cached_property
    def _keys(self) -> set[str]:
        return {problem.key for problem in self._problems}

    def add_answer(self, answer: Answer) -> None:
        """Adds an answer."""
        self.count += 1
        if answer.line.key in self._keys:
            self._last[answer.line.key] = answer.verdict
        elif self._keys:
            self.unknown[answer.line.key] += 1
        self._some.append(answer)
        if len(self._some) == MOST_TALLIED:
            self._tally_some()

    def _tally_some(self) -> None:
        found = tally_answers(self._space, self._some)
        parts = [*self._strata, *(stratum for stratum in found if stratum not in self._strata)]
        self._strata = {
            stratum: pool_tallies(table[stratum] for table in (self._strata, found) if stratum in table)
            for stratum in parts
        }
        self._cells.update(found.answers or {})
        self._some = []

    def tally(self) -> Outcomes | None:
        """The outcomes of the held-out problems, None without any answer.

        If all problems of the folder were answered, they are in their order, the last answer of each counting, so
        that rounds can be compared; else all answers count.
        """
        if not self.count:
            return None
        if self._keys and len(self._last) == len(self._keys):
            verdicts = [self._last[problem.key] for problem in self._problems]
            return Outcomes.of(self._space, self._problems, verdicts)
        self._tally_some()
        outcomes = Outcomes({stratum: self._strata[stratum] for stratum in self._space.sort_strata(self._strata)})
        outcomes.answers = self._cells
        return outcomes


def tally_answers(space: DesignSpace, answers: Iterable[Answer]) -> Outcomes:
    """The outcomes of some answers by stratum."""
    answers = list(answers)
    return Outcomes.of(space, [answer.problem for answer in answers], [answer.verdict for answer in answers])
