"""Values by dotted names, as words of a command line: `name=value`, such as `guard.floor=0.1`."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import toml_table

DEEPEST = 8  # dots in a name


def set_all(words: Iterable[str], example: str = "guard.floor=0.1") -> dict[str, Any]:
    """The table of some words. Raises InputError as `set_value` does."""
    raw: dict[str, Any] = {}
    for word in words:
        set_value(raw, word, example)
    return raw


def set_value(raw: dict[str, Any], word: str, example: str) -> None:
    """Sets a value in a table and the tables in it; `null` is None.

    raw: the table. word: `name=value`. example: one of these, for messages. Raises InputError if it is not one.
    """
    where, known = f"override {word!r:.60}", example.partition("=")[0]
    name, given, value = word.partition("=")
    if not given or not name:
        raise InputError(f"{where}: write it as setting=value, such as {example}")
    if len(word.splitlines()) > 1:
        raise InputError(f"{where}: has several lines; give each setting as an argument of its own")
    *path, last = name.split(".")
    if len(path) > DEEPEST:
        raise InputError(f"{where}: has {len(path) + 1} parts; name a setting such as {known}")
    for part in path:
        raw = raw.setdefault(part, {})
        if not isinstance(raw, dict):
            raise InputError(f"{where}: {part} is a value, not a group; name a setting such as {known}")
    raw[last] = _read_value(value, where)


def _read_value(text: str, where: str) -> Any:
    """A TOML value, `null`, which TOML lacks and optional settings may have, or the text itself."""
    if text == "null":
        return None
    try:
        return toml_table(f"value = {text}", where)["value"]
    except tomllib.TOMLDecodeError:
        return text


def list_words(wanted: dict[str, Any], present: dict[str, Any], path: str = "") -> Iterator[str]:
    """The words that turn the values of one table into another's, as a shell reads them.

    wanted, present: the tables, of plain data. path: the name of both, with a dot at its end.
    """
    for name, value in wanted.items():
        now = present.get(name)
        if isinstance(value, dict) and isinstance(now, dict) and now.keys() <= value.keys():
            yield from list_words(value, now, f"{path}{name}.")
        elif value != now or name not in present:
            yield shlex.quote(f"{path}{name}={_write_value(value)}")


def _write_value(value: Any) -> str:
    """A value as `set_value` reads it."""
    if value is None:
        return "null"
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z_./][\w./:@-]*", value) and _read_value(value, "") == value
    return value if plain else _write_toml(value)


def _write_toml(value: Any) -> str:
    if isinstance(value, dict):
        parts = (f"{json.dumps(str(name))} = {_write_toml(part)}" for name, part in value.items() if part is not None)
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_write_toml, value))}]"
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)
