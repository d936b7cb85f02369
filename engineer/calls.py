"""Calls of an environment's code: one that raises, never returns, ends the program or forks gives an InputError."""

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TypeVar

from lakewright.core_jax.errors import InputError, one_line

T = TypeVar("T")

LIMIT = 60.0  # seconds of a call

_running: set[int] = set()  # threads in a call
_forked: set[int] = set()  # those of them that tried to fork


class _TooLongError(BaseException):
    """Raised in a call that takes too long; no Exception, so that the code does not catch it."""


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
        with _limit_time(where, limit):
            found = call()
    except InputError:
        raise
    except SystemExit as error:
        raise InputError(f"{where} ended the program ({error.code!r:.60}); return instead") from error
    except Exception as error:
        if thread not in _forked:
            raise InputError(one_line(f"{where} raised {type(error).__name__}: {error}; {remedy}")) from error
    finally:
        forked = thread in _forked
        _forked.discard(thread)
        if outer:
            _running.discard(thread)
    if forked:
        raise InputError(f"{where} started a copy of its process (os.fork); work in one process")
    return found


@contextmanager
def _limit_time(where: str, limit: float) -> Iterator[None]:
    """Ends the code after `limit` seconds, where a process has alarms and none is set."""
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer") or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    before = signal.signal(signal.SIGALRM, _end_call)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _TooLongError as error:
        raise InputError(f"{where} did not return within {limit:g} s; make it faster or end its loop") from error
    finally:
        signal.signal(signal.SIGALRM, before)


def _end_call(number: int, frame: FrameType | None) -> None:
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
