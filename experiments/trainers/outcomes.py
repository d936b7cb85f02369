"""The outcomes of a folder as they are read: a line an answer, appended by many, of which each counts once."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.support import Natural
from lakewright.engineer.cells import Cell, stratum_of
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Group, Outcomes, Problem, Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.trainers.appending import LONGEST
from lakewright.experiments.trainers.outcome_index import EMPTY, Index, Names, Strata, digest_name
from lakewright.experiments.trainers.versions import Counts

BEGIN = b'{"version"'  # of a line that follows a torn one
CHUNK = 1 << 16  # bytes of a line that is too long, read at a time
SHOWN = 80  # characters of a detail

Split: TypeAlias = Literal["train", "held_out"]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of an answer: a line of `outcomes.jsonl`. Further fields are left alone.

    version, key, stratum, knobs, given: of the problem. group: what answers of one policy to one problem share.
    answer: the number of this one among them. A line with the same group, key and number as an earlier one is that line
    written twice. Lines without a number are different answers where they stand together; one that comes again later,
    the same in all fields, is written twice. tokens: its length.
    """

    version: Natural
    key: Text
    group: Text
    stratum: int | str
    knobs: dict[str, int | float | bool]
    valid: bool
    failure: str = ""
    reward: float
    tokens: Natural = 0
    split: Split = "train"
    answer: Natural | None = None
    grades: tuple[str, ...] = ()
    given: dict[str, int | float] = {}


class Answer(msgspec.Struct, frozen=True):
    """A line that counts. end: the bytes up to its end. fresh: whether the engineer has not read it yet."""

    line: Line
    cell: Cell
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


class Fault(msgspec.Struct, frozen=True):
    """A line that is left out, and why: a reason, and what was there."""

    number: int
    reason: str
    detail: str
    fresh: bool


class Read(msgspec.Struct, frozen=True):
    """A reading of the outcomes.

    index: of the lines before, which are not read again. answers, faults: of the lines after it. offset, lines: how
    many bytes and whole lines there are in all. repeats: knows the answers of all lines.
    """

    index: Index
    answers: list[Answer]
    faults: list[Fault]
    offset: int
    lines: int
    repeats: "Repeats"

    def counts(self) -> dict[int, Strata]:
        """By version and stratum, the answers of training and the valid ones among them, of all lines."""
        found = {version: dict(strata) for version, strata in self.index.counts.items()}
        for answer in self.answers:
            if answer.line.split == "train":
                strata = found.setdefault(answer.line.version, {})
                total, valid = strata.get(name := str(answer.cell.stratum), (0, 0))
                strata[name] = (total + 1, valid + answer.line.valid)
        return found

    def held_out(self) -> int:
        """The number of answers to held-out problems in all lines."""
        return self.index.held_out + sum(answer.line.split == "held_out" for answer in self.answers)

    def make_index(self, digest: str) -> Index:
        """The index of all lines. digest: the SHA-256 of their bytes."""
        return Index(
            offset=self.offset,
            lines=self.lines,
            digest=digest,
            counts=self.counts(),
            held_out=self.held_out(),
            group=self.repeats.group,
            together=dict(self.repeats.together),
            names=self.repeats.names.encode(),
        )

    def fresh(self) -> list[Answer]:
        """The answers that the engineer has not read."""
        return [answer for answer in self.answers if answer.fresh]

    def complaint(self, path: Path) -> str:
        """One line on the lines that were left out of what is new; empty where there are none."""
        fresh = [fault for fault in self.faults if fault.fresh]
        if not fresh:
            return ""
        first: dict[str, Fault] = {}
        for fault in fresh:
            first.setdefault(fault.reason, fault)
        counts = Counter(fault.reason for fault in fresh)
        parts = [
            f"{counts[reason]} with {reason} (line {fault.number}: {fault.detail})" for reason, fault in first.items()
        ]
        number = "1 line" if len(fresh) == 1 else f"{len(fresh)} lines"
        return one_line(f"{path}: {number} left out: {', '.join(parts)}; correct what writes them")


class RefusedError(Exception):
    """A line that does not count: a reason, and what was there."""

    def __init__(self, reason: str, detail: object = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, f"{detail!s:.{SHOWN}}"


class OutcomeReader:
    """Reads the outcomes of a folder.

    Args:
        path: of outcomes.jsonl.
        space: of the designs.
        design: the present one.
        newest: the version that lines may be of, at most.
        index: of the lines that need not be read again; by default none.
    """

    def __init__(self, path: Path, space: DesignSpace, design: Design, newest: int, index: Index = EMPTY) -> None:
        self.path, self.space, self.design, self.newest, self.index = path, space, design, newest, index
        self._decoder = msgspec.json.Decoder(Line)
        self._cells: dict[tuple[object, ...], Cell] = {}

    def read(self, offset: int) -> Read:
        """The lines after the index; those that end after `offset` are fresh.

        A last line without an end is left for the next time.
        """
        answers, faults, counted = [], [], Repeats(self.index)
        end, number = begin, before = self.index.offset, self.index.lines
        for number, (end, text) in enumerate(read_lines(self.path, begin), before + 1):
            fresh = end > offset
            for part in self._split_torn(text) if isinstance(text, bytes) else [text]:
                try:
                    line, cell = self._check_line(part)
                except RefusedError as error:
                    faults.append(Fault(number, error.reason, error.detail, fresh))
                    continue
                if counted.add_line(line):
                    answers.append(Answer(line, cell, end, fresh))
        return Read(self.index, answers, faults, end, number, counted)

    def _split_torn(self, text: bytes) -> list[bytes]:
        """The line; where a writer was killed within its own, that part and the whole line of another after it."""
        place = text.rfind(BEGIN)
        return [text] if place <= 0 or _is_json(text) else [text[:place], text[place:]]

    def _check_line(self, text: bytes | int) -> tuple[Line, Cell]:
        if isinstance(text, int):
            raise RefusedError(f"over {LONGEST >> 20} MB", f"{text} bytes")
        try:
            line = self._decoder.decode(text)
        except msgspec.ValidationError as error:
            raise RefusedError("a wrong field", error) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            odd = b"NaN" in text or b"Infinity" in text
            shown = text.rstrip()[:SHOWN].decode(errors="backslashreplace")
            raise RefusedError("a number that is not finite" if odd else "no JSON", shown) from None
        if line.version > self.newest:
            raise RefusedError("an unknown version", line.version)
        if not math.isfinite(line.reward):
            raise RefusedError("a number that is not finite", line.reward)
        if (line.valid and line.failure) or (not line.valid and line.failure not in self.space.failures):
            raise RefusedError("an unknown failure", repr(line.failure))
        if unknown := [grade for grade in line.grades if grade not in self.space.grades]:
            raise RefusedError("an unknown grade", repr(unknown[0]))
        return line, self._find_cell(line)

    def _find_cell(self, line: Line) -> Cell:
        names = (line.stratum, *line.knobs.items(), *line.given.items())
        if names not in self._cells:
            self._cells[names] = self._make_cell(line)
        return self._cells[names]

    def _make_cell(self, line: Line) -> Cell:
        stratum = stratum_of(line.stratum) if isinstance(line.stratum, str) else line.stratum
        if stratum not in self.space.ranks:
            raise RefusedError("an unknown stratum", repr(stratum))
        known = {given.name for given in self.space.givens}
        if line.given and set(line.given) != known:
            raise RefusedError("unknown givens", ", ".join(line.given))
        given = [line.given[each.name] for each in self.space.givens] if line.given else []
        try:
            cell = Cell(*self.space.cell(stratum, *given, **line.knobs))
        except (InputError, TypeError) as error:
            raise RefusedError("knobs that do not fit", error) from None
        return self.space.complete_cell(cell, self.design)


class Repeats:
    """Notices lines that are written twice. index: of the lines before."""

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


def read_lines(path: Path, begin: int = 0) -> Iterator[tuple[int, bytes | int]]:
    """The whole lines of a file: the bytes up to the end of each, and its text, or its length where it is too long.

    Lines that are empty are left out. A file that is not there has none. begin: how many bytes to pass over, up to the
    end of a line.
    """
    if not path.exists():
        return
    with open(path, "rb") as file:
        file.seek(begin)
        end = begin
        while text := file.readline(LONGEST + 1):
            size = len(text)
            while not text.endswith(b"\n"):
                if not (text := file.readline(CHUNK)):
                    return
                size += len(text)
            end += size
            if size > LONGEST:
                yield end, size
            elif text.strip():
                yield end, text


def make_groups(answers: Sequence[Answer]) -> list[Group]:
    """The groups of answers to problems of training: of one version and one cell each."""
    found: dict[tuple[object, ...], list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.line.split == "train":
            line = answer.line
            found[line.group, line.version, answer.cell, line.key].append(answer)
    return [Group.from_verdicts(members[0].problem, [one.verdict for one in members]) for members in found.values()]


def tally_held_out(space: DesignSpace, held_out: Sequence[Problem], answers: Sequence[Answer]) -> Outcomes | None:
    """The outcomes of the held-out problems, None without any.

    held_out: the problems of the folder. answers: of any split. Where all of `held_out` were answered, they are in
    their order, the last answer of each counting, so that rounds can be compared; else all answers count.
    """
    mine = [answer for answer in answers if answer.line.split == "held_out"]
    if not mine:
        return None
    last = {answer.line.key: answer for answer in mine}
    if held_out and all(problem.key in last for problem in held_out):
        return Outcomes.of(space, held_out, [last[problem.key].verdict for problem in held_out])
    outcomes = Outcomes.of(space, [answer.problem for answer in mine], [answer.verdict for answer in mine])
    outcomes.valid = ""
    return outcomes


def count_answers(read: Read, groups: int) -> Counts:
    """The new outcomes of a reading, counted."""
    fresh = read.fresh()
    return Counts(
        answers=sum(answer.line.split == "train" for answer in fresh),
        held_out=sum(answer.line.split == "held_out" for answer in fresh),
        groups=groups,
        tokens=sum(answer.line.tokens for answer in fresh),
        left_out=dict(Counter(fault.reason for fault in read.faults if fault.fresh)),
    )


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
