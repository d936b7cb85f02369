"""The outcomes of a folder as they are read: a line an answer, appended by many, of which each counts once.

They are read as a stream: memory doesn't grow with the number of lines, except for 16 bytes an answer, which tell
whether its line was there before.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from lakewright.core_jax.errors import one_line
from lakewright.engineer.design import Design
from lakewright.engineer.problems import Group
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.trainers.answer_groups import Answer, GroupBook
from lakewright.experiments.trainers.held_out_answers import Find, TestedAnswers
from lakewright.experiments.trainers.outcome_index import EMPTY, Index, Names, digest_name
from lakewright.experiments.trainers.outcome_lines import (
    SHOWN,
    FindDesign,
    Line,
    LineChecker,
    RefusedError,
    read_lines,
    split_torn,
)
from lakewright.experiments.trainers.reports import NextReport
from lakewright.experiments.trainers.stratum_counts import StratumBook
from lakewright.experiments.trainers.versions import Counts, FirstAnswer

Take = Callable[[list[Group]], None]


class LeftOutLine(msgspec.Struct, frozen=True):
    """A line that is left out, and why: a reason, and the value that was there."""

    number: int
    reason: str
    detail: str
    fresh: bool


class Dropped(msgspec.Struct, frozen=True):
    """A failure that was dropped from a line that counts, and why."""

    number: int
    reason: str
    detail: str
    fresh: bool


class Undrawn(msgspec.Struct, frozen=True):
    """A line that counts although its version draws no such problem: a reason, which names it, and the difference."""

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
        find_design: gives the design of a version; by default no line is compared with its version's design.
    """

    def __init__(
        self,
        path: Path,
        space: DesignSpace,
        design: Design,
        newest: int,
        index: Index = EMPTY,
        find_design: FindDesign | None = None,
    ) -> None:
        self.path, self.space, self.index = path, space, index
        self.offset, self.lines = index.offset, index.lines
        self.repeats = Repeats(index)
        self._checker = LineChecker(space, design, newest, find_design)

    def read_answers(self, offset: int = 0) -> Iterator[Answer | Dropped | LeftOutLine | Repeated | Undrawn]:
        """The result of each line after the index; lines that end after `offset` are fresh.

        A failure that was dropped comes before its answer, and so does a difference from its version.

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
                    named, reason = self._checker.drop_failure(line)
                    if reason:
                        yield Dropped(self.lines, reason, f"{line.failure!r:.{SHOWN}}", fresh)
                    if difference := self._checker.find_undrawn(line, cell):
                        said = f"problems that version {line.version} does not draw"
                        yield Undrawn(self.lines, said, difference, fresh)
                    yield Answer(named, cell, group, end, fresh)
                else:
                    yield Repeated(self.lines, line.group, fresh)

    def read(
        self,
        offset: int,
        take: Take | None = None,
        find_held_out: Find | None = None,
        waiting: Mapping[str, FirstAnswer] = MappingProxyType({}),
        expected: int = 0,
    ) -> "OutcomeTotals":
        """The lines after the index, counted.

        Args:
            offset: lines that end after it are fresh.
            take: gets the groups of fresh answers of training, some at a time.
            find_held_out: finds the held-out problems of the folder, if there are fresh answers to any.
            waiting: earlier answers to held-out problems that wait for others, as a version notes them.
            expected: a version that a trainer which keeps up with the design has by now.
        """
        totals = OutcomeTotals(self, TestedAnswers(self.space, find_held_out, waiting), expected)
        groups = GroupBook(self.space)
        for one in self.read_answers(offset):
            totals.add(one)
            if take and isinstance(one, Answer) and one.fresh and one.line.split == "train":
                totals.groups += groups.add_answer(one)
                if some := groups.close_some():
                    take(some)
        if take and (left := groups.close_groups()):
            take(left)
        return totals


class OutcomeTotals:
    """The results of some lines, counted.

    strata: counts of all lines of training. held_out: the number of answers to held-out problems in all lines. groups:
    those with fresh answers of training. repeated: fresh lines whose answers were there before. left_out: fresh lines
    that don't count, by reason. dropped: likewise, fresh lines that count without their failure. undrawn: likewise,
    fresh lines whose version draws no such problem. faults: the three for all lines, by their names.
    """

    def __init__(self, reader: OutcomeReader, tested: TestedAnswers, expected: int = 0) -> None:
        self._reader, self.tested, self._expected, self._latest = reader, tested, expected, 0
        self.strata = StratumBook(reader.index.counts, reader.index.open_groups)
        self.held_out = reader.index.held_out
        self._first: dict[str, LeftOutLine | Dropped | Undrawn] = {}
        self._repeated: Repeated | None = None
        self.answers = self.tokens = self.groups = self.repeated = 0
        self.left_out, self.dropped, self.undrawn = Counter[str](), Counter[str](), Counter[str]()
        known = reader.index.faults
        self.faults = {name: Counter(known.get(name, {})) for name in ("left_out", "dropped", "undrawn")}

    def add(self, one: Answer | Dropped | LeftOutLine | Repeated | Undrawn) -> None:
        """Counts a line."""
        if isinstance(one, Answer):
            self._add_answer(one)
        elif not isinstance(one, Repeated):
            self._add_fault(one)
        elif one.fresh:
            self.repeated += 1
            self._repeated = self._repeated or one

    def _add_fault(self, one: Dropped | LeftOutLine | Undrawn) -> None:
        name = "left_out" if isinstance(one, LeftOutLine) else "dropped" if isinstance(one, Dropped) else "undrawn"
        self.faults[name][one.reason] += 1
        if one.fresh:
            fresh: Counter[str] = getattr(self, name)
            fresh[one.reason] += 1
            self._first.setdefault(one.reason, one)

    def _list_reasons(self, counts: Counter[str]) -> str:
        """The number of lines for each reason, with the first line."""
        first = ((self._first[reason], count) for reason, count in counts.items())
        return ", ".join(f"{count} with {one.reason} (line {one.number}: {one.detail})" for one, count in first)

    def _add_answer(self, answer: Answer) -> None:
        line = answer.line
        if line.split == "train":
            self.strata.add_answer(line, str(answer.cell.stratum), answer.group)
            self.answers += answer.fresh
            self._latest = max(self._latest, line.version * answer.fresh)
        else:
            self.held_out += 1
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

    @property
    def outdated(self) -> bool:
        """Whether all fresh answers of training are to problems of designs that a trainer should have left by now."""
        return self.answers > 0 and self._latest < self._expected

    def count_fresh(self) -> Counts:
        """The fresh lines, counted."""
        return Counts(self.answers, self.tested.count, self.groups, self.tokens, dict(self.left_out))

    def describe_in(self, report: NextReport, path: Path) -> NextReport:
        """The report with the counts of the fresh lines, and the complaint."""
        said = self.complaint(path)
        return msgspec.structs.replace(report, counts=self.count_fresh(), complaint=said, outdated=self.outdated)

    def make_index(self, digest: str) -> Index:
        """The index of all lines. digest: the SHA-256 of their bytes."""
        repeats = self._reader.repeats
        return Index(
            offset=self._reader.offset,
            lines=self._reader.lines,
            digest=digest,
            counts=self.strata.counts,
            open_groups=self.strata.open_groups,
            held_out=self.held_out,
            faults={name: dict(counts) for name, counts in self.faults.items()},
            group=repeats.group,
            together=dict(repeats.together),
            names=repeats.names.encode(),
        )

    def complaint(self, path: Path) -> str:
        """One line on the lines that don't count among the new ones, or not whole; empty if all of them count."""
        parts = []
        if self.left_out:
            parts.append(
                f"{_count_lines(self.left_out.total())} left out: {self._list_reasons(self.left_out)}; "
                "correct the program that writes them"
            )
        if self.dropped:
            parts.append(
                f"{_count_lines(self.dropped.total())} counted without a failure: {self._list_reasons(self.dropped)}; "
                f"failures of invalid answers are {', '.join(self._reader.space.failures)}"
            )
        if self.undrawn:
            parts.append(
                f"{_count_lines(self.undrawn.total())} from another design: {self._list_reasons(self.undrawn)}; "
                "let the trainer draw from design.json"
            )
        if self.outdated:
            parts.append(
                f"no new answer is to a problem of version {self._expected}, which was there before, but all "
                f"{self.answers} are to problems of version {self._latest}{' or earlier' * (self._latest > 0)}; let "
                "the trainer draw each problem when it needs it, and give it more rows if it repeats them"
            )
        if again := self._repeated:
            parts.append(
                f"{_count_lines(self.repeated)} with the group, key and number of an earlier answer (line "
                f"{again.number}: group {again.group!r:.40}), which count once; a new round or training needs other "
                "groups"
            )
        if unknown := self.tested.unknown:
            parts.append(
                f"{unknown.total()} held-out answers to problems that are not held out here (the first has the key "
                f"{next(iter(unknown))!r:.40}), which say nothing about a fall; answer the problems from held_out()"
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
