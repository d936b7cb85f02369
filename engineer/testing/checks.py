"""The check of an environment: every property, in a process of its own, and the faults that were found."""

import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Environment, check_environment_type
from lakewright.engineer.testing.isolation import CallError, Calls, watch_process
from lakewright.engineer.testing.parts import Share, try_parts
from lakewright.engineer.testing.properties import EQUAL, EVERY, Properties, find_given
from lakewright.engineer.testing.redraw import draw_elsewhere
from lakewright.engineer.testing.report import RETURNS, Fault, Report, report_text
from lakewright.engineer.testing.trials import encode_problem

SECONDS, LIMIT = 20.0, 30.0
PATIENCE = 6.0  # times the seconds that every bound and bin may take before the properties are tried
ELSEWHERE = 60.0  # seconds, for another process to start, beside the limit


def check_environment(environment: Environment, *, seconds: float = SECONDS, limit: float = LIMIT) -> Report:
    """Tries the properties that an environment must have, for a test; the report of what passed.

    seconds: for all of them, after every stratum, bound and bin was drawn once, which may take six times as long.
    limit: seconds of one call of the environment.

    Raises AssertionError with the smallest case of each property that does not hold. The environment is tried in a copy
    of this process: one that uses JAX must not have computed anything before.
    """
    report = find_faults(environment, seconds=seconds, limit=limit)
    if report.faults:
        raise AssertionError(report_text(report))
    return report


def find_faults(
    environment: Environment,
    *,
    seconds: float = SECONDS,
    limit: float = LIMIT,
    maker: Sequence[str] = (),
    name: str = "",
    tick: Callable[[], None] = lambda: None,
    share: Share | None = None,
) -> Report:
    """The report on an environment, with its faults.

    Args:
        environment: what is tried.
        seconds: for all properties, after every stratum, bound and bin was drawn once.
        limit: of one call of the environment, seconds.
        maker: the words from which another process makes the environment, see `redraw`; by default those of its class.
        name: for the report; by default that of the class.
        tick: called several times a second.
        share: gives parts of the check to other processes, which make the environment by `maker`; by default none are.

    Raises InputError where the environment is none, or the machine cannot copy a process.
    """
    name = name or type(environment).__name__
    check_environment_type(environment, "check")
    if not hasattr(os, "fork"):
        raise InputError(f"check: {sys.platform} cannot copy a process; check the environment on Linux or macOS")
    if not (seconds > 0 and limit > 0):
        raise InputError(f"check: seconds is {seconds:g}, limit {limit:g}; choose more than 0")
    maker = maker or _find_maker(environment)
    begun = time.monotonic()
    if share and maker:
        found = _try_shared(environment, maker, seconds, limit, share)
        return msgspec.structs.replace(found, environment=name, seconds=time.monotonic() - begun)

    def try_all(calls: Calls, send: Callable[[bytes], None]) -> None:
        _try_properties(environment, calls, send, seconds, maker)

    report, faults = Report(environment=name), []
    for message in watch_process(try_all, limit, tick):
        if isinstance(message, CallError):
            faults.append(Fault(RETURNS, *message.args))
            continue
        kind, value = msgspec.json.decode(message)
        if kind == "fault":
            faults.append(msgspec.convert(value, Fault))
        else:
            report = msgspec.convert({**value, "environment": name}, Report)
    return msgspec.structs.replace(report, faults=faults, seconds=time.monotonic() - begun)


def _try_shared(environment: Environment, maker: Sequence[str], seconds: float, limit: float, share: Share) -> Report:
    """The report of a check whose parts other processes try."""
    properties, faults, ended = try_parts(environment, maker, PATIENCE * seconds, seconds, limit, share)
    if not ended and not any(fault.name == EQUAL for fault in faults):
        fault = _compare_elsewhere(properties, maker, limit)
        faults += [fault] if fault else []
    return msgspec.structs.replace(properties.report, faults=faults)


def _try_properties(
    environment: Environment, calls: Calls, send: Callable[[bytes], None], seconds: float, maker: Sequence[str]
) -> None:
    """Sends each fault, and the report after each property, so that an early end of this process loses nothing."""
    report = Report(environment="")
    properties = Properties(environment, calls, report, find_given(environment))

    def try_property(name: str, property: Callable[[], Fault | None]) -> Fault | None:
        try:
            fault = property()
        except CallError as error:
            fault = Fault(name, str(error), "any")
        _send_message(send, "report", report)
        if fault:
            _send_message(send, "fault", fault)
        return fault

    begun = time.monotonic()
    if try_property(EVERY, lambda: properties.try_cells(begun + PATIENCE * seconds)):
        return  # without problems the other properties would only say the same
    begun = time.monotonic()
    faults = [
        try_property(one.__name__, functools.partial(one, begun + part * seconds))
        for one, part in properties.in_order()
    ]
    if not any(fault and fault.name == EQUAL for fault in faults):
        try_property(EQUAL, lambda: _compare_elsewhere(properties, maker, calls.limit))


def _send_message(send: Callable[[bytes], None], kind: str, value: Any) -> None:
    send(msgspec.json.encode((kind, value)))


def _compare_elsewhere(properties: Properties, maker: Sequence[str], limit: float) -> Fault | None:
    """The fault where another process, with other hashes and a later clock, draws other problems."""
    if not maker:
        properties.report.warnings.append(
            "not compared with another process, as the class needs arguments or is in a function; name it on the "
            "command line instead"
        )
        return None
    cases = properties.cases_for_another_process()
    found = draw_elsewhere(maker, cases, limit + ELSEWHERE)
    if isinstance(found, str):
        return Fault(EQUAL, f"another process failed: {found}", " ".join(maker))
    for case, problem in zip(cases, found, strict=True):
        if encode_problem(problem) != encode_problem(properties.problems[case]):
            said = "another process gave another problem; take all chance from rng, none from hashes, sets or clocks"
            return Fault(EQUAL, said, str(case))
    return None


def _find_maker(environment: Environment) -> tuple[str, ...]:
    """`FILE.py:Class` of an environment that its class makes without arguments; nothing where it does not."""
    kind = type(environment)
    module = sys.modules.get(kind.__module__)
    if kind.__module__ == "__main__" or vars(environment) or getattr(module, kind.__name__, None) is not kind:
        return ()
    return (f"{inspect.getfile(kind)}:{kind.__name__}",)
