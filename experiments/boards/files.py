"""Files of boards, part by part: certified boards drawn, boards labelled, plans judged."""

import errno
import itertools
import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import check_count, generate, manifest_of, manifest_path, prng
from lakewright.core_jax.rows import (
    SCHEMA,
    VERDICT_SCHEMA,
    PlanRow,
    check_plan,
    columns_in_turn,
    decode_numbered,
    ending,
    read_chunks,
    read_ids,
    row_place,
    solve_columns,
    to_python,
    unsolvable_here,
    verify_columns,
)
from lakewright.core_jax.support import check_digest, listed, write_json
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.executors.executor import Task
from lakewright.experiments.jobs.resumable.part_files import Made, Part
from lakewright.experiments.jobs.resumable.part_work import Pace, make_parts, work_in_parts
from lakewright.experiments.jobs.resumable.parts import MOST_LISTED, Parts, job_of, parts_of
from lakewright.experiments.jobs.resumable.rejects import rejects_option
from lakewright.experiments.jobs.runtime.progress_bars import UNWATCHED, Watch

CREATE = "CREATE TABLE IF NOT EXISTS plans (id TEXT PRIMARY KEY, plan BLOB, number INTEGER) WITHOUT ROWID"
FIND = "SELECT plans.id, plan FROM json_each(?) JOIN plans ON plans.id = value"
WITHOUT_PLAN = pa.array(["unsolvable", "undecided"])  # rows of which none is asked


def generate_file(
    config: EnvConfig, seed: int, count: int, out: Path, watch: Watch = UNWATCHED, where: ExecutorChoice = HERE
) -> None:
    """Draws the first `count` boards of the set of `config` and `seed` into `out`, or continues it.

    Args:
        config: The distribution of the boards.
        seed: The same seed gives the same boards.
        count: The number of boards.
        out: The file to write; its manifest is written beside it.
        watch: Gets the progress.
        where: The executor that draws them.

    Raises as `generate`, and InputError if the file cannot be made.
    """
    check_count(count)
    drawn_from = {"config": msgspec.to_builtins(config, str_keys=True), "prng": prng()}
    job = job_of("generate", {}, {**drawn_from, "seed": seed, "count": count})
    with parts_of(out, job, SCHEMA) as parts, where.open(Task("part", spreads=True)) as executor:
        watch.on_resume(parts.consumed)
        draw, split = partial(_draw_range, config, seed), partial(_split_range, parts.consumed, count)
        make_parts(parts, draw, split, executor, on_progress=watch.on_progress)
        manifest = manifest_of(config, seed, count, parts.acceptance)
        manifest_path(out).unlink(missing_ok=True)  # the manifest of another file is worse than none
        parts.assemble(lambda: write_json(manifest_path(out), manifest))


def _split_range(first: int, end: int, pace: Pace) -> Iterator[range]:
    while first < end:
        some = range(first, min(first + pace.rows, end))
        yield some
        first = some.stop


def _draw_range(config: EnvConfig, seed: int, some: range) -> Made:
    batches = generate(config, seed, len(some), first=some.start)
    acceptance = [stratum for batch in batches.values() for stratum in batch.acceptance]
    rows = columns_in_turn([batches], [config])
    return Made(Part(len(rows), acceptance=acceptance), rows, good=len(rows), kinds=len(batches))


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
        watch: Gets the progress, and the errors of the first bad rows.
        rejects: A file for the bad rows, unchanged, in the format of `source`.
        where: The executor that solves them.

    Returns: the numbers of `boards`, `undecided` boards, `bad_rows`, and `unlisted` bad rows without a report.
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


class PlanIndex:
    """Plans that are added once and then found by id; a process that is given the index opens it for itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._name_errors():
            self._file = sqlite3.connect(path, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = OFF")  # an incomplete index is built again
            self._file.execute("PRAGMA cache_size = -65536")  # KiB
            self._file.execute(CREATE)

    def __reduce__(self) -> tuple[type["PlanIndex"], tuple[Path]]:
        return PlanIndex, (self._path,)

    def add(self, row: PlanRow, number: int = 0) -> None:
        """Adds a plan, with the number of its row. Raises ValueError if its board has one already."""
        values = _escape_id(row.id), msgspec.json.encode(row.plan), number
        with self._name_errors():
            try:
                self._file.execute("INSERT INTO plans VALUES (?, ?, ?)", values)
            except sqlite3.IntegrityError as error:
                raise ValueError(
                    f"id is {row.id!r:.60}, which has a plan in an earlier line; remove one of them"
                ) from error

    def commit(self) -> None:
        """Completes the index."""
        with self._name_errors():
            self._file.commit()

    def find_plans(self, names: pa.StringArray) -> pa.ListArray:
        """The plan for each board of `names`, null without one."""
        keys = [name and _escape_id(name) for name in names.to_pylist()]
        wanted = msgspec.json.encode(keys).decode()
        with self._name_errors(), self._lock:
            found = dict(self._file.execute(FIND, (wanted,)).fetchall())
        plans = [found.get(key) for key in keys]
        return pa.array([plan and msgspec.json.decode(plan) for plan in plans], pa.list_(pa.string()))

    def number_of(self, name: str) -> int:
        """The number of the row that the plan for a board came with."""
        with self._name_errors(), self._lock:
            return self._file.execute("SELECT number FROM plans WHERE id = ?", (_escape_id(name),)).fetchone()[0]

    def without_board(self, names: Iterable[str]) -> Iterator[tuple[int, str]]:
        """The plans that are for no board of `names`, in order: the number of the row, and the id."""
        with self._name_errors():
            self._file.execute("CREATE TEMP TABLE boards (id TEXT PRIMARY KEY) WITHOUT ROWID")
            self._file.executemany("INSERT OR IGNORE INTO boards VALUES (?)", ((_escape_id(name),) for name in names))
            wanted = "SELECT number, id FROM plans WHERE id NOT IN (SELECT id FROM boards) ORDER BY number"
            for number, key in self._file.execute(wanted):
                yield number, _unescape_id(key)
            self._file.execute("DROP TABLE boards")

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error), str(self._path)) from error


def _escape_id(name: str) -> str:
    """The id without NUL, at which SQLite's texts end; different ids have different keys."""
    return name.replace("\\", "\\\\").replace("\0", "\\0")


def _unescape_id(key: str) -> str:
    """The id that a key was made from."""
    return re.sub(r"\\([\\0])", lambda found: "\0" if found[1] == "0" else "\\", key)


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
        plans: A file of plans, by the ids of their boards, to judge instead.
        makespan_plans: Judge the plans of `source` that reach the makespan.
        watch: Gets the progress, and the errors of the first bad rows.
        rejects: A file for the bad rows of `source`, unchanged, in the format of `source`.
        where: The executor that judges them.

    Returns: how many `plans` there are, of them `valid`, rows `without_plan`, plans `without_board`, and `bad_rows`
    (including the rows of `plans`), of them `unlisted` without a report. Raises InputError if a file cannot be read or
    written.
    """
    inputs = {"input": source} | ({"plans": plans} if plans else {})
    for path in inputs.values():
        ending(path)
    job = job_of("verify", inputs, {"makespan_plans": makespan_plans, **rejects_option(rejects)})
    with parts_of(out, job, VERDICT_SCHEMA, rejects) as parts, where.open(Task("part", spreads=True)) as executor:
        given = GivenPlans(makespan_plans, plans, _index(plans, source, parts) if plans else None)
        watch.on_resume(parts.consumed)
        work_in_parts(
            source, parts, given.check, _judge, watch.on_bad_row, executor, given.add_plans, watch.on_progress
        )
        parts.assemble()
    return parts.tally


class GivenPlans(NamedTuple):
    """The plans that are judged: of the file `path`, by its index `found`, or of the rows."""

    makespan: bool
    path: Path | None
    found: PlanIndex | None

    def find_plans(self, rows: pa.RecordBatch) -> pa.ListArray:
        """The plan for each row, null without one."""
        return self.found.find_plans(rows["id"]) if self.found else rows["makespan_plan" if self.makespan else "plan"]

    def add_plans(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.ListArray]:
        """The rows, and their plans."""
        return rows, self.find_plans(rows)

    def check(self, rows: pa.RecordBatch) -> dict[int, str | InputError]:
        """The faults of the plans, by the places of their rows."""
        plans = self.find_plans(rows)
        unfit = _find_unfit(rows, plans, self.found, self.path) if self.found and self.path else {}
        return _find_missing(rows, plans) | unfit


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


def _find_unfit(rows: pa.RecordBatch, plans: pa.ListArray, index: PlanIndex, path: Path) -> dict[int, str | InputError]:
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
        first = Part(0, bad, unlisted, lost, {"without_board": len(lost) + more})
        parts.add_part(parts.files.save(parts.number, Made(first)))
    return index


def _split_first(problems: Iterator[str]) -> tuple[list[str], int]:
    """The first MOST_LISTED of the problems, and how many more there are."""
    return list(itertools.islice(problems, MOST_LISTED)), sum(1 for _ in problems)


def _fill_index(index: PlanIndex, path: Path) -> Iterator[str]:
    """Adds the plans of a file to an index; yields the errors of plans that are left out."""
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
