"""The pages of the reference that are made from the running code: commands, settings, teachers, samplers and files."""

import contextlib
import functools
import inspect
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args
from unittest.mock import patch

import msgspec
from cyclopts import App

from lakewright.core_jax.rows import Row
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.plugins import load_class
from lakewright.engineer.samplers import SAMPLERS
from lakewright.engineer.steps import Next
from lakewright.engineer.teachers import TEACHERS
from lakewright.engineer.trial import Trial
from lakewright.experiments.cli.app import build_app, main
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    Done,
    EngineerTraining,
    Rollback,
    SampledRecord,
    Validation,
)
from lakewright.experiments.loop.settings.setting_list import format_default, list_settings
from lakewright.experiments.studies.results import Results

COLUMNS = "110"  # letters of a line of help
PRESET = "cpu"  # whose values are the defaults of the settings
FILES: dict[str, type[msgspec.Struct]] = {  # what is read from each file
    "boards.jsonl, boards.parquet: a row": Row,
    "RUN/stage_NN/env.json": Design,
    "RUN/stage_NN/sampled.json": SampledRecord,
    "RUN/stage_NN/validation.json": Validation,
    "RUN/stage_NN/rollback.json": Rollback,
    "RUN/stage_NN/difficulty.json": Forecast,
    "RUN/stage_NN/evidence.json": Evidence,
    "RUN/stage_NN/proposal.json": DecisionRecord,
    "RUN/stage_NN/engineer.json": EngineerTraining,
    "RUN/stage_NN/trial.json": Trial,
    "RUN/stage_NN/next.json": Next,
    "RUN/stage_NN/done.json": Done,
    "STUDY/results.json": Results,
}


@functools.cache
def make_pages() -> dict[str, str]:
    """The Markdown of each page, by its address."""
    return {
        "reference/commands.md": make_command_page(),
        "reference/settings.md": make_settings_page(),
        "reference/teachers.md": make_registry_page("Teachers", "teacher", TEACHERS),
        "reference/files.md": make_file_page(),
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


def make_file_page() -> str:
    """A table of the fields of each file that is read as JSON."""
    intro = "Fields of the files, from the structs that read them. [The loop](../loop.md) has all files of a run."
    sections = (f"## {name}\n\n{describe_struct(struct)}" for name, struct in FILES.items())
    return "\n\n".join(["# Files", intro, *sections]) + "\n"


def describe_struct(struct: type[msgspec.Struct]) -> str:
    """The docstring of a struct, and its fields with their types."""
    rows = [
        f"| `{field.encode_name}` | {escape_cell(format_type(field.type))} | {'yes' if field.required else ''} |"
        for field in msgspec.structs.fields(struct)
    ]
    head = f"`{struct.__module__}.{struct.__qualname__}`"
    docstring = escape_formula(inspect.getdoc(struct) or "")
    return "\n\n".join([head, docstring, "| field | type | required |\n|---|---|---|\n" + "\n".join(rows)])


def format_type(kind: Any) -> str:
    """A type as Python writes it, without modules and ranges."""
    text = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
    text = re.sub(r"\b(\w+\.)+", "", text)
    text = re.sub(r"Annotated\[(.*?), Meta\(.*?\)\]", r"\1", text)
    return re.sub(r"^Optional\[(.*)\]$", r"\1 | None", text)


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
