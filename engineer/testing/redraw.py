"""A program that draws and judges again in its own process, with another hash seed, for `check_environment`.

`python -m lakewright.engineer.testing.redraw MAKER [ARGUMENT]`: `MAKER` is a class or function, `FILE.py:Class` or
`module:function`, that gives the environment. Standard input has a `Request` in JSON, standard output gets a `Redrawn`.
"""

import ctypes
import datetime
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Problem, Verdict
from lakewright.engineer.plugins import load_class

LATER = 400 * 86400 + 5 * 3600 + 7 * 60 + 13  # seconds; the year, month, weekday, hour, minute and second are others


class Request(msgspec.Struct, frozen=True):
    """A request to another process to draw and judge again.

    cases: the cell, seed and index of problems that are drawn alone. design, count: of `draw_sets`, which follow; by
    default none. judged: how many of the problems are judged, by `list_answers`.
    """

    cases: Sequence[tuple[Cell, int, int]]
    design: Design | None = None
    count: int = 0
    judged: int = 0


class Redrawn(msgspec.Struct, frozen=True):
    """The problems of a request, and the verdicts on the answers to those of them that are judged."""

    problems: list[Problem]
    verdicts: list[list[Verdict]] = []


def draw_sets(source: Any, design: Design, count: int) -> list[Problem]:
    """Problems of a design, and as many of the first canonical cell of its mix. source: an environment, or `Trials`."""
    cells = list(source.mix(design))[:1]
    return [*source.draw(design, count, 0), *(one for cell in cells for one in source.draw_cell(cell, count, 0))]


def list_answers(problem: Problem) -> list[str]:
    """The answers on which the verdicts of two processes are compared: the right one, and two that are not."""
    return [problem.answer, "", f"{problem.answer} or not"]


def redraw_elsewhere(maker: Sequence[str], request: Request, limit: float) -> Redrawn | str:
    """Do a request in another process; where it fails, return the reason as text.

    Args:
        maker: the words of the command.
        request: what it is to do.
        limit: seconds.
    """
    command = [sys.executable, "-m", "lakewright.engineer.testing.redraw", *maker]
    hashes = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    try:
        ended = subprocess.run(
            command,
            input=msgspec.json.encode(request),
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": hashes},
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {limit:g} s"
    if ended.returncode:
        return (ended.stderr.decode(errors="replace").strip().splitlines() or ["it ended without a word"])[-1]
    return msgspec.json.decode(ended.stdout, type=Redrawn)


def main(arguments: Sequence[str]) -> None:
    """Reads a request from standard input, and writes what comes of it to standard output.

    The clock is LATER, so that a generator that reads it is found.
    """
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that what the environment prints is not read as an answer
    _put_clocks_ahead()
    maker, *rest = arguments
    environment = load_class(maker, {}, "environment", ())(*rest)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    problems = [environment.draw_one(*case) for case in request.cases]
    problems += draw_sets(environment, request.design, request.count) if request.design else []
    chosen = problems[: request.judged]
    verdicts = [[environment.check_verdict(one, answer) for answer in list_answers(one)] for one in chosen]
    output.write(msgspec.json.encode(Redrawn(problems, verdicts)))
    output.close()


def _put_clocks_ahead() -> None:
    """Sets the functions of `time` and `datetime` that read a clock LATER, for modules that are imported afterwards."""
    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, partial(_read_later, getattr(time, name), LATER))
        setattr(time, f"{name}_ns", partial(_read_later, getattr(time, f"{name}_ns"), LATER * 10**9))
    for name, later in (("clock_gettime", LATER), ("clock_gettime_ns", LATER * 10**9)):
        if hasattr(time, name):
            setattr(time, name, partial(_read_clock_later, getattr(time, name), later))
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, partial(_convert_later, getattr(time, name)))
    write, write_usual = time.strftime, time.asctime
    time.strftime = lambda form, at=None: write(form, at or time.localtime())
    time.asctime = lambda at=None: write_usual(at or time.localtime())
    # The class itself is changed, which C code knows by its address.
    (members,) = gc.get_referents(vars(datetime.datetime))
    members["now"] = classmethod(lambda cls, tz=None: cls.fromtimestamp(time.time(), tz))
    members["utcnow"] = classmethod(lambda cls: cls.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None))
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime.datetime))


def _read_later(read: Callable[[], float], later: int) -> float:
    return read() + later


def _read_clock_later(read: Callable[[int], float], later: int, clock: int) -> float:
    return read(clock) + later


def _convert_later(convert: Callable[[float], Any], seconds: float | None = None) -> Any:
    return convert(time.time() if seconds is None else seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
