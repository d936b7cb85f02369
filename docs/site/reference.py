"""The pages of the reference that are made from the running code: commands, settings, teachers and samplers."""

import contextlib
import functools
import inspect
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

from cyclopts import App

from lakewright.engineer.plugins import load_class
from lakewright.engineer.samplers import SAMPLERS
from lakewright.engineer.teachers import TEACHERS
from lakewright.experiments.cli.app import build_app, main
from lakewright.experiments.loop.settings.setting_list import format_default, list_settings

COLUMNS = "110"  # letters of a line of help
PRESET = "cpu"  # whose values are the defaults of the settings


@functools.cache
def make_pages() -> dict[str, str]:
    """The Markdown of each page, by its address."""
    return {
        "reference/commands.md": make_command_page(),
        "reference/settings.md": make_settings_page(),
        "reference/teachers.md": make_registry_page("Teachers", "teacher", TEACHERS),
        "reference/samplers.md": make_registry_page("Samplers", "sampler", SAMPLERS),
    }


def make_command_page() -> str:
    """What every command prints with `--help`."""
    sections = (f"## lakewright {' '.join(command)}\n\n```\n{print_help(command)}\n```" for command in list_commands())
    return "\n\n".join(["# Commands", "What each command prints with `--help`.", *sections]) + "\n"


def list_commands(app: App | None = None, group: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that does something, as its words."""
    app = app or build_app()
    for name in app:
        if name.startswith("-"):
            continue
        command = (*group, name)
        if app[name].default_command:
            yield command
        yield from list_commands(app[name], command)


def print_help(command: Sequence[str]) -> str:
    """What a command prints with `--help`."""
    printed = io.StringIO()
    plain = patch.dict(os.environ, {"COLUMNS": COLUMNS, "NO_COLOR": "1"})
    with plain, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*command, "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def make_settings_page() -> str:
    """A table of the settings for each part of a run."""
    parts: dict[str, list[str]] = {}
    for setting in list_settings(PRESET):
        part = setting.name.split(".")[0] if "." in setting.name else "run"
        cells = (f"`{setting.name}`", setting.type, format_default(setting.default), setting.meaning)
        parts.setdefault(part, []).append(f"| {' | '.join(map(escape_cell, cells))} |")
    head = "| setting | type | default | meaning |\n|---|---|---|---|"
    sections = (f"## {part}\n\n{head}\n" + "\n".join(rows) for part, rows in parts.items())
    intro = f"Set one by `lakewright run SETTING=VALUE`. Defaults are those of the preset `{PRESET}`."
    return "\n\n".join(["# Settings", intro, *sections]) + "\n"


def escape_cell(text: str) -> str:
    """A text as a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def make_registry_page(title: str, kind: str, registry: Mapping[str, str]) -> str:
    """The docstring and the options of each entry of a registry."""
    sections = (describe_entry(name, load_class(name, registry, kind, ())) for name in registry)
    intro = (
        f"From the docstrings; see [teachers and samplers](../teachers.md). A {kind} is named by `module:Class`, too."
    )
    return "\n\n".join([f"# {title}", intro, *sections]) + "\n"


def describe_entry(name: str, make: Callable[..., Any]) -> str:
    """A class, or a function that makes one: its docstring, and its arguments that have defaults."""
    options = [
        f"| `{option}` | {escape_cell(format_default(given.default))} |"
        for option, given in inspect.signature(make).parameters.items()
        if given.default is not given.empty
    ]
    table = ["| option | default |\n|---|---|\n" + "\n".join(options)] if options else []
    docstring = escape_formula(inspect.getdoc(make) or "")
    return "\n\n".join([f"## {name}", f"`{make.__module__}.{make.__qualname__}`", docstring, *table])


def escape_formula(text: str) -> str:
    """A docstring as Markdown: what looks like HTML or emphasis stays as it is, an indented line is code."""
    lines = text.splitlines()
    return "\n".join(
        line if line.startswith("    ") else line.replace("<", "&lt;").replace("*", "\\*") for line in lines
    )
