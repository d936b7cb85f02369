"""A program that draws and judges again in its own process, with another hash seed, for `check_environment`.

`python -m lakewright.engineer.testing.redraw MAKER [ARGUMENT]`: `MAKER` is a class or function, `FILE.py:Class` or
`module:function`, that gives the environment. Standard input has a `RedrawRequest` in JSON, standard output gets a
`Redrawn`, which also says what of the process the environment changed.
"""

import ctypes
import datetime
import decimal
import gc
import itertools
import locale
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.plugins import load_class
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.testing.isolation import Calls

ELSEWHERE = 60.0  # seconds, for another process to start, beside the limit of a call
MASK = 0o022  # the usual one
LATER = 400 * 86400 + 5 * 3600 + 7 * 60 + 13  # seconds; the year, month, weekday, hour, minute and second are others

EQUAL, JUDGED, SAME = "equal draws are equal", "any text is judged", "the process is not changed"  # of properties
# What imports may change of a process, and calls may not.
DRAWN = (
    *("the random numbers of the process", "the random numbers of NumPy", "the random numbers of torch"),
    *("the environment variables", "the locale", "the most digits of whole numbers", "warnings that are errors"),
)


class RedrawRequest(msgspec.Struct, frozen=True):
    """A request to another process to draw and judge again.

    cases: the cell, seed and index of problems that are drawn alone. design, count: for `draw_sets`, which follow; by
    default empty. judged: how many of the problems are judged, by `list_answers`.
    """

    cases: Sequence[tuple[Cell, int, int]]
    design: Design | None = None
    count: int = 0
    judged: int = 0


class Redrawn(msgspec.Struct, frozen=True):
    """The problems of a request, and the verdicts on the answers that are judged.

    changed: what of its process the environment changed, and when.
    """

    problems: list[Problem]
    verdicts: list[list[Verdict]] = []
    changed: list[str] = []


def draw_sets(source: Any, design: Design, count: int) -> list[Problem]:
    """Problems of a design, and as many of the first canonical cell of its mix. source: an environment, or `Trials`."""
    cells = list(source.mix(design))[:1]
    return [*source.draw(design, count, 0), *(one for cell in cells for one in source.draw_cell(cell, count, 0))]


def list_answers(problem: Problem) -> list[str]:
    """The answers on which the verdicts of two processes are compared: the right one, and two that are not."""
    return [problem.answer, "", f"{problem.answer} or not"]


def redraw_elsewhere(maker: Sequence[str], request: RedrawRequest, calls: Calls) -> Redrawn | str:
    """Do a request in another process; if it fails, return the reason as text.

    Args:
        maker: the words of the command.
        request: what it is to do.
        calls: their limit, and where their process began.

    Once it has answered, the process is ended with all that it started, so threads without an end delay nothing.
    """
    command = [sys.executable, "-m", "lakewright.engineer.testing.redraw", *maker]
    hashes = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment, limit = {**calls.variables, "PYTHONHASHSEED": hashes}, calls.limit + ELSEWHERE
    with tempfile.TemporaryFile() as task, tempfile.TemporaryFile() as said:
        task.write(msgspec.json.encode(request))
        task.seek(0)
        streams: dict[str, Any] = {"stdin": task, "stdout": subprocess.PIPE, "stderr": said}
        process = subprocess.Popen(command, **streams, env=environment, cwd=calls.folder, start_new_session=True)
        clock = threading.Timer(limit, _end_all, [process])
        clock.start()
        with process:
            assert process.stdout
            answer = process.stdout.readline()
            late = clock.finished.is_set()
            clock.cancel()
            with suppress(subprocess.TimeoutExpired):
                process.wait(0 if answer else limit)
            _end_all(process)
        if answer.endswith(b"\n"):
            return msgspec.json.decode(answer, type=Redrawn)
        said.seek(0)
        last = said.read().decode(errors="replace").strip().splitlines()
    return f"it did not end within {limit:g} s" if late else (last or ["it ended without a message"])[-1]


def _end_all(process: "subprocess.Popen[bytes]") -> None:
    """Ends a process and its whole session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def compare_redrawn(
    found: Redrawn, cases: Sequence[str], problems: Sequence[Problem], verdicts: Sequence[Sequence[Verdict]]
) -> tuple[str, str, str]:
    """The first difference from another process's result: the property, what to do, and the case; empty without one.

    Args:
        found: the result of the other process.
        cases: the problems' cases, as people read them.
        problems: the problems drawn in this process.
        verdicts: the verdicts on `list_answers` of the first problems.
    """
    for case, problem, other in itertools.zip_longest(cases, problems, found.problems):
        if msgspec.json.encode(problem) != msgspec.json.encode(other):
            said = "another process gave a different problem; draw with rng alone, not with hashes, sets or clocks"
            return EQUAL, said, str(case)
    for problem, one, other in zip(problems, verdicts, found.verdicts, strict=False):
        for answer, here, there in zip(list_answers(problem), one, other, strict=True):
            if here != there:
                said = "another process gave a different verdict; avoid chance, hashes, sets and clocks"
                return JUDGED, said, show_case((problem, answer))
    if found.changed:
        return SAME, f"it changed {'; '.join(found.changed)}; leave that to the program, or restore it", ""
    return "", "", ""


def show_case(case: tuple[Problem, str]) -> str:
    """An answer with its problem, for people."""
    return f"answer {case[1]!r:.80} to {show_problem(case[0])}"


def show_problem(problem: Problem) -> str:
    """A problem for people."""
    return f"{problem.prompt!r:.120} of cell {problem.cell}"


def main(arguments: Sequence[str]) -> None:
    """Reads a request from standard input, writes a line with the result to standard output, and ends the process.

    The clock is LATER, so that a generator that reads it is found.
    """
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that what the environment prints is not read as an answer
    _undo_inherited()
    _put_clocks_ahead()
    maker, *rest = arguments
    before = read_state()
    environment = load_class(maker, {}, "environment", ())(*rest)
    changed = _list_changes(before, imported := read_state(), "when it was imported or made", DRAWN)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=RedrawRequest)
    problems = [environment.draw_one(*case) for case in request.cases]
    problems += draw_sets(environment, request.design, request.count) if request.design else []
    changed += _list_changes(imported, drawn := read_state(), "when it drew")
    chosen = problems[: request.judged]
    verdicts = [[environment.check_verdict(problem, answer) for answer in list_answers(problem)] for problem in chosen]
    changed += _list_changes(drawn, read_state(), "when it judged")
    output.write(msgspec.json.encode(Redrawn(problems, verdicts, changed)) + b"\n")
    output.close()
    sys.stderr.flush()
    os._exit(0)  # whatever else still runs here


def read_state() -> dict[str, object]:
    """The state that an environment shares with all other code of its process, by name."""
    torch, numpy, context = sys.modules.get("torch"), sys.modules["numpy"], decimal.getcontext()
    return {
        "the working folder": _find_folder(),
        "torch's default dtype": str(torch.get_default_dtype()) if torch else "torch.float32",
        "torch's gradients": torch.is_grad_enabled() if torch else True,
        "standard output": (id(sys.stdout), sys.stdout.closed),
        "standard error": (id(sys.stderr), sys.stderr.closed),
        "the handlers of signals": [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        "the limit of recursion": sys.getrecursionlimit(),
        "the context of decimal numbers": (context.prec, context.rounding, context.Emax),
        "the errors of NumPy": numpy.geterr(),
        "the random numbers of the process": random.getstate(),
        "the random numbers of NumPy": str(numpy.random.get_state()),
        "the random numbers of torch": _digest_generator(torch),
        "the mask of new files": _read_mask(),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the most digits of whole numbers": sys.get_int_max_str_digits(),
        "warnings that are errors": [one for one in warnings.filters if one[0] == "error"],
        "the collection of garbage": gc.isenabled(),
        "the environment variables": dict(os.environ),
    }


def _undo_inherited() -> None:
    """Undoes what a process that ran the environment, too, may have left to this one: ignored signals and a mask."""
    for number in signal.valid_signals() - {getattr(signal, "SIGPIPE", None)}:  # which Python itself ignores
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.umask(MASK)


def _digest_generator(torch: Any) -> str:
    """The state of torch's random numbers; empty before the first draw, also without torch."""
    state = torch.get_rng_state() if torch else None
    return (
        "" if state is None or torch.equal(state, torch.Generator().get_state()) else str(hash(state.numpy().tobytes()))
    )


def _read_mask() -> int:
    mask = os.umask(MASK)  # which can only be read by setting it
    os.umask(mask)
    return mask


def _find_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "none"


def _list_changes(before: dict[str, object], after: dict[str, object], when: str, but: Sequence[str] = ()) -> list[str]:
    """The names of changed things, and when. but: those that may change then."""
    return [f"{name} {when}" for name, value in before.items() if value != after[name] and name not in but]


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
    try:
        main(sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
