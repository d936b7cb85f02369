"""The check of an environment in parts, by processes that share it: slices of the cells, then every property.

The findings are joined in the order of a check in one process, so the report differs only in its rates. Each part may
take as long as that check until its end, so where time was up there, more is tried here.
"""

import mmap
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.plugins import load_class
from lakewright.engineer.testing.isolation import ROOM, CallError, Calls, watch_process
from lakewright.engineer.testing.properties import EVERY, Properties, find_given
from lakewright.engineer.testing.report import RETURNS, Fault, Report

SLICE = 16  # cells of a part
Drawn: TypeAlias = list[tuple[int, Problem, float]]  # the place of its cell, the problem, and the seconds it took


class Part(msgspec.Struct, frozen=True):
    """A part of a check.

    maker: the words from which a process makes the environment, see `redraw`. seconds: it may take. limit: of one call,
    seconds. first, last: the slice of the cells to draw. property: the place of a property instead, tried with
    `problems`, a `Drawn` in JSON.
    """

    maker: Sequence[str]
    seconds: float
    limit: float
    first: int = 0
    last: int = 0
    property: int | None = None
    problems: bytes = b"[]"


class Findings(msgspec.Struct, frozen=True):
    """The findings of a part. problems: of a slice of the cells, a `Drawn` in JSON."""

    report: Report
    fault: Fault | None = None
    problems: bytes = b"[]"


Share: TypeAlias = Callable[[Callable[[Part], Findings], Sequence[Part]], Iterable[Findings]]
"""Calls a function with each part, in whichever process; the findings, in the order of the parts."""


def try_part(part: Part) -> Findings:
    """The findings of a part, in a process of its own."""
    maker, *words = part.maker
    environment: Environment = load_class(maker, {}, "environment", ())(*words)

    def work(calls: Calls, send: Callable[[bytes], None]) -> None:
        send(msgspec.json.encode(_try_here(environment, calls, part)))

    found = Findings(Report(environment=""))
    for message in watch_process(work, part.limit, lambda: None):
        if isinstance(message, CallError):
            return Findings(found.report, Fault(RETURNS, *message.args))
        found = msgspec.json.decode(message, type=Findings)
    return found


def _try_here(environment: Environment, calls: Calls, part: Part) -> Findings:
    report, until = Report(environment=""), time.monotonic() + part.seconds
    properties = Properties(environment, calls, report, find_given(environment))
    properties.add_problems(msgspec.json.decode(part.problems, type=Drawn))
    name, fault = EVERY, None
    try:
        if part.property is None:
            fault = properties.draw_cells(properties.listed[part.first : part.last], until)
        else:
            chosen, _ = properties.in_order()[part.property]
            name, fault = chosen.__name__, chosen(until)
    except CallError as error:
        fault = Fault(name, str(error), "any")
    drawn = properties.list_problems() if part.property is None else []
    return Findings(report, fault, msgspec.json.encode(drawn))


class Joined(NamedTuple):
    """The findings of all parts. ended: whether a fault ends the check, as nothing more can be tried."""

    properties: Properties
    faults: list[Fault]
    ended: bool


def try_parts(
    environment: Environment, maker: Sequence[str], slices: float, seconds: float, limit: float, share: Share
) -> Joined:
    """All properties but the comparison with another process.

    Args:
        environment: what is tried.
        maker: the words from which other processes make it.
        slices: seconds for the cells.
        seconds: for the other properties.
        limit: of one call, seconds.
        share: gives the parts to other processes.
    """
    properties = Properties(environment, Calls(mmap.mmap(-1, ROOM), limit), Report(environment=""), {})
    starts = range(0, len(properties.listed), SLICE)
    fault = None
    for found in share(try_part, [Part(maker, slices, limit, first, first + SLICE) for first in starts]):
        properties.add_problems(msgspec.json.decode(found.problems, type=Drawn))
        for stratum, names in found.report.undrawable.items():
            properties.report.undrawable.setdefault(stratum, []).extend(names)
        if fault := found.fault:
            break
    if fault and fault.name == RETURNS:
        properties.report = Report(environment="")
        return Joined(properties, [fault], ended=True)
    if fault := properties.judge_cells(fault):
        return Joined(properties, [fault], ended=True)
    problems = msgspec.json.encode(properties.list_problems())
    parts = [
        Part(maker, share_of_time * seconds, limit, property=place, problems=problems)
        for place, (_, share_of_time) in enumerate(properties.in_order())
    ]
    faults = []
    for found in share(try_part, parts):
        faults += [found.fault] if found.fault else []
        if found.fault and found.fault.name == RETURNS:
            return Joined(properties, faults, ended=True)
        properties.report = _join_reports(properties.report, found.report)
    return Joined(properties, faults, ended=False)


def _join_reports(report: Report, more: Report) -> Report:
    """A report with what another property measured."""
    empty = Report(environment="")
    measured = {
        name: getattr(more, name)
        for name in ("distinct", "constant", "problems_per_second", "verdicts_per_second")
        if getattr(more, name) != getattr(empty, name)
    }
    return msgspec.structs.replace(report, warnings=[*report.warnings, *more.warnings], **measured)
