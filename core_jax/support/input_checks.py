"""Checks of settings and records from outside, and the messages on bad ones, which name field, value and remedy.

TOML from outside is bounded in size, in the depth of its keys and tables, and in its whole numbers.
"""

import codecs
import contextlib
import functools
import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Hashable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta

from lakewright.core_jax.config import MAX_AGENTS, MAX_HOLE_RATIO
from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support.digests import check_digest

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)
Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Weight = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Team = Annotated[int, Meta(ge=2, le=MAX_AGENTS)]  # agents of one board; one alone never has to wait
HoleRatio = Annotated[float, Meta(ge=0, le=MAX_HOLE_RATIO)]
MOST_LETTERS = 1 << 20
MOST_PARTS = 64  # of a key: tomllib's work grows with their square
BITS = 64  # of a whole number: Python refuses to print one of thousands of digits
# Comments and strings; one without its end reaches to the end of its line or of the text, so that all is read once.
OPAQUE = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^"\\]+|\\.|"{1,2}(?!"))*(?:"{3,5})?'
    r"|'''(?:[^']+|'{1,2}(?!'))*(?:'{3,5})?"
    r'|"(?:[^"\\\n]+|\\[^\n])*"?'
    r"|'[^'\n]*'?",
    re.DOTALL,
)
BETWEEN_KEYS = re.compile(r"[,={}\[\]\n]")


def read_config(path: str | Path, kind: type[T]) -> T:
    """Reads `path` (JSON, or TOML by its ending) as `kind`. Raises InputError naming file, field, value and remedy."""
    return convert(read_raw(path), kind, str(path))


def read_raw(path: str | Path) -> Any:
    """The plain data of a JSON or TOML file. Raises InputError if it cannot be read, was changed, or is neither."""
    path = Path(path)
    refuse_pipe(path)
    try:
        data = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    check_digest(path)
    try:
        if path.suffix == ".toml":
            return toml_table(data.decode(), str(path))
        decoded = msgspec.json.decode(data)
        if (twice := find_repeated_key(data)) is not None:
            raise InputError(f"{path}: has {twice!r:.60} twice; keep one of them")
        return decoded
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        form = "TOML" if path.suffix == ".toml" else "JSON"
        raise InputError(f"{path}: not {form} ({error}); correct the file") from error


def refuse_pipe(path: Path) -> None:
    """Raises InputError if a path is a named pipe, which would be waited for, perhaps for ever.

    What a shell gives to a command, such as /dev/stdin, has no name in a folder and is read.
    """
    try:
        piped = stat.S_ISFIFO(os.stat(os.path.realpath(path)).st_mode)
    except OSError:
        return
    if piped:
        raise InputError(f"{path}: is a pipe, which can be read only once; save it to a file first")


def find_repeated_key(text: bytes) -> str | None:
    """The first key that a JSON object has twice, of which readers see only the last; None without one.

    Raises ValueError or RecursionError if it is not JSON, or too deep.
    """
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) != len(dict(pairs)) and (twice := first_repeated(name for name, _ in pairs)) is not None:
            found.append(twice)

    # Numbers stay text: Python refuses those of many digits, which are judged elsewhere.
    json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str, strict=False)
    return found[0] if found else None


def convert(raw: Any, kind: type[T], where: str, path: str = "") -> T:
    """Converts plain Python data to `kind`.

    Raises InputError on an unknown or missing field, a wrong type, or a value that the type itself refuses.

    Args:
        raw: plain data.
        kind: a msgspec Struct, or what its fields hold.
        where: the name of the source.
        path: the field reached so far.
    """
    at = f"{where}: {path}: " if path else f"{where}: "
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _convert_struct(raw, kind, where, path)
    if get_origin(kind) is dict and isinstance(raw, dict):
        key_kind, value_kind = get_args(kind)
        pairs = ((_convert_leaf(k, key_kind, at), v, f"{path}.{k}".lstrip(".")) for k, v in raw.items())
        return {k: convert(v, value_kind, where, deeper) for k, v, deeper in pairs}  # type: ignore[return-value]
    return _convert_leaf(raw, kind, at)


def _convert_struct(raw: Any, kind: type[T], where: str, path: str) -> T:
    """`convert` for a Struct."""
    at = f"{where}: {path}: " if path else f"{where}: "
    if not isinstance(raw, dict):
        raise InputError(f"{at}expected an object, got {raw!r:.60}")
    fields = _read_fields(kind)  # type: ignore[arg-type]
    unknown = [name for name in raw if name not in fields]
    if unknown and kind.__struct_config__.forbid_unknown_fields:  # type: ignore[attr-defined]
        name = unknown[0]
        raise InputError(f"{at}unknown field {name!r:.60} = {raw[name]!r:.60}; {suggest(name, fields)}")
    if missing := [name for name, field in fields.items() if field.required and name not in raw]:
        raise InputError(f"{at}field {missing[0]!r} is missing; add it")
    given = [(fields[name], value, f"{path}.{name}".lstrip(".")) for name, value in raw.items() if name in fields]
    values = {field.name: convert(value, field.type, where, deeper) for field, value, deeper in given}
    try:
        return kind(**values)
    except ValueError as error:
        raise InputError(f"{at}{error}") from error


@functools.cache
def _read_fields(kind: type) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields by their names in files."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _convert_leaf(raw: Any, kind: Any, at: str) -> Any:
    if isinstance(raw, float) and not math.isfinite(raw):
        raise InputError(f"{at}{raw} is not a finite number; give one")
    try:
        return msgspec.convert(raw, kind, strict=not (kind is int and isinstance(raw, str)), str_keys=True)
    except msgspec.ValidationError as error:
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(make_whole(raw), kind, str_keys=True)
        if get_origin(kind) is Literal:
            raise InputError(f"{at}{raw!r:.60} does not fit; {suggest(raw, get_args(kind))}") from error
        problem = str(error).split(" - at ")[0]
        raise InputError(f"{at}{raw!r:.60} does not fit: {problem[0].lower()}{problem[1:]}") from error


def decode_line(line: bytes) -> Any:
    """A line of JSON as plain data, also with NaN in it, as Python's own writer has it; then Python reads its numbers.

    Raises as `msgspec.json.decode` does.
    """
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        if b"NaN" not in line:
            raise
        with contextlib.suppress(ValueError):
            return json.loads(line, parse_constant=_read_constant)
        raise


def _read_constant(name: str) -> float:
    if name != "NaN":
        raise ValueError(f"{name} is not a JSON number")
    return math.nan


def make_whole(raw: Any) -> Any:
    """Plain data in which whole numbers are ints, also if another tool wrote them as floats, as pandas does."""
    if (isinstance(raw, float) and raw.is_integer()) or (isinstance(raw, Decimal) and raw == raw.to_integral_value()):
        return int(raw)
    if isinstance(raw, list | tuple):
        return [make_whole(part) for part in raw]
    return {name: make_whole(part) for name, part in raw.items()} if isinstance(raw, dict) else raw


def first_repeated(items: Iterable[H]) -> H | None:
    """The first that stands there a second time; None if all are different."""
    seen: set[H] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def one_of(names: Iterable[str]) -> Meta:
    """Records which names a text may be, so that settings can be listed; it refuses nothing by itself."""
    return Meta(extra_json_schema={"enum": list(names)})


def toml_table(text: str, where: str) -> dict[str, Any]:
    """The table of a TOML text; `where` names its source.

    Raises InputError on what no settings need and what is slow to read or cannot be printed: a text that is too long or
    nested too deeply, or a whole number beyond 64 bits. Raises TOMLDecodeError if the text is not TOML.
    """
    if len(text) > MOST_LETTERS:
        raise InputError(f"{where}: {len(text)} characters of TOML; give at most {MOST_LETTERS}")
    if any(piece.count(".") >= MOST_PARTS for piece in BETWEEN_KEYS.split(OPAQUE.sub("", text))):
        raise InputError(f"{where}: a key has more than {MOST_PARTS} parts; shorten it")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise InputError(f"{where}: its brackets are nested too deeply; nest at most {MOST_PARTS}") from error
    except ValueError as error:  # of int(), which reads no number of thousands of digits
        raise InputError(f"{where}: a whole number has thousands of digits; choose one within {BITS} bits") from error
    for path, value in _walk_values(table, where):
        if isinstance(value, int) and value.bit_length() > BITS:
            raise InputError(
                f"{where}: {path:.60}: a whole number of {value.bit_length()} bits; choose one within {BITS} bits"
            )
    return table


def _walk_values(table: dict[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """All that the table holds, each with its dotted name. Raises InputError if it is nested too deeply."""
    waiting: list[tuple[str, Any, int]] = [(str(key), value, 1) for key, value in table.items()]
    while waiting:
        path, value, depth = waiting.pop()
        yield path, value
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        if parts and depth >= MOST_PARTS:
            raise InputError(f"{where}: {path:.60}: more than {MOST_PARTS} tables deep; nest less")
        waiting += [(f"{path}.{key}", part, depth + 1) for key, part in parts]


def ending(path: str | Path) -> str:
    """`.jsonl` or `.parquet`; raises InputError on any other ending."""
    form = Path(path).suffix
    if form not in (".jsonl", ".parquet"):
        raise InputError(f"{path}: the ending {form or '(none)'} is not a known format; use .jsonl or .parquet")
    return form
