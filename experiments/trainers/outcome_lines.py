"""The lines of `outcomes.jsonl`, one an answer: as recorders write them, and as they are checked when read."""

import codecs
import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support import decode_line, make_whole, refuse_pipe
from lakewright.engineer.calls import show
from lakewright.engineer.cells import Cell, stratum_of
from lakewright.engineer.design import Design
from lakewright.engineer.number_limits import MOST_REWARD, WholeNumber, is_reward
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.windows import find_ends, write_ends

BEGIN = b'{"version"'  # of a line that follows a torn one
MOST_TORN = 16  # places where a line may begin behind torn ones
LONGEST = 1 << 20  # bytes of a line
CHUNK = 1 << 16  # bytes of a line that is too long, read at a time
MOST_CELLS = 1 << 12  # that are remembered by the names in a line
CLOSE = 1e-6  # values of a level that differ by less are the same
SHOWN, TOLD = 80, 240  # characters of a value, and of a value with its choices

FindDesign: TypeAlias = Callable[[int], Design]  # of a version
Split: TypeAlias = Literal["train", "held_out"]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of an answer: a line of `outcomes.jsonl`. Further fields are left alone.

    version, key, stratum, knobs, given: the problem's. group: the name that one policy's answers to one problem share.
    answer: the number of this one among them. A line with the same group, key and number as an earlier one is that line
    written twice. Lines without a number are different answers if they stand together; one that comes again later,
    the same in all fields, is written twice. tokens: its length.
    """

    version: WholeNumber
    key: Text
    group: Text
    stratum: int | str
    knobs: dict[str, int | float | bool]
    valid: bool
    failure: str = ""
    reward: float
    tokens: WholeNumber = 0
    split: Split = "train"
    answer: WholeNumber | None = None
    grades: tuple[str, ...] = ()
    given: dict[str, int | float] = {}


class RefusedError(Exception):
    """A line that doesn't count: a reason, and the value that was there."""

    def __init__(self, reason: str, detail: object = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, f"{detail!s:.{TOLD}}"


class LineChecker:
    """Decodes and checks lines.

    Args:
        space: the design space.
        design: the current design.
        newest: the newest version that a line may name.
        find_design: gives the design of a version; by default no line is compared with its version's design.
    """

    def __init__(self, space: DesignSpace, design: Design, newest: int, find_design: FindDesign | None = None) -> None:
        self.space, self.design, self.newest, self._find_design = space, design, newest, find_design
        self._undrawn: dict[tuple[int, Cell], str] = {}
        self._decoder = msgspec.json.Decoder(Line)
        self._cells: dict[tuple[object, ...], Cell] = {}

    def check_line(self, text: bytes | int) -> tuple[Line, Cell]:
        """A line and its cell, from its text, or from its length if it is too long. Raises RefusedError."""
        if isinstance(text, int):
            raise RefusedError(f"over {LONGEST >> 20} MB", f"{text} bytes")
        line = self._decode_line(text)
        if line.version > self.newest:
            raise RefusedError("an unknown version", f"{line.version}; the newest is {self.newest}")
        if not is_reward(line.reward):
            raise RefusedError(f"a reward over {MOST_REWARD:g}", line.reward)
        if unknown := [grade for grade in line.grades if grade not in self.space.grades]:
            raise RefusedError("an unknown grade", f"{show(unknown[0])}; {suggest(unknown[0], self.space.grades)}")
        return line, self._find_cell(line)

    def drop_failure(self, line: Line) -> tuple[Line, str]:
        """The line without a failure that its verdict cannot have, and why; or the line, and nothing.

        To leave the line out would be worse: if one failure was renamed, all answers that are left would be valid.
        """
        if line.valid and line.failure:
            return msgspec.structs.replace(line, failure=""), "a failure though they are valid"
        if not line.valid and line.failure not in self.space.failures:
            return msgspec.structs.replace(line, failure=""), "a failure that is not declared"
        return line, ""

    def find_undrawn(self, line: Line, cell: Cell) -> str:
        """The difference of a problem of training from all that its version draws; empty if it may be one of these."""
        if self._find_design is None or line.split != "train":
            return ""
        if (known := (line.version, cell)) not in self._undrawn:
            if len(self._undrawn) == MOST_CELLS:
                self._undrawn.clear()
            self._undrawn[known] = _find_difference(cell, self._find_design(line.version), self.space)
        return self._undrawn[known]

    def _decode_line(self, text: bytes) -> Line:
        """A line of a recorder, or one of another tool that means the same. Raises RefusedError."""
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            return self._decoder.decode(text)
        try:
            return msgspec.convert(_make_usual(decode_line(text)), Line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            shown = text.rstrip()[:SHOWN].decode(errors="backslashreplace")
            if b"NaN" in text or b"Infinity" in text:
                raise RefusedError("a number that is not finite", shown) from None
            if isinstance(error, msgspec.ValidationError):
                raise RefusedError(f"a wrong {_find_field(str(error))}", error) from None
            raise RefusedError("no JSON", shown) from None

    def _find_cell(self, line: Line) -> Cell:
        names = (line.stratum, *line.knobs.items(), *line.given.items())
        if names not in self._cells:
            if len(self._cells) == MOST_CELLS:
                self._cells.clear()
            self._cells[names] = self._make_cell(line)
        return self._cells[names]

    def _make_cell(self, line: Line) -> Cell:
        stratum = stratum_of(line.stratum) if isinstance(line.stratum, str) else line.stratum
        if stratum not in self.space.ranks:
            raise RefusedError("an unknown stratum", f"{show(stratum)}; {suggest(stratum, self.space.strata)}")
        known = {given.name for given in self.space.givens}
        if line.given and set(line.given) != known:
            listed = ", ".join(map(show, line.given))
            raise RefusedError("unknown givens", f"{listed:.{SHOWN}}; write {', '.join(sorted(known)) or 'none'}")
        given = [line.given[each.name] for each in self.space.givens] if line.given else []
        try:
            cell = Cell(*self.space.cell(stratum, *given, **line.knobs))
        except (InputError, TypeError, OverflowError) as error:
            raise RefusedError("knobs that do not fit", error) from None
        return self.space.complete_cell(cell, self.design)


def _find_field(error: str) -> str:
    """The field that an error of msgspec is about."""
    found = re.search(r"missing required field `(\w+)`|`\$\.(\w+)", error)
    return f"field '{found[1] or found[2]}'" if found else "field"


def _find_difference(cell: Cell, design: Design, space: DesignSpace) -> str:
    """The difference of a cell from all cells of a design; empty if it is one of these."""
    row = design.strata.get(cell.stratum)
    if row is None or not row[space.share.name]:
        return f"stratum {cell.stratum!s:.40}, which has no share"
    for knob, value in zip(space.knobs, cell.values, strict=True):
        low, high = find_ends(row, knob)
        if knob.trait and low == 1 - value:
            return f"{knob.name} {'true' if value else 'false'}, but its share is {low:g}"
        if not knob.trait and not low - CLOSE <= value <= high + CLOSE:
            return f"{knob.name} {value:.6g}, but the design has {write_ends(row, knob)}"
    return ""


def _make_usual(raw: Any) -> Any:
    """Plain data of a line without what is missing, null or NaN; whole numbers are ints, and `valid` a bool."""
    if not isinstance(raw, dict):
        return raw
    usual = {name: make_whole(value) for name, value in raw.items() if value is not None and value == value}
    return usual | {"valid": bool(usual["valid"])} if usual.get("valid") in (0, 1) else usual


def split_torn(text: bytes) -> list[bytes]:
    """The line; if writers were killed within their lines, these remains and the whole line after them."""
    if not is_json(text):
        place = 0
        for _ in range(MOST_TORN):
            if (place := text.find(BEGIN, place + 1)) < 0:
                break
            if is_json(text[place:]):
                return [text[:place], text[place:]]
    return [text]


def is_json(text: bytes) -> bool:
    """Return True if this is JSON, however little it means."""
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def read_lines(path: Path, begin: int = 0, longest: int = LONGEST) -> Iterator[tuple[int, bytes | int]]:
    """The whole lines that a file has now: the bytes up to the end of each, and its text, or its length if it is long.

    Args:
        path: the file; a missing file has no lines.
        begin: the bytes to skip, up to the end of a line.
        longest: the most bytes of a line.

    Empty lines are left out, and so are lines appended from now on, so that this ends even if there are writers that
    never stop. Raises InputError on a pipe.
    """
    if not path.exists():
        return
    refuse_pipe(path)
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        end = file.seek(begin)
        while end < size and (text := file.readline(min(longest + 1, size - end))):
            length = len(text)
            text = text if end else text.removeprefix(codecs.BOM_UTF8)
            while not text.endswith(b"\n"):
                if not (text := file.readline(min(CHUNK, size - end - length))):
                    return
                length += len(text)
            end += length
            if length > longest:
                yield end, length
            elif text.strip():
                yield end, text


def open_appended(path: Path) -> int:
    """A descriptor of a file that is only appended to, and made if it isn't there. Raises InputError on a pipe."""
    refuse_pipe(path)
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


def append_whole(descriptor: int, data: bytes, path: Path) -> None:
    """Appends whole lines by one system call, so that other processes' lines come before or after.

    Raises OSError if the disk took only a part; readers leave out the remains of such a line.
    """
    try:
        written = os.write(descriptor, data)
    except OSError as error:
        error.filename = str(path)
        raise
    if written < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
