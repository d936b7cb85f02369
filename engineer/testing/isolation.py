"""Code of an environment in a process of its own: what never returns, exits or forks ends there and is named."""

import ctypes
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TypeVar

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import SlowCallError, run_call

T = TypeVar("T")

ROOM = 8192  # bytes of memory in which a process says what it does
HEAD = struct.Struct("ddI")  # when the call must end, 0 where none is under way; its limit; the length of the case
PR_SET_PDEATHSIG = 1  # of <sys/prctl.h>
GRACE = 2.0  # seconds that code which ignores a signal gets


class CallError(Exception):
    """The message of a call that did something else than returning."""


class Calls:
    """Runs calls of an environment's code, each within `limit` seconds, in the process that `watch_process` started.

    late: whether one of them took longer.
    """

    def __init__(self, memory: mmap.mmap, limit: float) -> None:
        self.memory, self.limit, self.late = memory, limit, False

    def run_call(self, what: str, case: str, call: Callable[[], T], times: int = 1) -> T:
        """The result of a call. Raises CallError where it does anything else.

        Args:
            what: the member of the environment.
            case: for people.
            call: its code.
            times: how often the limit it may take, which is that of one problem.
        """
        data, limit = case.encode(errors="backslashreplace")[: ROOM - HEAD.size], times * self.limit
        self.memory[HEAD.size : HEAD.size + len(data)] = data
        HEAD.pack_into(self.memory, 0, time.monotonic() + limit, limit, len(data))
        try:
            return run_call(what, call, limit=limit)
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

    work: is given the calls and a function that sends a message. limit: of a call, seconds. tick: called several times
    a second.

    Where the process ends, or a call does not, a CallError comes last, whose arguments are what happened and the case.
    """
    memory, (reader, writer) = mmap.mmap(-1, ROOM), Pipe(duplex=False)
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if not process:
        _work_and_exit(work, memory, limit, writer)
    writer.close()
    try:
        for message in _read_messages(reader, memory, tick):
            yield message
            if isinstance(message, CallError):
                return
        _, status = os.waitpid(process, 0)
        process = 0
        if status or HEAD.unpack_from(memory)[0]:
            code = os.waitstatus_to_exitcode(status)
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            yield CallError(f"the process ended ({how}); return instead of ending it", _read_case(memory))
    finally:
        reader.close()
        if process:
            for end in (os.killpg, os.kill):
                with suppress(ProcessLookupError):
                    end(process, signal.SIGKILL)
            os.waitpid(process, 0)


def _work_and_exit(
    work: Callable[[Calls, Callable[[bytes], None]], None], memory: mmap.mmap, limit: float, writer: Connection
) -> None:
    """The new process: what it prints goes to standard error, as standard output is for the report."""
    code = 3
    try:
        if sys.platform == "linux":  # ends with the process that watches it, however that one ends
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        work(Calls(memory, limit), writer.send_bytes)
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
        end, limit, _ = HEAD.unpack_from(memory)
        if end and time.monotonic() > end + GRACE:
            yield CallError(f"no return within {limit:g} s; end its loop", _read_case(memory))
            return


def _read_case(memory: mmap.mmap) -> str:
    *_, length = HEAD.unpack_from(memory)
    return memory[HEAD.size : HEAD.size + length].decode(errors="replace")
