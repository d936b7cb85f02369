"""Errors of the command line itself as one line: what is wrong, and where to read how it is right."""

from typing import Any, Literal, get_args, get_origin

from cyclopts import App, CycloptsError
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
    ValidationError,
)

KINDS: dict[Any, str] = {int: "a whole number", float: "a number"}


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
            return f"{first!r:.60} is not a command; choose from {', '.join(_list_commands(error.app))}"
        case ValidationError(exception_message=message) if message:
            return message
    return " ".join(str(error).split()).rstrip(".")


def _wrong_value(name: str, value: str, kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"{name} is {value!r:.60}; choose from {', '.join(map(str, get_args(kind)))}"
    return f"{name} is {value!r:.60}; give {KINDS.get(kind, 'another value')}"


def _list_commands(app: App | None) -> list[str]:
    return [name for name in app.resolved_commands() if not name.startswith("-")] if app else []
