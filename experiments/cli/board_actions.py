"""What `lakewright generate`, `solve` and `verify` do with their files."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from core_jax.config import EnvConfig
from core_jax.generator import beside, generate, manifest_of, prng
from core_jax.rows import (
    SCHEMA,
    VERDICT_SCHEMA,
    PlanRow,
    Row,
    VerdictRow,
    check_plan,
    check_solvable_here,
    ending,
    read_rows,
    rows_of,
    solve_rows,
    verify_rows,
)
from core_jax.support import write_atomically
from experiments.cli.conventions import print_error
from experiments.resumable import Part, Parts, PlanIndex, job_of, parts_of, work_in_parts
from experiments.runtime import print_on_terminal, progress

if TYPE_CHECKING:
    from tqdm import tqdm

BOARDS_A_PART = 8192  # of a generated file
WITHOUT_PLAN = ("unsolvable", "undecided")  # rows that need none


def generate_file(config: EnvConfig, count: int, seed: int, out: Path) -> dict[str, Any]:
    """Draws certified boards into a file, with a manifest beside it."""
    drawn_from = {"config": msgspec.to_builtins(config, str_keys=True), "prng": prng()}
    job = job_of("generate", {}, {**drawn_from, "seed": seed, "count": count})
    begun = time.monotonic()
    with parts_of(out, job, SCHEMA) as parts, progress("boards", count, "boards") as bar:
        _resume(bar, parts)
        for first in range(parts.consumed, max(count, 1), BOARDS_A_PART):
            number = min(BOARDS_A_PART, count - first)
            batches = generate(config, seed, number, bar.update, first)
            acceptance = [stratum for batch in batches.values() for stratum in batch.acceptance]
            parts.add(Part(number, acceptance=acceptance), rows_of(batches, config))
        manifest = manifest_of(config, seed, count, parts.acceptance)
        text = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        beside(out).unlink(missing_ok=True)  # that of another file is worse than none
        parts.assemble(lambda: write_atomically(beside(out), text))
    return {"boards": count, "seconds": round(time.monotonic() - begun, 3), "out": str(out)}


def solve_file(rows: Path, out: Path, makespan_plans: bool) -> dict[str, Any]:
    """Labels the boards of a file."""
    ending(rows)
    job = job_of("solve", {"input": rows}, {"makespan_plans": makespan_plans})
    with parts_of(out, job, SCHEMA) as parts, progress("solve", None, "rows") as bar:

        def label(rows: list[Row]) -> tuple[list[Row], dict[str, int]]:
            solved = solve_rows(rows, makespan_plans, bar.update)
            return solved, {"boards": len(solved), "undecided": sum(row.status == "undecided" for row in solved)}

        _resume(bar, parts)
        work_in_parts(rows, parts, check_solvable_here, label, print_error)
        parts.assemble()
    return _summary(parts, out, "boards", "undecided")


def verify_file(rows: Path, out: Path, plans: Path | None, makespan_plans: bool) -> dict[str, Any]:
    """Replays the plans of a file, or those of the file `plans`."""
    inputs = {"input": rows} | ({"plans": plans} if plans else {})
    for path in inputs.values():
        ending(path)
    job = job_of("verify", inputs, {"makespan_plans": makespan_plans})
    with parts_of(out, job, VERDICT_SCHEMA) as parts, progress("verify", None, "rows") as bar:
        given = _index(plans, parts) if plans else None

        def plan_for(row: Row) -> list[str] | None:
            if given:
                return given.find(row.id)
            return row.makespan_plan if makespan_plans else row.plan

        def check(row: Row) -> None:
            plan = plan_for(row)
            if plan is None and row.status not in WITHOUT_PLAN:
                raise ValueError(f"no plan for {row.id!r:.60}; add one to the row, or a row of its id to --plans")
            if plan is not None and given:
                check_plan(plan, row.agents)

        def judge(rows: list[Row]) -> tuple[list[VerdictRow], dict[str, int]]:
            pairs = [(row, plan) for row in rows if (plan := plan_for(row)) is not None]
            verdicts = verify_rows([row for row, _ in pairs], [plan for _, plan in pairs])
            bar.update(len(rows))
            valid = sum(verdict.valid for verdict in verdicts)
            return verdicts, {"plans": len(pairs), "valid": valid, "without_plan": len(rows) - len(pairs)}

        _resume(bar, parts)
        work_in_parts(rows, parts, check, judge, print_error)
        parts.assemble()
    return _summary(parts, out, "plans", "valid", "without_plan")


def _index(path: Path, parts: Parts) -> PlanIndex:
    """The plans of a file by id; it is the first part of the work."""
    place = parts.folder / "plans.sqlite"
    if not parts.number:
        place.unlink(missing_ok=True)  # left by a process that was killed
    index = PlanIndex(place)
    if not parts.number:
        bad: list[str] = []
        for _ in read_rows(path, PlanRow, lambda error: bad.append(str(error)), index.add):
            pass
        index.commit()
        parts.add(Part(0, bad), [])
    return index


def _resume(bar: "tqdm", parts: Parts) -> None:
    bar.initial = bar.n = parts.consumed
    if parts.consumed:
        print_on_terminal(f"resuming after {parts.consumed} that are done")


def _summary(parts: Parts, out: Path, *counts: str) -> dict[str, Any]:
    return {**{name: parts.tally[name] for name in (*counts, "bad_rows")}, "out": str(out)}
