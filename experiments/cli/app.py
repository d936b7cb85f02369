"""The command line, `lakewright COMMAND ...`: every command group, and the exit code of every error.

A new group of commands is one more file here with an `app`, and its name in GROUPS or FLAT below.
"""

import contextlib
import dataclasses
import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError
from cyclopts.help import DefaultFormatter, PanelSpec

from lakewright.core_jax.errors import InputError, is_of_the_disk, system_error
from lakewright.core_jax.support import describe_missing, keep_compiled_programs
from lakewright.experiments.cli import bench, benchmark, boards, check, engineer, host, new, run, study, sweep, view
from lakewright.experiments.cli.conventions.options import PLAIN, take_overrides
from lakewright.experiments.cli.conventions.output import print_error, reserve_output, usage_error
from lakewright.experiments.jobs.executors.executor import ClusterLostError, WorkerDiedError
from lakewright.experiments.jobs.resumable.overwriting import refuse_overwriting

FLAT = (boards.app, run.app, host.app, check.app)  # commands of the program itself
GROUPS = (engineer.app, study.app, benchmark.app, sweep.app, bench.app, view.app, new.app)  # with commands of their own
LONGEST_NUMBER = 1024  # bits: of shorter ones the commands say themselves what they may be
INTERRUPTED = 128 + signal.SIGINT  # the exit code that shells know
WRONG_PATH = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
LONGEST_PATH, LONGEST_NAME = 4095, 255  # bytes, of a whole path and of one file or folder in it
WRITTEN = ("out", "to", "rejects", "journal")  # options; every other path of a command is read
POSITIONAL = ("rows", "source", "spec", "paths", "benchmark", "folder", "first", "others")
MODELS = ("model", "models")  # text, since a model may be one on the hub
SETTINGS = ("start", "exclude")  # of a run, that name a folder or a file

FLAG_OF_JAX = re.compile(r"(JAX flag |environment '|for )(jax|JAX)_\w+'?")  # what JAX itself says, when it is imported

Named = tuple[str, Path]


def main(arguments: Sequence[str] | None = None, build: Callable[[], App] | None = None) -> int:
    """Runs a command: 0 done, 1 failed or rows left out, 2 bad input, 130 interrupted.

    build: makes other commands, which then have these exit codes.
    """
    keep_compiled_programs()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        with reserve_output() if "--json" in words else contextlib.nullcontext():
            return _run_command(words, build or build_app)
    except InputError as error:
        print_error(str(error))
        return 2
    except ModuleNotFoundError as error:
        if not (line := describe_missing(error, "this command", next(iter(words), ""))):
            raise
        print_error(line)
        return 2
    except (WorkerDiedError, ClusterLostError) as error:
        print_error(str(error))
        return 1
    except ValueError as error:
        if (flag := FLAG_OF_JAX.search(str(error))) is None:
            raise
        print_error(f"{str(error)[: flag.end()]}; correct this environment variable, or leave it out")
        return 2
    except RuntimeError as error:
        from lakewright.policy.inference import describe_full_memory

        if not (state := describe_full_memory(error)):
            raise
        print_error(f"{state}; end what else uses the GPU and give the same command again")
        return 2
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        sys.stderr.close()
        return 1
    except OSError as error:
        print_error(system_error(error))
        return 2 if isinstance(error, WRONG_PATH) or is_of_the_disk(error) else 1
    except KeyboardInterrupt:
        print_error("interrupted; finished work is saved, and the same command resumes")
        return INTERRUPTED


def _run_command(arguments: Sequence[str], build: Callable[[], App]) -> int:
    _check_text(arguments)
    overrides, words = take_overrides(bench.update_spelling(arguments))
    try:
        command, bound, unparsed = build().parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        print(usage_error(error), file=sys.stderr)
        return 2
    _check_values(bound.arguments)
    refuse_overwriting(*paths_of(bound.arguments, overrides))
    if "overrides" in unparsed:
        bound.arguments["overrides"] = overrides
    elif overrides:
        raise InputError(f"{overrides[0]!r:.60}: this command takes no settings of a run; remove it")
    return command(*bound.args, **bound.kwargs) or 0


def _check_text(arguments: Sequence[str]) -> None:
    """Raises InputError on an argument that is not UTF-8, such as the name of a file from elsewhere, and on `-`."""
    if "-" in arguments:
        raise InputError("-: commands read and write files, so they may be resumed; give a path")
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{argument!r:.60}: is not UTF-8; rename the file") from error


def _check_values(given: Mapping[str, Any]) -> None:
    """Raises InputError on what is too long: a whole number that Python refuses to print, or the path of a file."""
    for name, value in given.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, Path) and _is_too_long(one):
                raise InputError(system_error(OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), one)))
            if isinstance(one, int) and one.bit_length() > LONGEST_NUMBER:
                raise InputError(f"{name} is a whole number of {one.bit_length()} bits; choose one within 64 bits")


def _is_too_long(path: Path) -> bool:
    longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
    return longest > LONGEST_NAME or len(os.fsencode(path)) > LONGEST_PATH


def build_app() -> App:
    """All commands with their options."""
    app = App(
        name="lakewright",
        help="Reinforcement learning on problems that an engineer redesigns between stages: boards, or your own.",
        help_epilogue="Shell completion: lakewright --install-completion (bash, zsh, fish).",
        help_format="plaintext",
        help_formatter=help_style(),
        version=_read_version,
        default_parameter=PLAIN,
        verbose=False,
    )
    for flat in FLAT:
        app.command(flat, name="*")
    for group in GROUPS:
        app.command(group)
    app.register_install_completion_command(
        help="Install completion of commands, options and choices for this shell.",
        help_epilogue="example: lakewright --install-completion --shell bash",
    )
    return app


def _read_version() -> str:
    from importlib.metadata import version

    return version("lakewright")


def help_style() -> DefaultFormatter:
    """Titles above aligned columns; names are coloured on a terminal."""
    from rich.box import Box

    blank = Box("    \n" * 8)
    return DefaultFormatter(panel_spec=PanelSpec(box=blank, padding=0, title_align="left"))


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
