"""The report of a check of an environment: faults with their smallest cases, what cannot be drawn, and rates."""

import msgspec

from lakewright.core_jax.errors import one_line

RETURNS = "the code returns"  # the property that does not hold where a process ended or a call did not


class Fault(msgspec.Struct, frozen=True):
    """A property that doesn't hold.

    name: the name of the property. problem: what went wrong, and what to do. case: the smallest case with which it
    does.
    """

    name: str
    problem: str
    case: str

    def __str__(self) -> str:
        return one_line(f"{self.name}: {self.problem}; smallest case: {self.case}")


class Report(msgspec.Struct, kw_only=True):
    """The findings of a check.

    environment: its name. faults: what doesn't hold. warnings: what to examine. cells: how many were tried, at
    bounds and bins of the knobs; drawn: how many gave problems. undrawable: the others of the strata, by stratum,
    as the names of cells. distinct: an estimate of the number of distinct problems, by name of cell. constant: the
    constant answer that scores best, its share of valid answers and its mean reward. problems_per_second,
    verdicts_per_second: measured in one process; 0 without problems. seconds: the duration of the check.
    """

    environment: str
    faults: list[Fault] = []
    warnings: list[str] = []
    cells: int = 0
    drawn: int = 0
    undrawable: dict[str, list[str]] = {}
    distinct: dict[str, int] = {}
    constant: tuple[str, float, float] | None = None
    problems_per_second: float = 0.0
    verdicts_per_second: float = 0.0
    seconds: float = 0.0


def report_text(report: Report) -> str:
    """The report for people."""
    lines = [f"{report.environment}: {'FAILED' if report.faults else 'passed'} in {report.seconds:.1f} s"]
    lines += [f"fault: {fault}" for fault in report.faults]
    lines.append(f"drawn: {report.drawn} of {report.cells} cells at the bounds and bins of the knobs")
    for stratum, names in report.undrawable.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        lines.append(f"cannot be drawn: of stratum {stratum} the cells {', '.join(names[:3])}{more}")
    measured = {"problems/s": report.problems_per_second, "verdicts/s": report.verdicts_per_second}
    if rates := [f"{rate:,.{int(rate < 10)}f} {unit}".replace(",", " ") for unit, rate in measured.items() if rate]:
        lines.append(f"rates: {', '.join(rates)}")
    if report.distinct:
        name, least = min(report.distinct.items(), key=lambda item: item[1])
        lines.append(f"distinct problems: about {least} or more in each cell, the fewest in {name}")
    if report.constant:
        answer, valid, reward = report.constant
        lines.append(f"best constant answer: {answer!r:.40} is valid for {valid:.1%}, mean reward {reward:.3g}")
    lines += [f"warning: {warning}" for warning in report.warnings]
    return "\n".join(map(one_line, lines))
