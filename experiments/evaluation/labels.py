"""Certified labels for the boards of an evaluation that come without them.

    OUT/labels.json  OUT/boards.without_labels.jsonl  OUT/boards.jsonl

labels.json claims them for one benchmark; they are solved part by part, so that a kill loses one part at most.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import SCHEMA, Row, fingerprint, read_all, solve_columns, unsolvable_here, write_rows
from lakewright.core_jax.support import listed
from lakewright.experiments.evaluation.evaluation_set import EvaluationSet
from lakewright.experiments.resumable.claims import Claim
from lakewright.experiments.resumable.parts import job_of, parts_of, work_in_parts


class LabelledSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """labels.json: the hash of the benchmark whose boards are labelled."""

    benchmark: str
    format: int = 1


CLAIM = Claim("set of labels", "labels.json", LabelledSet, 1, "lakewright benchmark eval", exclusive=False)


def label_rows(found: EvaluationSet, folder: Path, on_progress: Callable[[int], None]) -> EvaluationSet:
    """The set with certified labels, solved where the benchmark has none.

    Raises InputError where `folder` holds the labels of another benchmark.
    """
    if all(row.status for row in found.rows):
        return found
    bare, solved = folder / "boards.without_labels.jsonl", folder / "boards.jsonl"
    there = [path for path in (bare, solved) if path.exists()]
    # Earlier versions claimed whatever lay there, without the boards that they would have solved.
    if there and not (CLAIM.is_in(folder) and bare.exists()):
        raise InputError(f"{there[-1]}: was not made by `lakewright benchmark eval`; choose another --out")
    for path in there:
        _check_same_boards(found, path)
    CLAIM.take_folder(folder, LabelledSet(found.sha256), replace=not there)
    if not solved.exists():
        with listed(solved):
            _solve_rows(found, bare, solved, on_progress)
    rows = {row.id: row for row in read_all(solved)}
    return msgspec.structs.replace(found, rows=[rows[row.id] for row in found.rows])


def _check_same_boards(found: EvaluationSet, path: Path) -> None:
    there = {row.id: fingerprint(row) for row in read_all(path)}
    for row in found.rows:
        if there.get(row.id) != fingerprint(row):
            raise InputError(
                f"{path}: {row.id!r:.60} is another board than in {found.path}; choose another --out, or remove "
                "boards*.jsonl and labels.json to solve the boards again"
            )


def _solve_rows(found: EvaluationSet, bare: Path, solved: Path, on_progress: Callable[[int], None]) -> None:
    if not bare.exists():
        with listed(bare):
            write_rows(bare, [_without_labels(row) for row in found.rows])

    def label(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
        return solve_columns(rows, on_progress=on_progress), {}

    with parts_of(solved, job_of("benchmark eval", {"input": bare}, {}), SCHEMA) as parts:
        work_in_parts(bare, parts, unsolvable_here, label, _refuse_file)
        parts.assemble()


def _without_labels(row: Row) -> Row:
    return Row(row.id, row.size, row.agents, row.grid, row.starts, row.goals, row.hole_ratio)


def _refuse_file(problem: str) -> None:
    raise InputError(problem)
