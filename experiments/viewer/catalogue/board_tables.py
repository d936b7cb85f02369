"""The tables of boards that items have: of a file, of a stage with its rollouts, held out, and answered."""

import re
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import content_hash
from lakewright.core_jax.support import check_digest, read_raw
from lakewright.experiments.jobs.resumable.journal import check_journal
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import RecordedAnswer, read_answers
from lakewright.experiments.viewer.catalogue.board_table import (
    COUNTED,
    KEY,
    BoardTable,
    Tile,
    ask_database,
    boards_of_file,
    escape_glob,
)
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Item, Kind, MissingError

GROUP_COLUMNS = {"board": "VARCHAR", "completions": "BIGINT", "valid": "BIGINT", "failures": "MAP(VARCHAR, BIGINT)"}
PLAN = "STRUCT(plan VARCHAR[], failure VARCHAR, agent BIGINT, step BIGINT)"
PLANS_COLUMNS = {"board": "VARCHAR", "answers": f"{PLAN}[]"}
VERDICT = "STRUCT(id VARCHAR, valid BOOLEAN, failure VARCHAR, agent BIGINT, step BIGINT)"
JUDGED_COLUMNS = {"sample": "BIGINT", "verdict": VERDICT}
ANSWER_COLUMNS = {"id": "VARCHAR", "sample": "BIGINT", "plan": "VARCHAR[]"}
BENCHMARK_FILES = ("benchmark.parquet", "benchmark.jsonl")
MOST = 64  # plans of a board


def table_of(catalogue: Catalogue, item: Item, part: str, policy: str = "") -> BoardTable:
    """The boards of an item as a table.

    Args:
        catalogue: all items that the viewer shows.
        item: the item that has the boards.
        part: `file`, `held-out`, `stage-N` or `answers`.
        policy: the policy whose plans for held-out boards are shown.

    Raises InputError if the item has no such part, or its file is not there yet or not readable.
    """
    if item.kind is Kind.RUN:
        return _of_run(RunFolder(item.path), item, part, policy)
    if item.kind is Kind.EVALUATION:
        return _find_answered(catalogue, item)
    path = item.path if item.kind is Kind.BOARDS else _benchmark_file(item.path)
    return BoardTable(path.name, *boards_of_file(_check_there(path)), countable=_is_countable(path))


def policies_of(folder: RunFolder) -> dict[str, Stage]:
    """The policies of a run that are validated, in order: `warmup`, `stage-0` ..."""
    stages = {"warmup": folder.warmup, **{f"stage-{n}": folder.stage(n) for n in range(folder.settings().stages)}}
    return {name: stage for name, stage in stages.items() if stage.validation.exists()}


def find_growing_file(path: Path) -> Path:
    """A file, or where it is while it is written."""
    return path if path.exists() else path.with_name(f".{path.name}.part")


def read_lines_sql(columns: dict[str, str]) -> str:
    """SQL that reads lines of JSON of the next file that is given."""
    kinds = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return f"read_json(?, format = 'newline_delimited', columns = {{{kinds}}}, ignore_errors = true)"


def _of_run(folder: RunFolder, item: Item, part: str, policy: str) -> BoardTable:
    if part == "held-out":
        return _held_out(folder, item, policy)
    number = part.removeprefix("stage-")
    if not (part.startswith("stage-") and number.isascii() and number.isdigit() and len(number) < 4):
        raise MissingError(f"{item.name}: has no boards called {part!r:.40}")
    return _join_rollouts(folder.stage(int(number)), f"Boards of stage {int(number)}")


def _held_out(folder: RunFolder, item: Item, policy: str) -> BoardTable:
    """The held-out boards, each with the plan that a policy gave for it, by default the last one."""
    boards, policies = _check_there(folder.validation), policies_of(folder)
    if policy and policy not in policies:
        raise MissingError(f"{item.name}: no policy {policy!r:.40} is validated; choose from {', '.join(policies)}")
    if not policies:
        return BoardTable("Held-out boards", *boards_of_file(boards))
    name = policy or list(policies)[-1]
    stage = policies[name]
    title = f"Held-out boards, plans of {name.replace('-', ' ').replace('warmup', 'the warm-up')}"
    return BoardTable(title, *_with_plans(boards, stage), judged=True)


def _with_plans(boards: Path, stage: Stage) -> tuple[str, list[Any]]:
    """SQL that reads the held-out boards with a policy's plans, and its values."""
    if not stage.plans.exists():  # in folders of older versions, which saved a digit for each board
        digit = "substr(?, CAST(boards.place AS INTEGER) + 1, 1)"
        known = {"success": f"CASE {digit} WHEN '1' THEN 1 WHEN '0' THEN 0 END", "completions": "1"}
        query, values = boards_of_file(boards, known)
        return query, [read_record(stage.validation, Validation).valid, *values]
    known = {name: f"p.answer.{name}" for name in ("failure", "agent", "step")}
    known |= {"answer": "p.answer.plan", "failures": "[p.answer.failure]", "kept": "p.board IS NOT NULL"}
    known |= {"success": "CAST(p.answer.failure = 'none' AS INTEGER)", "completions": "1"}
    once = f"SELECT board, first(answers)[1] AS answer FROM {read_lines_sql(PLANS_COLUMNS)} GROUP BY board"
    source = f"LEFT JOIN ({once}) AS p ON p.board = {_name_in(stage.plans)} ORDER BY boards.place"
    query, values = boards_of_file(boards, known, source)
    return query, [*values, escape_glob(stage.plans)]


def _join_rollouts(stage: Stage, title: str) -> BoardTable:
    """The boards of a stage, each with the results of its rollouts, all of its groups pooled."""
    boards, groups, plans = (
        _check_there(stage.boards),
        find_growing_file(stage.groups),
        find_growing_file(stage.rollouts),
    )
    if not groups.exists():
        return BoardTable(title, *boards_of_file(boards))
    pooled = (
        "SELECT board, sum(completions) AS completions, sum(valid) AS valid, "
        "list_distinct(flatten(list(map_keys(failures)))) AS failures"
    )
    source = (
        f"LEFT JOIN ({pooled} FROM {read_lines_sql(GROUP_COLUMNS)} GROUP BY board) AS g ON g.board = {_name_in(groups)}"
    )
    success = "g.valid / g.completions"
    known = {"success": success, "completions": "g.completions", "learnability": f"{success} * (1 - {success})"}
    known |= {"failures": "g.failures", "kept": "false"}
    files = [escape_glob(groups)]
    if plans.exists():
        known["kept"] = "k.board IS NOT NULL"
        kept = f"SELECT DISTINCT board FROM {read_lines_sql(PLANS_COLUMNS)}"
        source += f" LEFT JOIN ({kept}) AS k ON k.board = {_name_in(plans)}"
        files.append(escape_glob(plans))
    query, values = boards_of_file(boards, known, f"{source} ORDER BY boards.place")
    return BoardTable(title, query, [*values, *files], judged=True, several=True)


def _name_in(path: Path) -> str:
    """SQL for what the lines of a file call a board: its key, or in folders of older versions its place."""
    try:
        with path.open("rb") as file:
            begin = file.readline()
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror}); load the page again") from error
    return "CAST(boards.place AS VARCHAR)" if re.match(rb'\{"board":\d', begin) else KEY


def _find_answered(catalogue: Catalogue, item: Item) -> BoardTable:
    """The boards of an evaluation with the first answer to each, and the rates of all answers to it."""
    summary = read_raw(_check_there(item.path / "summary.json"))
    boards = _find_evaluated(catalogue, item.path, summary if isinstance(summary, dict) else {})
    judged = (
        "SELECT verdict.id AS id, arg_min(verdict, sample) AS first, arg_min(sample, sample) AS sample, "
        "avg(CAST(verdict.valid AS INTEGER)) AS success, count(*) AS completions, "
        "list_distinct(list(verdict.failure)) AS failures"
    )
    source = (
        f"JOIN ({judged} FROM {read_lines_sql(JUDGED_COLUMNS)} GROUP BY verdict.id) AS v ON v.id = boards.id "
        f"LEFT JOIN {read_lines_sql(ANSWER_COLUMNS)} AS a ON a.id = v.id AND a.sample = v.sample ORDER BY boards.place"
    )
    known = {name: f"v.first.{name}" for name in ("failure", "agent", "step")}
    known |= {name: f"v.{name}" for name in ("success", "completions", "failures")}
    known |= {"answer": "a.plan", "kept": "true"}
    known["learnability"] = "CASE WHEN v.completions > 1 THEN v.success * (1 - v.success) END"
    query, values = boards_of_file(boards, known, source)
    files = _answer_files(item)
    several = isinstance(summary, dict) and _has_several(summary)
    return BoardTable("Boards and answers", query, [*values, *files], judged=True, several=several)


def _answer_files(item: Item) -> list[Any]:
    """The verdicts and the answers of an evaluation, for DuckDB. Raises InputError if one was changed."""
    verdicts, answers = (_check_there(item.path / name) for name in ("verdicts.jsonl", "answers.jsonl"))
    job = item.path / "job.json"
    for path in (verdicts, answers):
        check_digest(path)
    check_journal(answers, content_hash(read_raw(job)) if job.exists() else "")
    return [escape_glob(verdicts), escape_glob(answers)]


def _has_several(summary: dict[str, Any]) -> bool:
    """Whether an evaluation asked for more than one answer to each board."""
    samples = summary.get("samples", 0)
    return isinstance(samples, int) and samples + bool(summary.get("greedy", True)) > 1


def _find_evaluated(catalogue: Catalogue, folder: Path, summary: dict[str, Any]) -> Path:
    """The file of an evaluation's boards. Raises InputError if it lies outside the shown folders."""
    if (folder / "boards.jsonl").exists():
        return folder / "boards.jsonl"
    named = Path(str(summary.get("benchmark", "")))
    # A relative path begins in the folder where the evaluation was started, usually one above the evaluation.
    for path in (named, *(parent / named for parent in folder.parents)):
        if path.is_file() and catalogue.holds(path):
            return path
    raise InputError("the boards of this evaluation are elsewhere; start `lakewright view` with their folder, too")


def _benchmark_file(folder: Path) -> Path:
    return next((folder / name for name in BENCHMARK_FILES if (folder / name).exists()), folder / BENCHMARK_FILES[0])


def _check_there(path: Path) -> Path:
    if not path.exists():
        raise MissingError(f"{path.name} does not exist yet, or was removed")
    return path


def _is_countable(path: Path) -> bool:
    return path.suffix == ".parquet" or path.stat().st_size <= COUNTED


def answers_to(item: Item, part: str, tile: Tile) -> list[RecordedAnswer]:
    """The plans that were saved for a board of a table, at most MOST; those that could not be read have no moves."""
    if item.kind is Kind.RUN and tile.row and part.startswith("stage-"):
        stage = RunFolder(item.path).stage(int(part.removeprefix("stage-")))
        return read_answers(find_growing_file(stage.rollouts), tile.row, tile.place)[:MOST]
    if item.kind is Kind.EVALUATION and tile.row:
        return _of_evaluation(item, tile.row.id)
    return []


def _of_evaluation(item: Item, name: str) -> list[RecordedAnswer]:
    query = (
        f"SELECT v.verdict AS verdict, a.plan AS plan FROM {read_lines_sql(JUDGED_COLUMNS)} AS v "
        f"LEFT JOIN {read_lines_sql(ANSWER_COLUMNS)} AS a ON a.id = v.verdict.id AND a.sample = v.sample "
        f"WHERE v.verdict.id = ? ORDER BY v.sample LIMIT {MOST}"
    )
    files = _answer_files(item)
    return [_read_answer({**found["verdict"], "plan": found["plan"]}) for found in ask_database(query, [*files, name])]


def _read_answer(found: dict[str, Any]) -> RecordedAnswer:
    given = {name: found.get(name) for name in RecordedAnswer.__struct_fields__}
    given |= {"plan": given["plan"] or [], "failure": given["failure"] or "parse_error", "text": given["text"] or ""}
    given |= {name: -1 if given[name] is None else given[name] for name in ("agent", "step")}
    return msgspec.convert(given, RecordedAnswer)
