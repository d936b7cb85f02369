"""The measurements of a benchmark: how calls are timed, and the result, for programs and, as Markdown, for people."""

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from tabulate import tabulate

from lakewright.core_jax.support import REST

REPEATS = 5
R = TypeVar("R")
MEASURED = (
    *("work", "agents", "size", "solver", "a second", "range", "one core", "x fastest peer", "undecided"),
    *("decided by", "differing", "compile s"),
)
PROFILED = "where the time of solve goes"


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One question to one solver: the median of `rates` in things a second, null if the solver is not installed.

    solver: `lakewright`, or a peer. what: what is counted. boards: how many there were for a call. given: `all` or,
    for peers that do not end on the others, `solvable`. one_core: a peer's rate with a single process.
    times_fastest_peer: our rate divided by the rate of the fastest peer with all cores. undecided: the share of boards
    without an answer, for a peer those that took too long. certificates: boards that each kind of certificate holds
    for. stages: boards that each stage of the solver decided. differing: boards on
    which a peer's sum of costs is not ours. compile_seconds: the first call beyond a later one.
    """

    work: str
    size: int
    agents: int
    solver: str = "lakewright"
    what: str = "boards"
    boards: int = 0
    given: str = "all"
    rate: float | None = None
    rates: list[float] = []
    one_core: float | None = None
    times_fastest_peer: float | None = None
    undecided: float | None = None
    certificates: dict[str, int] | None = None
    stages: dict[str, int] | None = None
    differing: int | None = None
    compile_seconds: float | None = None
    note: str = ""


class Profile(msgspec.Struct, frozen=True):
    """Where the time of `solve` goes: the seconds of each phase in one call, of all threads together."""

    size: int
    agents: int
    seconds: dict[str, float]

    def share(self, phase: str) -> str:
        """The share of a phase in percent; nothing if the phase did not occur."""
        return f"{self.seconds[phase] / sum(self.seconds.values()):.1%}" if phase in self.seconds else ""


class Bench(msgspec.Struct, frozen=True):
    """All measurements and the machine they were made on."""

    machine: dict[str, Any]
    measurements: list[Measurement]
    profiles: list[Profile] = []


def format_table(bench: Bench) -> str:
    """The benchmark as Markdown."""
    return "\n".join(
        [", ".join(f"{name} {value}" for name, value in bench.machine.items()), "", *_format_tables(bench)]
    )


def _format_tables(bench: Bench) -> Iterator[str]:
    yield from format_markdown(MEASURED, [_format_measurement(row) for row in bench.measurements])
    if bench.profiles:
        yield ""
        yield from _format_profiles(bench.profiles)


def _format_profiles(profiles: Sequence[Profile]) -> Iterator[str]:
    """One column for each profile and one line for each phase, in the order in which they come."""
    phases = [*dict.fromkeys(phase for row in profiles for phase in row.seconds if phase != REST), REST]
    cases = [f"{row.agents} agents, {row.size}x{row.size}" for row in profiles]
    yield from format_markdown(
        (PROFILED, *cases), [(phase, *(row.share(phase) for row in profiles)) for phase in phases]
    )


def _format_measurement(row: Measurement) -> tuple[str, ...]:
    solver = row.solver if row.given == "all" else f"{row.solver} ({row.given} boards)"
    rate = f"{row.rate:,.0f} {row.what}" if row.rate is not None else row.note
    return (
        row.work,
        str(row.agents),
        f"{row.size}x{row.size}",
        solver,
        rate,
        f"{min(row.rates):,.0f} to {max(row.rates):,.0f}" if row.rates else "",
        f"{row.one_core:,.0f}" if row.one_core is not None else "",
        f"{row.times_fastest_peer:.2g}" if row.times_fastest_peer is not None else "",
        f"{row.undecided:.2%}" if row.undecided is not None else "",
        ", ".join(f"{name} {count}" for name, count in (row.stages or {}).items()),
        str(row.differing) if row.differing is not None else "",
        f"{row.compile_seconds:.1f}" if row.compile_seconds is not None else "",
    )


def format_markdown(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines of a Markdown table."""
    return tabulate(rows, head, tablefmt="github", disable_numparse=True).splitlines()


def time_call(
    work: str, size: int, agents: int, count: int, call: Callable[[int], R], what: str = "boards"
) -> tuple[Measurement, R]:
    """The rate of a function, and what its last call returned.

    Args:
        work: The name of the work in the table.
        size: Cells on a side of the boards.
        agents: Agents on a board.
        count: How many things a call handles.
        call: Gets a new seed each time.
        what: The things that are counted.
    """
    first, _, result = wall_and_processor(functools.partial(call, 0))
    later = []
    for seed in range(1, REPEATS + 1):
        seconds, _, result = wall_and_processor(functools.partial(call, seed))
        later.append(seconds)
    rates = [count / seconds for seconds in later]
    return Measurement(
        work=work,
        size=size,
        agents=agents,
        what=what,
        boards=count,
        rate=statistics.median(rates),
        rates=rates,
        compile_seconds=max(first - statistics.median(later), 0.0),
    ), result


def wall_and_processor(call: Callable[[], R]) -> tuple[float, float, R]:
    """Seconds of a call on the wall and of the processor, and what it returned."""
    begun = time.perf_counter(), time.process_time()
    result = call()
    return time.perf_counter() - begun[0], time.process_time() - begun[1], result
