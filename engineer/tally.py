"""Tallies: outcomes of answers to some problems, what was drawn of them, and cases that failed."""

from collections.abc import Iterable
from typing import Any

import msgspec


class Tally(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts over some problems, one answer each.

    valid: the valid answers. failures: the others by the name of their failure. grades: how many valid answers have
    each of them. traits: by knob, the counts of the problems that have the trait.
    """

    problems: int
    valid: int
    failures: dict[str, int] = {}
    grades: dict[str, int] = {}
    traits: dict[str, "Tally"] = {}

    def rate(self, count: int) -> float:
        """A count as a share of all problems; 0 without problems."""
        return count / self.problems if self.problems else 0.0

    @property
    def valid_rate(self) -> float:
        """The share of valid answers; 0 if it has no problems."""
        return self.rate(self.valid)


class Drawn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Statistics of the problems drawn of a stratum: means of the knobs, and of the environment's measures.

    acceptance: the share of attempts that gave a problem, if known.
    """

    problems: int
    knobs: dict[str, float]
    measures: dict[str, float] = {}
    acceptance: float | None = None


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A held-out problem whose answer failed.

    text: problem and answer for people. place: how far the answer got, -1 if that has no meaning. data: further JSON
    values of the environment.
    """

    stratum: int | str
    text: str
    failure: str
    place: int = -1
    data: Any = None


def pool_tallies(parts: Iterable[Tally]) -> Tally:
    """Several tallies as one."""
    parts = list(parts)
    traits = dict.fromkeys(name for part in parts for name in part.traits)
    return Tally(
        problems=sum(part.problems for part in parts),
        valid=sum(part.valid for part in parts),
        failures=_add_counts([part.failures for part in parts]),
        grades=_add_counts([part.grades for part in parts]),
        traits={name: pool_tallies(part.traits[name] for part in parts if name in part.traits) for name in traits},
    )


def subtract_tally(whole: Tally, part: Tally) -> Tally:
    """The counts of the problems of `whole` that are not in `part`; without traits."""
    return Tally(
        problems=whole.problems - part.problems,
        valid=whole.valid - part.valid,
        failures={name: count - part.failures.get(name, 0) for name, count in whole.failures.items()},
        grades={name: count - part.grades.get(name, 0) for name, count in whole.grades.items()},
    )


def _add_counts(counts: list[dict[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for part in counts for name in part)
    return {name: sum(part.get(name, 0) for part in counts) for name in names}
