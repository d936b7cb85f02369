"""A statistic of a sweep over one of its axes, by DuckDB: means with intervals, a curve for each value of another."""

from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import wilson
from lakewright.core_jax.statistics import COLUMNS
from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.viewer.catalogue.board_table import ask_database, escape_glob

AXES = ("hole_ratio", "size", "agents", "wait_ratio")
SHARES = {"solvable": "status = 'solvable'", "undecided": "status = 'undecided'", "wait_required": "wait_required"}
NUMBERS = tuple(name for name, (kind, _) in COLUMNS.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind))
NORMAL = 1.96  # standard errors to either side of a 95 % interval


class SweepQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statistic over an axis, with a curve for each value of `by`; only cells for which `only` has a value."""

    statistic: str = "solvable"
    over: str = "hole_ratio"
    by: str = "size"
    agents: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if self.statistic not in (*SHARES, *NUMBERS):
            raise ValueError(f"statistic is {self.statistic!r:.40}; choose from {', '.join((*SHARES, *NUMBERS))}")
        for name in ("over", "by"):
            if getattr(self, name) not in AXES:
                raise ValueError(f"{name} is {getattr(self, name)!r:.40}; choose from {', '.join(AXES)}")


class SweepPoint(NamedTuple):
    """The mean of a statistic over `boards` boards, with its 95 % interval: for a share Wilson's, of a number 1.96
    standard errors to either side; None if a single board shows no spread.
    """

    by: float | None
    over: float | None
    mean: float
    low: float | None
    high: float | None
    boards: int


class SweepTable:
    """The finished shards of a sweep. Raises InputError if the folder is not a sweep of this version."""

    def __init__(self, folder: SweepFolder) -> None:
        self.spec = folder.manifest().spec
        self.status = folder.status()
        self._files = list(map(escape_glob, folder.files()))

    @property
    def statistics(self) -> list[str]:
        """The statistics that the sweep has saved."""
        kept = self.spec.columns or tuple(COLUMNS)
        needs = {"solvable": "status", "undecided": "status", "wait_required": "wait_required"}
        return [name for name in (*SHARES, *NUMBERS) if needs.get(name, name) in kept]

    def answer(self, question: SweepQuestion) -> list[SweepPoint]:
        """The points of every curve, in order. Raises InputError if the sweep has not saved the statistic."""
        if question.statistic not in self.statistics:
            raise InputError(
                f"{question.statistic} was not saved by this sweep; choose from {', '.join(self.statistics)}"
            )
        if not self._files:
            return []
        value = f"CAST({SHARES.get(question.statistic, question.statistic)} AS DOUBLE)"
        only = [(name, given) for name in ("agents", "size") if (given := getattr(question, name)) is not None]
        where = "".join(f" AND {name} = ?" for name, _ in only)
        query = (
            f"SELECT {question.by} AS curve, {question.over} AS place, avg({value}) AS mean, "
            f"stddev_samp({value}) AS deviation, count({value}) AS boards FROM read_parquet(?) "
            f"WHERE {value} IS NOT NULL{where} GROUP BY ALL ORDER BY curve, place"
        )
        found = ask_database(query, [self._files, *(given for _, given in only)])
        return [_make_point(**line, share=question.statistic in SHARES) for line in found]


def _make_point(
    curve: float | None, place: float | None, mean: float, deviation: float | None, boards: int, share: bool
) -> SweepPoint:
    """A point of a curve.

    curve, place: where it is. mean, deviation: for the statistic over `boards`. share: whether it is one.
    """
    if share:
        return SweepPoint(curve, place, mean, *wilson(round(mean * boards), boards), boards)
    if deviation is None:
        return SweepPoint(curve, place, mean, None, None, boards)
    half = NORMAL * deviation / boards**0.5
    return SweepPoint(curve, place, mean, mean - half, mean + half, boards)
