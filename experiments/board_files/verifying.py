"""A file of verdicts on plans, judged part by part."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import VERDICT_SCHEMA, PlanRow, check_plan, ending, read_rows, to_python, verify_columns
from lakewright.experiments.board_files.watch import UNWATCHED, Watch
from lakewright.experiments.resumable.parts import Part, Parts, job_of, parts_of, work_in_parts
from lakewright.experiments.resumable.plan_index import PlanIndex

WITHOUT_PLAN = pa.array(["unsolvable", "undecided"])  # rows of which none is asked
PlansFor = Callable[[pa.RecordBatch], pa.ListArray]


def verify_file(
    source: Path, out: Path, plans: Path | None = None, makespan_plans: bool = False, watch: Watch = UNWATCHED
) -> Counter[str]:
    """Replays the plans of `source` into verdicts in `out`, or goes on with it; bad rows are reported and left out.

    plans: a file of plans by the id of their board, judged instead. makespan_plans: judge those of `source` that are
    to reach the makespan. Returns: how many `plans` there are, of them `valid`, rows `without_plan`, and `bad_rows`.
    Raises InputError where a file cannot be read or written.
    """
    inputs = {"input": source} | ({"plans": plans} if plans else {})
    for path in inputs.values():
        ending(path)
    job = job_of("verify", inputs, {"makespan_plans": makespan_plans})
    with parts_of(out, job, VERDICT_SCHEMA) as parts:
        index = _index(plans, parts) if plans else None

        def plans_for(rows: pa.RecordBatch) -> pa.ListArray:
            return index.find(rows["id"]) if index else rows["makespan_plan" if makespan_plans else "plan"]

        def judge(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
            given = plans_for(rows)
            there = given.is_valid()
            verdicts = verify_columns(rows.filter(there), given.filter(there))
            watch.on_progress(len(rows))
            valid = pc.sum(verdicts["valid"]).as_py() or 0
            return verdicts, {"plans": len(verdicts), "valid": valid, "without_plan": given.null_count}

        watch.on_resume(parts.consumed)
        work_in_parts(source, parts, lambda rows: _unfit(rows, plans_for(rows), bool(index)), judge, watch.on_bad_row)
        parts.assemble()
    return parts.tally


def _unfit(rows: pa.RecordBatch, plans: pa.ListArray, given: bool) -> dict[int, str]:
    """Which rows miss a plan or, where plans were given, have one that does not fit them."""
    missing = pc.and_(plans.is_null(), pc.invert(pc.is_in(rows["status"], WITHOUT_PLAN)))
    problems = {}
    for place in np.flatnonzero(missing.to_numpy(zero_copy_only=False)).tolist():
        name = rows["id"][place].as_py()
        problems[place] = f"no plan for {name!r:.60}; add one to the row, or a row of its id to --plans"
    if given:
        for place, (plan, agents) in enumerate(zip(to_python(plans), rows["agents"].to_pylist(), strict=True)):
            try:
                check_plan(plan if plan is not None else [""] * agents, agents)
            except ValueError as error:
                problems[place] = str(error)
    return problems


def _index(path: Path, parts: Parts) -> PlanIndex:
    """The plans of a file by id; it is the first part of the work."""
    place = parts.folder / "plans.sqlite"
    if not parts.number:
        place.unlink(missing_ok=True)  # left by a process that was killed
    index = PlanIndex(place)
    if not parts.number:
        bad: list[InputError] = []
        for _ in read_rows(path, PlanRow, bad.append, index.add):
            pass
        index.commit()
        parts.add(Part(0, list(map(str, bad))))
    return index
