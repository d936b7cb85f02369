"""Plain calls of an environment's code: whatever it raises becomes one line, an InputError that names the place.

Nothing of the process is changed for a call: no signal, hook or thread. A call that never returns or ends the process
does so, as in any library; `check` tries for both, and `judge_limit` of an environment puts its judge into a process.
"""

import signal
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from lakewright.core_jax.errors import InputError

T = TypeVar("T")

SAID = 300  # characters of an error that are shown


class FailedCallError(InputError):
    """The line of a call that failed, which names the call."""


def run_call(where: str, call: Callable[[], T], *, remedy: str = "correct it") -> T:
    """The result of a call.

    Args:
        where: the member of the environment, and its input.
        call: its code.
        remedy: the advice in the error.

    Raises InputError in one line if the code raises an Exception or SystemExit; other errors, and what the handler of a
    signal raises, are not the code's and pass through.
    """
    return run_short_call(lambda: where, call, remedy=remedy)


def run_short_call(where: Callable[[], str], call: Callable[..., T], *arguments: Any, remedy: str = "correct it") -> T:
    """The result of a call with arguments, as `run_call`. where: gives the text, needed only after an error."""
    try:
        return call(*arguments)
    except FailedCallError:
        raise
    except (Exception, SystemExit) as error:
        if _is_of_a_signal(error):
            raise
        raise describe_error(where(), error, remedy) from error


def escape_surrogates(text: str) -> str:
    """Text that a file can hold: halves of surrogate pairs spelled out."""
    return text.encode(errors="backslashreplace").decode()


def show(value: object, most: int = 60) -> str:
    """Formats a value returned by user code for a message, at most `most` characters."""
    try:
        return f"{value!r:.{most}}"
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def describe_error(where: str, error: BaseException, remedy: str = "correct it") -> FailedCallError:
    """The line for an exception in an environment's code; an InputError has a remedy of its own."""
    if isinstance(error, InputError):
        return FailedCallError(f"{where}: {error}")
    if isinstance(error, SystemExit):
        return FailedCallError(f"{where} ended the program ({show(error.code)}); return instead")
    try:
        said = f"{error!s:.{SAID}}"
    except Exception:
        said = "an error whose text cannot be read"
    return FailedCallError(f"{where} raised {type(error).__name__}: {said}; {remedy}")


def _is_of_a_signal(error: BaseException) -> bool:
    """Return True if a handler of a signal raised this, such as one of SIGTERM, while the code was running."""
    # Found by its code on the traceback: an interrupt during a call is the user's, and must not become a judge's error.
    handlers = {_find_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    place = error.__traceback__
    while place:
        if place.tb_frame.f_code in handlers:
            return True
        place = place.tb_next
    return False


def _find_code(handler: Any) -> CodeType | None:
    """The code of a handler: a function, a method, a partial function or an object that can be called."""
    handler = getattr(handler, "func", handler)
    return getattr(handler, "__code__", None) or getattr(getattr(handler, "__call__", None), "__code__", None)  # noqa: B004
