"""The check of an environment in parts: slices of the cells, then every property, here or by processes that share them.

The findings are joined in the order of the parts, so that a shared check gives the report of one in one process, except
for its rates. Each shared part may take as long as that check until its end, so if that one ran out of time, more
is tried.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from lakewright.engineer.environment import Environment
from lakewright.engineer.multi_turn import MultiTurnEnvironment
from lakewright.engineer.plugins import load_class
from lakewright.engineer.problems import Problem
from lakewright.engineer.testing.isolation import CallError, Calls, watch_process
from lakewright.engineer.testing.played import PlayedProperties
from lakewright.engineer.testing.properties import EVERY, START, Properties
from lakewright.engineer.testing.report import RETURNS, Fault, Report
from lakewright.engineer.testing.search import Deadline

SLICE = 16  # cells of a part
PATIENCE = 6.0  # times the seconds that every bound and bin may take before the properties are tried
DrawnProblems: TypeAlias = list[
    tuple[int, Problem, float]
]  # the place of its cell, the problem, and the seconds it took


class CheckPart(msgspec.Struct, frozen=True):
    """A part of a check.

    maker: the words from which a process makes the environment, see `redraw`. seconds: it may take. limit: seconds
    that a call may take. first, last: the slice of the cells to draw. property: the place of a property instead, tried
    with `problems`, a `DrawnProblems` in JSON.
    """

    maker: Sequence[str]
    seconds: float
    limit: float
    first: int = 0
    last: int = 0
    property: int | None = None
    problems: bytes = b"[]"


class Findings(msgspec.Struct, frozen=True):
    """The findings of a part.

    problems: those in a slice of the cells, a `DrawnProblems` in JSON. late: whether a call did not return in time.
    """

    report: Report
    fault: Fault | None = None
    problems: bytes = b"[]"
    late: bool = False


ShareWork: TypeAlias = Callable[[Callable[[CheckPart], Findings], Sequence[CheckPart]], Iterable[Findings]]
"""Calls a function with each part, in whichever process; the findings, in the order of the parts."""


def make_properties(environment: Environment, calls: Calls, report: Report, maker: Sequence[str] = ()) -> Properties:
    """The properties that an environment of its kind must have.

    Args:
        environment: what is tried.
        calls, report, maker: as in `Properties`.
    """
    kind = PlayedProperties if isinstance(environment, MultiTurnEnvironment) else Properties
    return kind(environment, calls, report, maker)


def try_part(part: CheckPart) -> Findings:
    """The findings of a part, in a process of its own."""
    maker, *words = part.maker
    environment: Environment = load_class(maker, {}, "environment", ())(*words)

    def work(calls: Calls, send: Callable[[bytes], None]) -> None:
        send(msgspec.json.encode(try_here(environment, calls, part, time.monotonic())))

    found = Findings(Report(environment=""))
    for message in watch_process(work, part.limit, lambda: None):
        if isinstance(message, CallError):
            return Findings(found.report, Fault(RETURNS, *message.args))
        found = msgspec.json.decode(message, type=Findings)
    return found


def try_here(environment: Environment, calls: Calls, part: CheckPart, begun: float) -> Findings:
    """The findings of a part, in this process.

    Args:
        environment: what is tried.
        calls: limits its calls in time.
        part: the cells or the property.
        begun: when its seconds began, by `time.monotonic`.
    """
    report, deadline = Report(environment=""), Deadline(begun + part.seconds)
    name, fault, drawn = START, None, []
    try:
        properties = make_properties(environment, calls, report, part.maker)
        properties.add_problems(msgspec.json.decode(part.problems, type=DrawnProblems))
        if part.property is None:
            name = EVERY
            late = part.first and deadline.is_over()
            fault = properties.draw_cells([] if late else properties.listed[part.first : part.last], deadline)
            drawn = properties.list_problems()
        else:
            chosen, _ = properties.in_order()[part.property]
            name, fault = chosen.__name__, chosen(deadline)
    except CallError as error:
        fault = Fault(name, str(error), "any")
    return Findings(report, fault, msgspec.json.encode(drawn), calls.late)


def try_parts(
    environment: Environment, maker: Sequence[str], seconds: float, calls: Calls, share: ShareWork
) -> Iterator[Report]:
    """The report with its faults after the cells, and after each property.

    It ends early with a fault after which nothing more can be tried.

    Args:
        environment: what is tried.
        maker: the words from which other processes make it.
        seconds: time for the properties; the cells may take PATIENCE times as long.
        calls: limits its calls in time.
        share: calls `try_part` with each part.
    """
    report = Report(environment="")
    try:
        properties = make_properties(environment, calls, report)
    except CallError as error:
        yield Report(environment="", faults=[Fault(START, str(error), "start()")])
        return
    starts = range(0, len(properties.listed), SLICE)
    fault = None
    for findings in share(
        try_part, [CheckPart(maker, PATIENCE * seconds, calls.limit, first, first + SLICE) for first in starts]
    ):
        properties.add_problems(msgspec.json.decode(findings.problems, type=DrawnProblems))
        for stratum, names in findings.report.undrawable.items():
            report.undrawable.setdefault(stratum, []).extend(names)
        if fault := findings.fault:
            break
    if fault and fault.name == RETURNS:
        yield Report(environment="", faults=[fault])
        return
    if fault := properties.judge_cells(fault):
        report.faults.append(fault)
        yield report
        return  # without problems the other properties would only say the same
    yield report
    problems = msgspec.json.encode(properties.list_problems())
    ends = itertools.accumulate(percent for _, percent in properties.in_order())
    parts = [
        CheckPart(maker, seconds * end / 100, calls.limit, property=place, problems=problems)
        for place, end in enumerate(ends)
    ]
    for findings in share(try_part, parts):
        if findings.fault and findings.fault.name not in {fault.name for fault in report.faults}:
            report.faults.append(findings.fault)
        if not findings.fault or findings.fault.name != RETURNS:
            _add_measures(report, findings.report)
        yield report
        if findings.fault and (findings.late or findings.fault.name == RETURNS):
            return  # the other properties would wait for the same code


def _add_measures(report: Report, more: Report) -> None:
    """Adds what another property measured."""
    empty = Report(environment="")
    report.warnings += more.warnings
    for name in ("distinct", "constant", "problems_per_second", "verdicts_per_second"):
        if getattr(more, name) != getattr(empty, name):
            setattr(report, name, getattr(more, name))
