"""A file of verdicts on plans, judged part by part."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import (
    VERDICT_SCHEMA,
    PlanRow,
    check_plan,
    decode_numbered,
    ending,
    read_chunks,
    read_ids,
    row_place,
    to_python,
    verify_columns,
)
from lakewright.core_jax.support import check_digest, listed
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.executors.executor import Task
from lakewright.experiments.jobs.resumable.parts import MOST_LISTED, Part, Parts, job_of, parts_of, work_in_parts
from lakewright.experiments.jobs.resumable.plan_index import PlanIndex
from lakewright.experiments.jobs.resumable.rejects import rejects_option
from lakewright.experiments.jobs.runtime.progress_bars import UNWATCHED, Watch

WITHOUT_PLAN = pa.array(["unsolvable", "undecided"])  # rows of which none is asked
PlansFor = Callable[[pa.RecordBatch], pa.ListArray]


def verify_file(
    source: Path,
    out: Path,
    plans: Path | None = None,
    makespan_plans: bool = False,
    watch: Watch = UNWATCHED,
    rejects: Path | None = None,
    where: ExecutorChoice = HERE,
) -> Counter[str]:
    """Replays the plans of `source` into verdicts in `out`, or continues it; bad rows are reported and left out.

    Args:
        source: The rows whose plans are judged.
        out: The file of verdicts to write.
        plans: A file of plans by the id of their board, judged instead.
        makespan_plans: Judge those of `source` that are to reach the makespan.
        watch: Gets the progress, and what is wrong with the first of the bad rows.
        rejects: A file for the bad rows of `source`, unchanged; its ending is that of `source`.
        where: Where they are judged.

    Returns: how many `plans` there are, of them `valid`, rows `without_plan`, plans `without_board`, and `bad_rows`
    ((the ones in `plans` too)), of them `unlisted` without a report. Raises InputError if a file cannot be read or
    written.
    """
    inputs = {"input": source} | ({"plans": plans} if plans else {})
    for path in inputs.values():
        ending(path)
    job = job_of("verify", inputs, {"makespan_plans": makespan_plans, **rejects_option(rejects)})
    with parts_of(out, job, VERDICT_SCHEMA, rejects) as parts, where.open(Task("part", spreads=True)) as executor:
        index = _index(plans, source, parts) if plans else None

        def plans_for(rows: pa.RecordBatch) -> pa.ListArray:
            return index.find_plans(rows["id"]) if index else rows["makespan_plan" if makespan_plans else "plan"]

        watch.on_resume(parts.consumed)

        def check(rows: pa.RecordBatch) -> Mapping[int, str | InputError]:
            given = plans_for(rows)
            return _find_missing(rows, given) | (_unfit(rows, given, index, plans) if index and plans else {})

        work_in_parts(
            source,
            parts,
            check,
            _judge,
            watch.on_bad_row,
            executor,
            give=lambda rows: (rows, plans_for(rows)),
            on_progress=watch.on_progress,
        )
        parts.assemble()
    return parts.tally


def _judge(given: tuple[pa.RecordBatch, pa.ListArray]) -> tuple[pa.RecordBatch, dict[str, int]]:
    """The verdicts on the plans of some rows, null if a row has no plan."""
    rows, plans = given
    there = plans.is_valid()
    verdicts = verify_columns(rows.filter(there), plans.filter(there))
    valid = pc.sum(verdicts["valid"]).as_py() or 0
    return verdicts, {"plans": len(verdicts), "valid": valid, "without_plan": plans.null_count}


def _find_missing(rows: pa.RecordBatch, plans: pa.ListArray) -> dict[int, str | InputError]:
    """The rows that lack a plan."""
    missing = pc.and_(plans.is_null(), pc.invert(pc.is_in(rows["status"], WITHOUT_PLAN)))
    places = np.flatnonzero(missing.to_numpy(zero_copy_only=False)).tolist()
    remedy = "add one to the row, or a row of its id to --plans"
    return {place: f"no plan for {rows['id'][place].as_py()!r:.60}; {remedy}" for place in places}


def _unfit(rows: pa.RecordBatch, plans: pa.ListArray, index: PlanIndex, path: Path) -> dict[int, str | InputError]:
    """The rows that have a plan in the file `path` that does not fit them, and which row of that file is wrong."""
    problems: dict[int, str | InputError] = {}
    names = rows["id"]
    for place, (plan, agents) in enumerate(zip(to_python(plans), rows["agents"].to_pylist(), strict=True)):
        try:
            check_plan(plan if plan is not None else [""] * agents, agents)
        except ValueError as error:
            name = names[place].as_py()
            problems[place] = InputError(f"{row_place(path, index.number_of(name))}: {error} (board {name!r:.60})")
    return problems


def _index(path: Path, source: Path, parts: Parts) -> PlanIndex:
    """The plans of a file by id; it is the first part of the work, with the faults in the file."""
    place = parts.folder / "plans.sqlite"
    if parts.number:
        check_digest(place)
    else:
        place.unlink(missing_ok=True)  # left by a process that was killed
    index = PlanIndex(place)
    if not parts.number:
        bad, unlisted = _split_first(_fill_index(index, path))
        lost, more = _split_first(_without_board(index, path, source))
        with listed(place):
            index.commit()
        parts.add_part(Part(0, bad, unlisted, lost, {"without_board": len(lost) + more}))
    return index


def _split_first(problems: Iterator[str]) -> tuple[list[str], int]:
    """The first MOST_LISTED of the problems, and how many more there are."""
    return list(itertools.islice(problems, MOST_LISTED)), sum(1 for _ in problems)


def _fill_index(index: PlanIndex, path: Path) -> Iterator[str]:
    """Adds the plans of a file to an index; yields what is wrong with those that are left out."""
    for chunk in read_chunks(path):
        for number, row in decode_numbered(chunk, PlanRow):
            if isinstance(row, InputError):
                yield str(row)
                continue
            try:
                index.add(row, number)
            except ValueError as error:
                yield f"{row_place(path, number)}: {error}"


def _without_board(index: PlanIndex, path: Path, source: Path) -> Iterator[str]:
    """Yields a line for each plan whose board is not in `source`, so that a misspelt id is seen."""
    for number, name in index.without_board(read_ids(source)):
        yield f"{row_place(path, number)}: no board {name!r:.60} in {source}; correct the id, or remove the plan"
