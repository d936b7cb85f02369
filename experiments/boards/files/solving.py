"""A file of labelled boards, solved part by part."""

from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.rows import SCHEMA, ending, solve_columns, unsolvable_here
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.executors.executor import Task
from lakewright.experiments.jobs.resumable.parts import job_of, parts_of, work_in_parts
from lakewright.experiments.jobs.resumable.rejects import rejects_option
from lakewright.experiments.jobs.runtime.progress_bars import UNWATCHED, Watch


def solve_file(
    source: Path,
    out: Path,
    makespan_plans: bool = False,
    watch: Watch = UNWATCHED,
    rejects: Path | None = None,
    where: ExecutorChoice = HERE,
) -> Counter[str]:
    """Labels the boards of `source` into `out`, or continues it; bad rows are reported and left out.

    Args:
        source: The rows to label.
        out: The file to write.
        makespan_plans: Also write a plan that reaches the makespan.
        watch: Gets the progress, and what is wrong with the first of the bad rows.
        rejects: A file for the bad rows, unchanged; its ending is that of `source`.
        where: Where they are solved.

    Returns: how many `boards` there are, of them `undecided`, and `bad_rows`, of them `unlisted` without a report.
    Raises InputError if a file cannot be read or written.
    """
    ending(source)
    job = job_of("solve", {"input": source}, {"makespan_plans": makespan_plans, **rejects_option(rejects)})

    label = partial(_label, makespan_plans=makespan_plans)
    with parts_of(out, job, SCHEMA, rejects) as parts, where.open(Task("part", spreads=True)) as executor:
        watch.on_resume(parts.consumed)
        work_in_parts(source, parts, unsolvable_here, label, watch.on_bad_row, executor, on_progress=watch.on_progress)
        parts.assemble()
    return parts.tally


def _label(rows: pa.RecordBatch, makespan_plans: bool) -> tuple[pa.RecordBatch, dict[str, int]]:
    solved = solve_columns(rows, makespan_plans)
    undecided = pc.sum(pc.equal(solved["status"], "undecided")).as_py() or 0
    return solved, {"boards": len(solved), "undecided": undecided}
