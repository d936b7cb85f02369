"""The output of commands: results on standard output, errors in one line on standard error."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, TextIO, TypeVar, get_args, get_origin

from cyclopts import App, CycloptsError
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
    ValidationError,
)

from lakewright.core_jax.errors import one_line, suggest

T = TypeVar("T")
_results: TextIO | None = None  # standard output, while other code is kept off it
KINDS: dict[Any, str] = {int: "a whole number", float: "a number"}


@contextlib.contextmanager
def reserve_output() -> Iterator[None]:
    """Keeps standard output for `print_result` in the block: what other code prints goes to standard error."""
    global _results
    with contextlib.ExitStack() as undo:
        undo.callback(_restore_results, _results)  # those of a command that called this one
        _results = sys.stdout
        if (own := sys.__stdout__) and sys.stdout is own:  # of a program; that of a test or a notebook is no file
            own.flush()
            before = os.dup(1)
            undo.callback(os.close, before)
            undo.callback(os.dup2, before, 1)
            _results = undo.enter_context(os.fdopen(os.dup(1), "w", encoding=own.encoding))
            os.dup2(2, 1)  # programs and libraries in C print here
        undo.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _restore_results(before: TextIO | None) -> None:
    global _results
    _results = before


def print_result(text: str) -> None:
    """Prints a result on standard output."""
    kept_off = _results is not None and sys.stdout is sys.stderr  # else a caller redirected it once more
    print(text, file=_results if kept_off else sys.stdout, flush=True)


def print_found(found: T, json: bool, as_text: Callable[[T], str]) -> None:
    """Prints what a command found, as JSON or as text."""
    print_result(encode_line(found) if json else as_text(found))


def encode_line(value: Any) -> str:
    """A value as a line of JSON."""
    import msgspec

    return msgspec.json.encode(value).decode()


def print_summary(summary: dict[str, Any], json: bool) -> None:
    """Prints what a command made: as JSON if requested, otherwise on a terminal only."""
    if json:
        print_result(encode_line(summary))
    elif sys.stderr.isatty():
        print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in summary.items()), file=sys.stderr)


def print_error(error: str) -> None:
    """Prints the line of an error."""
    print(f"lakewright: {one_line(error)}", file=sys.stderr)


def usage_error(error: CycloptsError) -> str:
    """One line for a command line that was not understood."""
    command = " ".join(["lakewright", *(error.command_chain or ())])
    return f"{command}: {_describe_problem(error)}; see `{command} --help`"


def _describe_problem(error: CycloptsError) -> str:
    match error:
        case CoercionError(token=token) if token is not None and error.argument is not None:
            return _wrong_value(token.keyword or error.argument.name, token.value, error.target_type)
        case MissingArgumentError(argument=argument) if argument is not None:
            return f"{argument.name} is missing; give it a value"
        case UnusedCliTokensError(unused_tokens=[first, *_]):
            return f"{first!r:.60} is not understood; remove it"
        case UnknownCommandError(unused_tokens=[first, *_]):
            return f"{first!r:.60} is not a command; {suggest(first, _list_commands(error.app))}"
        case ValidationError(exception_message=message) if message:
            return message
    return " ".join(str(error).split()).rstrip(".")


def _wrong_value(name: str, value: str, kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"{name} is {value!r:.60}; {suggest(value, get_args(kind))}"
    return f"{name} is {value!r:.60}; give {KINDS.get(kind, 'another value')}"


def _list_commands(app: App | None) -> list[str]:
    return [name for name in app.resolved_commands() if not name.startswith("-")] if app else []
