"""Every setting of a run: its dotted name, its type, its default in a preset, and its meaning.

Types and ranges are read from the annotations of `RunSettings` and its parts, meanings from the docstrings below them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from docstring_parser import parse_from_object
from msgspec import inspect

from lakewright.core_jax.errors import InputError, suggest
from lakewright.experiments.loop.settings.run_settings import RunSettings, load_settings

SIZE = "SIZE"  # a map size, in the names of settings
WIDTHS = (None, 24, 22, 72)  # letters of the columns of the table, beyond which they are wrapped
BOUNDS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
NAMES: dict[type, str] = {inspect.BoolType: "true or false", inspect.StrType: "text", inspect.NoneType: "none"}


class Setting(msgspec.Struct, frozen=True):
    """A setting of a run. default: the preset's value; by size for settings of map sizes."""

    name: str
    type: str
    default: Any
    meaning: str


def list_settings(preset: str, prefix: str = "") -> list[Setting]:
    """The settings whose names begin with `prefix`. Raises InputError without such a setting or preset."""
    values = _as_json(load_settings(preset, []))
    found = list(_list_struct(RunSettings, values, ""))
    chosen = [setting for setting in found if setting.name.startswith(prefix)]
    if not chosen:
        heads = dict.fromkeys(setting.name.split(".")[0] for setting in found)
        raise InputError(f"no setting begins with {prefix!r:.60}; {suggest(prefix, heads)}")
    return chosen


def format_settings(settings: Sequence[Setting]) -> str:
    """The settings as text, one line or a few for each."""
    from tabulate import tabulate

    rows = [(setting.name, setting.type, format_default(setting.default), setting.meaning) for setting in settings]
    header = ("setting", "type", "default", "meaning")
    return tabulate(rows, header, tablefmt="simple", maxcolwidths=list(WIDTHS), disable_numparse=True)


def format_default(value: Any) -> str:
    """A default as a person writes it."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {format_default(part)}" for name, part in value.items()) or "empty"
    if isinstance(value, list | tuple):
        return ", ".join(map(format_default, value)) or "empty"
    if value is None or isinstance(value, str):
        return "none" if value is None else value or "empty"
    return msgspec.json.encode(value).decode()


def _list_struct(kind: type, values: Mapping[str, Any], path: str) -> Iterator[Setting]:
    """The settings of a struct and, in their places, of the structs in it."""
    parents = [base for base in reversed(kind.__mro__) if msgspec.Struct in base.__mro__[1:]]
    params = [part for base in parents for part in parse_from_object(base).params]
    meanings = {part.arg_name: " ".join((part.description or "").split()) for part in params}
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        name, value = path + field.name, values.get(field.name)
        part = _struct_in(field.type)
        if isinstance(field.type, inspect.DictType) and part:
            yield from _list_struct(part, _by_field(value), f"{name}.{SIZE}.")
            continue
        if not isinstance(field.type, inspect.StructType):
            shown = "a table" if part and isinstance(value, dict) else value
            yield Setting(name, describe_type(field.type), shown, meanings.get(field.name, ""))
        if part:
            yield from _list_struct(part, value if isinstance(value, dict) else _read_defaults(part), f"{name}.")


def _struct_in(kind: inspect.Type) -> type | None:
    """The struct that a value may be, or that the values of a table are."""
    if isinstance(kind, inspect.StructType):
        return kind.cls
    if isinstance(kind, inspect.DictType):
        return _struct_in(kind.value_type)
    parts = kind.types if isinstance(kind, inspect.UnionType) else ()
    return next((part.cls for part in parts if isinstance(part, inspect.StructType)), None)


def _by_field(table: Any) -> dict[str, dict[str, Any]]:
    """A table of tables, the inner names first."""
    names = dict.fromkeys(name for part in table.values() for name in part)
    return {name: {key: part[name] for key, part in table.items()} for name in names}


def _read_defaults(kind: type) -> dict[str, Any]:
    """The defaults of a struct that the preset doesn't have."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    return {name: None if field.required else _as_json(field.default) for name, field in fields.items()}


def _as_json(value: Any) -> Any:
    """A value as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def describe_type(kind: inspect.Type) -> str:
    """A type as text, with its range or its choices."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            return ", ".join(schema["enum"]) if schema and "enum" in schema else describe_type(inner)
        case inspect.IntType() | inspect.FloatType():
            return " ".join(["whole number" if isinstance(kind, inspect.IntType) else "number", *_describe_range(kind)])
        case inspect.LiteralType(values=values):
            return ", ".join(map(str, values))
        case inspect.UnionType(types=types):
            return " or ".join(map(describe_type, sorted(types, key=lambda part: isinstance(part, inspect.NoneType))))
        case inspect.VarTupleType(item_type=item):
            return f"list of: {describe_type(item)}"
        case inspect.DictType() | inspect.StructType():
            return "table"
    return NAMES[type(kind)]


def _describe_range(kind: inspect.IntType | inspect.FloatType) -> Iterator[str]:
    if kind.ge is not None and kind.le is not None:
        yield f"{kind.ge:g} to {kind.le:g}"
        return
    for name, sign in BOUNDS.items():
        if (bound := getattr(kind, name)) is not None:
            yield f"{sign} {bound:g}"
