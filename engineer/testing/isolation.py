"""Code of an environment in its own process: a call that hangs, exits or forks is ended there and reported."""

import ctypes
import mmap
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, NoReturn, TypeVar

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import FailedCallError, run_call

T = TypeVar("T")

ROOM = 8192  # bytes of memory in which a process says what it does
HEAD = struct.Struct("ddI")  # when the call must end, 0 where none is under way; its limit; the length of the case
PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>
GRACE = 2.0  # seconds that code which ignores a signal gets
JUDGES = ("judge", "groups", "verdicts", "tallies")  # members whose code reads answers
LIMITED = ", or give the environment a judge_limit"  # the remedy of these
AGAIN = 0.0005  # seconds between alarms after the limit, because code may catch many of them


class CallError(Exception):
    """The message about a call that didn't return."""


class _TooLongError(BaseException):
    """Raised in a call that takes too long; no Exception, so that the code doesn't catch it."""


class SlowCallError(FailedCallError):
    """The line of a call that took too long."""


class CallFence:
    """Makes this process one for calls alone: code in a call can neither copy nor end it, and ends within a limit.

    Its changes to signals, `os._exit` and audit hooks are for good, so it belongs in a process of the check.
    """

    def __init__(self) -> None:
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._running = self._forked = False
        self._end_process = os._exit
        os._exit = self._end_unless_in_call
        sys.addaudithook(self._refuse_fork)
        signal.signal(signal.SIGALRM, self._end_call)

    def run_call(self, where: str, call: Callable[[], T], limit: float) -> T:
        """The result of a call. Raises InputError in one line if it fails, takes more than `limit` seconds, or forks.

        Args:
            where: the member of the environment.
            call: its code.
            limit: seconds.
        """
        self._forked = False
        try:
            self._running = True
            signal.setitimer(signal.ITIMER_REAL, limit, AGAIN)
            try:
                result = run_call(where, call)
            finally:
                self._running = False  # at once, so that no further alarm ends what follows
                signal.setitimer(signal.ITIMER_REAL, 0)
        except _TooLongError as error:
            remedy = f"make it faster or end its loop{LIMITED if where in JUDGES else ''}"
            raise SlowCallError(f"{where} did not return within {limit:g} s; {remedy}") from error
        except FailedCallError:
            if not self._forked:
                raise
        if self._forked:
            raise FailedCallError(f"{where} started a copy of its process (os.fork); work in one process")
        return result

    def _is_in_call(self) -> bool:
        return self._running and (os.getpid(), threading.get_ident()) == (self._process, self._thread)

    def _end_call(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            raise _TooLongError

    def _end_unless_in_call(self, status: int) -> NoReturn:
        # In a call this becomes a fault in the report; elsewhere the process itself wants to end.
        if self._is_in_call():
            raise SystemExit(status)
        self._end_process(status)

    def _refuse_fork(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuses a copy that would go on with the check; the copies of multiprocessing do their own work and end."""
        if event in ("os.fork", "os.forkpty") and self._is_in_call() and not _is_in_multiprocessing():
            self._forked = True
            raise PermissionError("an environment works in one process")


def _is_in_multiprocessing() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame and not frame.f_globals.get("__name__", "").startswith("multiprocessing."):
        frame = frame.f_back
    return frame is not None


class Calls:
    """Runs calls of an environment's code.

    memory: says what runs, for the process that watches this one. limit: seconds that a call may take, with a fence.
    fence: a process that `watch_process` started; without one calls are plain. late: whether a call took
    longer. folder, variables: the working folder and the environment variables before any call.
    """

    def __init__(self, memory: mmap.mmap, limit: float, fence: CallFence | None = None) -> None:
        self.memory, self.limit, self.fence, self.late = memory, limit, fence, False
        self.folder, self.variables = os.getcwd(), dict(os.environ)

    def run_call(self, what: str, case: str, call: Callable[[], T], times: int = 1) -> T:
        """Returns the result of a call; raises CallError if it does anything but return.

        Args:
            what: the member of the environment.
            case: the case, as people read it.
            call: its code.
            times: how many times the limit for one problem the call may take.
        """
        said, limit = f"{what}\0{case}", times * self.limit
        data = said.encode(errors="backslashreplace")[: ROOM - HEAD.size]
        self.memory[HEAD.size : HEAD.size + len(data)] = data
        # The head comes after its text, so that the watching process never reads a length of text that is not there.
        HEAD.pack_into(self.memory, 0, time.monotonic() + limit, limit, len(data))
        try:
            return self.fence.run_call(what, call, limit) if self.fence else run_call(what, call)
        except InputError as error:
            self.late = self.late or isinstance(error, SlowCallError)
            raise CallError(str(error)) from error
        except BaseException as error:
            raise CallError(f"{what} raised {type(error).__name__}: {error}; correct it") from error
        finally:
            HEAD.pack_into(self.memory, 0, 0.0, limit, len(data))


def watch_process(
    work: Callable[[Calls, Callable[[bytes], None]], None], limit: float, tick: Callable[[], None]
) -> Iterator[bytes | CallError]:
    """Runs work in a process of its own and yields the messages that it sends.

    work: is given the calls and a function that sends a message. limit: seconds that a call may take. tick: called
    several times a second.

    If the process ends, or a call doesn't, a CallError comes last, whose arguments are what happened and the case.
    """
    memory, (reader, writer) = mmap.mmap(-1, ROOM), Pipe(duplex=False)
    # Text that is still in a buffer would be printed by both processes.
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if not process:
        _work_and_exit(work, memory, limit, writer)
    # Only the other process can write now, so its end closes the pipe.
    writer.close()
    try:
        for message in _read_messages(reader, memory, tick):
            yield message
            if isinstance(message, CallError):
                return
        _, status = os.waitpid(process, 0)
        # It was waited for, so its number may be another process's by now.
        process = 0
        if status or HEAD.unpack_from(memory)[0]:
            code = os.waitstatus_to_exitcode(status)
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            what, case = _read_call(memory)
            remedy = f"return instead of ending it{LIMITED if what in JUDGES else ''}"
            yield CallError(f"the process ended ({how}); {remedy}", case)
    finally:
        reader.close()
        if process:
            # It leads its own session, so whatever its code started ends with it.
            for end in (os.killpg, os.kill):
                with suppress(ProcessLookupError):
                    end(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _work_and_exit(
    work: Callable[[Calls, Callable[[bytes], None]], None], memory: mmap.mmap, limit: float, writer: Connection
) -> None:
    """The new process: what it prints goes to standard error because standard output is for the report."""
    code = 3
    try:
        if sys.platform == "linux":  # ends with the process that watches it, however that one ends
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        work(Calls(memory, limit, CallFence()), writer.send_bytes)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        writer.close()
        os._exit(code)


def _read_messages(reader: Connection, memory: mmap.mmap, tick: Callable[[], None]) -> Iterator[bytes | CallError]:
    """Messages until the process closes its end, or a call takes much longer than its limit."""
    while True:
        if reader.poll(0.1):
            try:
                message = reader.recv_bytes()
            except (EOFError, OSError):  # between two messages, or within one
                return
            yield message
        tick()
        # The alarm ends a call that runs Python; code that never returns to Python must be killed from here.
        end, limit, _ = HEAD.unpack_from(memory)
        if end and time.monotonic() > end + GRACE:
            what, case = _read_call(memory)
            yield CallError(f"no return within {limit:g} s; end its loop{LIMITED if what in JUDGES else ''}", case)
            return


def _read_call(memory: mmap.mmap) -> tuple[str, str]:
    """The member of the environment that runs, or ran last, and the case."""
    *_, length = HEAD.unpack_from(memory)
    what, _, case = memory[HEAD.size : HEAD.size + length].decode(errors="replace").partition("\0")
    return what, case
