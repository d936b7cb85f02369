"""The paths on a command line, by what the command does with them: writes, or reads."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

WRITTEN = ("out", "to", "rejects", "journal")  # options; every other path of a command is read
POSITIONAL = ("rows", "source", "spec", "paths", "benchmark", "folder", "first", "others")
MODELS = ("model", "models")  # text, since a model may be one on the hub
SETTINGS = ("start", "exclude")  # of a run, that name a folder or a file

Named = tuple[str, Path]


def paths_of(arguments: Mapping[str, Any], overrides: Sequence[str]) -> tuple[list[Named], list[Named]]:
    """The paths that a command writes and those that it reads, each with its name in messages.

    arguments: the values of a command's parameters, by name. overrides: settings of a run, as `name=value`.
    """
    given = list(_list_paths(arguments))
    settings = [(name, Path(value)) for name, _, value in (override.partition("=") for override in overrides)]
    outputs = [(f"--{name}", path) for name, path in given if name in WRITTEN]
    inputs = [(_name_option(name), path) for name, path in given if name not in WRITTEN]
    return outputs, [*inputs, *((name, path) for name, path in settings if name in SETTINGS)]


def _list_paths(arguments: Mapping[str, Any]) -> Iterator[Named]:
    """Every path among the values, those in lists and in groups of options too."""
    for name, value in arguments.items():
        if dataclasses.is_dataclass(value):
            yield from _list_paths(vars(value))
        elif name in MODELS and isinstance(value, str):
            yield from ((name, Path(place)) for place in value.split(","))
        else:
            items = value if isinstance(value, list | tuple) else [value]
            yield from ((name, item) for item in items if isinstance(item, Path))


def _name_option(name: str) -> str:
    return "the input" if name in POSITIONAL else f"--{name.replace('_', '-')}"
