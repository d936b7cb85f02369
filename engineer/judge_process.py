"""Work on untrusted texts in a process of its own: a text that does not return, or ends the process, ends only that.

`python -m lakewright.engineer.judge_process MAKER [ARGUMENT ...]` reads a request a line, and writes a line for each.
`MAKER` is a class or function, `FILE.py:Class` or `module:function`, that gives an object of the arguments, such as an
environment. The program makes the object once and works in a copy of itself, so that after an end only that copy is
started again, in milliseconds; on a system without `os.fork` it is the program.
"""

import functools
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any, Protocol

import msgspec

from lakewright.core_jax.errors import InputError, one_line
from lakewright.engineer.plugins import load_class

GRACE = 10.0  # seconds for a process to end by itself after the limit, on a busy machine
STARTING = 300.0  # seconds for the imports of an environment
MOST = 128  # objects that a program keeps
READY = b"ready\n"
NO_MORE = 87  # the exit code of a copy once there are no more requests

Process = subprocess.Popen[bytes]


class JudgeLimit(msgspec.Struct, frozen=True):
    """The seconds that judging an answer may take, and the failure of an answer that takes longer; its reward is 0.

    So has an answer with which the judge runs out of memory or of depth, or its process ends.
    """

    seconds: float
    failure: str


class Replying(Protocol):
    """An object that answers requests: JSON on one line for each."""

    def reply(self, request: bytes) -> bytes:
        """The reply to a request."""
        ...


class _Request(msgspec.Struct, frozen=True):
    """A request: the arguments of the maker, the seconds that it may take, and what the object is given."""

    words: Sequence[str]
    seconds: float
    request: msgspec.Raw


class _Reply(msgspec.Struct, frozen=True):
    """The JSON that the object gave, or the line of an error. exhausted: whether memory or depth did not suffice."""

    found: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    exhausted: bool = False


def find_maker(environment: object) -> tuple[str, ...]:
    """`FILE.py:Class` of an object that its class makes without arguments; empty if it does not."""
    kind = type(environment)
    module = sys.modules.get(kind.__module__)
    if kind.__module__ == "__main__" or vars(environment) or getattr(module, kind.__name__, None) is not kind:
        return ()
    return (f"{os.path.abspath(inspect.getfile(kind))}:{kind.__name__}",)


def ask_process(maker: Sequence[str], request: bytes, seconds: float) -> bytes | None:
    """The reply to a request by a process that stays for further ones; None if it ended or was exhausted.

    Args:
        maker: the words from which the process makes its object.
        request: JSON on one line.
        seconds: the longest time for the reply.

    Raises InputError if the object raises, or cannot be made there.
    """
    where, *words = maker
    line = msgspec.json.encode(_Request(words, seconds, msgspec.Raw(request))) + b"\n"
    return _open_process(os.getpid(), where).ask(words, line, seconds)


class _Client:
    """One request at a time, from any thread. The process is started by the first, and after it was ended again."""

    def __init__(self, maker: str) -> None:
        self._maker, self._lock = maker, threading.Lock()
        self._process: Process | None = None

    def ask(self, words: Sequence[str], line: bytes, seconds: float) -> bytes | None:
        """The reply to a line; None without one."""
        with self._lock:
            process = self._process
            # A text that ends its copy leaves the program running. It is gone only if it was killed after the grace.
            if process is None or process.poll() is not None:
                process = self._process = self._start(words)
            assert process.stdin
            with suppress(BrokenPipeError):  # then there is no reply either
                process.stdin.write(line)
                process.stdin.flush()
            # The process ends itself at the limit. The grace is for machines so busy that even this comes late.
            answer = _read_line(process, seconds + GRACE)
        if answer in (READY, b""):
            return None
        reply = msgspec.json.decode(answer, type=_Reply)
        if reply.error:
            raise InputError(reply.error)
        return None if reply.exhausted else bytes(reply.found)

    def _start(self, words: Sequence[str]) -> Process:
        command = [sys.executable, "-m", "lakewright.engineer.judge_process", self._maker, *words]
        # In a session of its own: an interrupt from the keyboard is for the program that asks.
        # Its hashes are always the same, so that the order of a set is.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = Process(command, **pipes, env=environment, start_new_session=True)
        line = _read_line(process, STARTING)
        if line != READY:
            said = msgspec.json.decode(line, type=_Reply).error if line else "its process did not start; run check"
            raise InputError(f"{self._maker}: {said}")
        return process


def _read_line(process: Process, seconds: float) -> bytes:
    """The next line of a process; empty if it ends, or is ended after some seconds."""
    assert process.stdout
    clock = threading.Timer(seconds, _end_session, [process])
    clock.daemon = True
    clock.start()
    try:
        line = process.stdout.readline()
    finally:
        clock.cancel()
    if line.endswith(b"\n"):
        return line
    _end_session(process)
    process.wait()
    return b""


@functools.lru_cache(MOST)
def _open_process(parent: int, maker: str) -> _Client:
    """The client of a maker. parent: the process that asks, because a copy of it must not share its pipes."""
    return _Client(maker)


def _end_session(process: Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def main(arguments: Sequence[str]) -> None:
    """Makes the object, then works in a copy of this process, and in another one whenever a request ended that."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # so that what the object prints is not read as a reply
    maker, *words = arguments

    @functools.lru_cache(MOST)
    def make(*words: str) -> Replying:
        return load_class(maker, {}, "environment", ())(*words)

    try:
        make(*words)
    except BaseException as error:
        replies.write(msgspec.json.encode(_Reply(error=_describe(error))) + b"\n")
        replies.flush()
        os._exit(2)
    while True:
        # A copy inherits imports that take seconds, so that after a judge was ended the next answer waits milliseconds.
        process = os.fork() if hasattr(os, "fork") else 0
        if not process:
            with suppress(BrokenPipeError):  # the program that asked has ended
                _work(requests, replies, make)
            os._exit(NO_MORE)
        if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == NO_MORE:
            os._exit(0)


def _work(requests: IO[bytes], replies: IO[bytes], make: Callable[..., Replying]) -> None:
    """Answers requests until the last one. The system ends this process after the limit, whatever runs in it."""
    limited, process = hasattr(signal, "setitimer"), os.getpid()
    replies.write(READY)
    replies.flush()
    while line := requests.readline():
        try:
            asked = msgspec.json.decode(line, type=_Request)
            worker = make(*asked.words)
            if limited:
                # The default action ends the process whatever the judge catches, and also within C code.
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_REAL, asked.seconds)
            reply = _Reply(msgspec.Raw(worker.reply(bytes(asked.request))))
        except (RecursionError, MemoryError):
            reply = _Reply(exhausted=True)
        except BaseException as error:
            reply = _Reply(error=_describe(error))
        if os.getpid() != process:  # a copy that the judge made, which returned as well; two replies are one too many
            os._exit(0)
        if limited:
            signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(msgspec.json.encode(reply) + b"\n")
        replies.flush()


def _describe(error: BaseException) -> str:
    return one_line(str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
