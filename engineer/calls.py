"""Calls of an environment's code: one that raises, never returns, ends the program or forks gives an InputError."""

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn, TypeVar

from lakewright.core_jax.errors import InputError

T = TypeVar("T")

LIMIT = 60.0  # seconds of a call
AGAIN = 0.0005  # seconds between alarms after the limit, as code may catch many of them
SAID = 300  # characters of an error that are shown

_running: set[int] = set()  # threads in a call
_limited = [False]  # whether an alarm may end the call of the main thread
_forked: set[int] = set()  # those of them that tried to fork


class _TooLongError(BaseException):
    """Raised in a call that takes too long; no Exception, so that the code does not catch it."""


class FailedCallError(InputError):
    """The line of a call that failed, which names the call."""


class SlowCallError(FailedCallError):
    """The line of a call that took too long."""


PASSED = (FailedCallError, KeyboardInterrupt, _TooLongError)  # errors that have a line, or are of an outer call


def run_call(where: str, call: Callable[[], T], *, limit: float = LIMIT, remedy: str = "correct it") -> T:
    """The result of a call.

    Args:
        where: the member of the environment, and on what.
        call: its code.
        limit: seconds.
        remedy: of an error.

    Raises InputError in one line where the code raises, ends the program or forks. Also where it takes longer than the
    limit, in the main thread of Linux or macOS; a call in a call, or beside an alarm of someone else, has no limit.
    """
    _guard_process()
    thread = threading.get_ident()
    outer = thread not in _running
    _running.add(thread)
    try:
        found = _call_in_time(where, call, limit)
    except PASSED:
        raise
    except BaseException as error:
        if thread not in _forked:
            raise describe_error(where, error, remedy) from error
    finally:
        forked = thread in _forked
        _forked.discard(thread)
        if outer:
            _running.discard(thread)
    if forked:
        raise FailedCallError(f"{where} started a copy of its process (os.fork); work in one process")
    return found


def run_short_call(where: Callable[[], str], call: Callable[..., T], *arguments: Any) -> T:
    """The result of a call of arguments, without a limit and a guard, for what is called often.

    where: gives the member of the environment, and on what. Raises InputError in one line where the code raises or ends
    the program.
    """
    try:
        return call(*arguments)
    except PASSED:
        raise
    except BaseException as error:
        raise describe_error(where(), error) from error


def show(value: object, most: int = 60) -> str:
    """A value of the code of an environment for a message. most: letters of it."""
    try:
        return f"{value!r:.{most}}"
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def describe_error(where: str, error: BaseException, remedy: str = "correct it") -> FailedCallError:
    """The line of what the code of an environment raised; an InputError has a remedy of its own."""
    if isinstance(error, InputError):
        return FailedCallError(f"{where}: {error}")
    if isinstance(error, SystemExit):
        return FailedCallError(f"{where} ended the program ({show(error.code)}); return instead")
    try:
        said = f"{error!s:.{SAID}}"
    except Exception:
        said = "an error whose text cannot be read"
    return FailedCallError(f"{where} raised {type(error).__name__}: {said}; {remedy}")


def _call_in_time(where: str, call: Callable[[], T], limit: float) -> T:
    """The result of a call, which ends after `limit` seconds, where a process has alarms and none is set."""
    main = threading.get_ident() == threading.main_thread().ident
    if not main or not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_REAL)[0]:
        return call()
    before = signal.signal(signal.SIGALRM, _end_call)
    try:
        _limited[0] = True
        signal.setitimer(signal.ITIMER_REAL, limit, AGAIN)
        try:
            return call()
        finally:
            _limited[0] = False  # at once, so that no further alarm ends what follows
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _TooLongError as error:
        raise SlowCallError(f"{where} did not return within {limit:g} s; make it faster or end its loop") from error
    finally:
        signal.signal(signal.SIGALRM, before)


def _end_call(number: int, frame: FrameType | None) -> None:
    if _limited[0]:
        raise _TooLongError


@functools.cache
def _guard_process() -> None:
    """From now on, code in a call cannot copy the process, nor end it at once, without a line and what is unwritten."""
    sys.addaudithook(_refuse_fork)
    end_process = os._exit

    def end_unless_in_call(status: int) -> NoReturn:
        if threading.get_ident() in _running:
            raise SystemExit(status)
        end_process(status)

    os._exit = end_unless_in_call


def _refuse_fork(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("os.fork", "os.forkpty") and (thread := threading.get_ident()) in _running:
        _forked.add(thread)
        raise PermissionError("an environment works in one process")
