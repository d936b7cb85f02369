"""The check of an environment: every property, in a process of its own, and the faults that were found."""

import mmap
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Environment, check_environment_type
from lakewright.engineer.testing.isolation import ROOM, CallError, Calls, watch_process
from lakewright.engineer.testing.parts import CheckPart, Findings, ShareWork, try_here, try_part, try_parts
from lakewright.engineer.testing.report import RETURNS, Fault, Report, report_text

SECONDS, LIMIT = 20.0, 30.0


def check_environment(environment: Environment, *, seconds: float = SECONDS, limit: float = LIMIT) -> Report:
    """Tries the properties that an environment must have, for a test; the report if it passes.

    seconds: time for all of them, after every stratum, bound and bin was drawn once, which may take six times as long.
    limit: seconds of one problem or verdict.

    Raises AssertionError with the smallest case of each property that doesn't hold. The environment is tried in a copy
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
    share: ShareWork | None = None,
) -> Report:
    """The report on an environment, with its faults.

    Args:
        environment: the environment to check.
        seconds: time for all properties, after every stratum, bound and bin was drawn once; infinite for one round of
            cases.
        limit: seconds for one problem or verdict.
        maker: the words from which another process makes the environment, see `redraw`; by default its class.
        name: name in the report; by default the class name.
        tick: called several times a second.
        share: gives parts of the check to other processes, which make the environment by `maker`; by default this
            process does everything.

    Raises InputError if it isn't an environment, or the machine cannot copy a process.
    """
    name = name or type(environment).__name__
    check_environment_type(environment, "check")
    if not hasattr(os, "fork"):
        raise InputError(f"check: {sys.platform} cannot copy a process; check the environment on Linux or macOS")
    if not (seconds > 0 and limit > 0):
        raise InputError(f"check: seconds is {seconds:g}, limit {limit:g}; choose more than 0")
    maker = maker or environment.maker()
    begun = time.monotonic()
    if share and maker:
        *_, report = _try_shared(environment, maker, seconds, limit, share)
    else:
        *_, report = _try_in_one_process(environment, maker, seconds, limit, tick)
    return msgspec.structs.replace(report, environment=name, seconds=time.monotonic() - begun)


def _try_shared(
    environment: Environment, maker: Sequence[str], seconds: float, limit: float, share: ShareWork
) -> Iterator[Report]:
    """The reports of `try_parts`, its start first tried in a process that can be ended."""
    start = try_part(CheckPart(maker, seconds, limit))
    if start.fault:
        yield Report(environment="", faults=[start.fault])
    else:
        yield from try_parts(environment, maker, seconds, Calls(mmap.mmap(-1, ROOM), limit), share)


def _try_in_one_process(
    environment: Environment, maker: Sequence[str], seconds: float, limit: float, tick: Callable[[], None]
) -> Iterator[Report]:
    """The reports of `try_parts`, all of it in one other process; an early end of that is one more fault."""

    def try_all(calls: Calls, send: Callable[[bytes], None]) -> None:
        def share_here(function: object, parts: Iterable[CheckPart]) -> Iterator[Findings]:
            begun = time.monotonic()
            return (try_here(environment, calls, part, begun) for part in parts)

        for so_far in try_parts(environment, maker, seconds, calls, share_here):
            send(msgspec.json.encode(so_far))

    report = Report(environment="")
    for message in watch_process(try_all, limit, tick):
        if isinstance(message, CallError):
            report.faults.append(Fault(RETURNS, *message.args))
        else:
            report = msgspec.json.decode(message, type=Report)
        yield report
