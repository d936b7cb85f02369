"""The tables of boards that items have: those of a file, of a stage with its rollouts, held out, and answered."""

from pathlib import Path
from typing import Any

from core_jax.errors import InputError
from core_jax.support import read_raw
from experiments.loop.records import RunFolder, Stage
from experiments.view.catalogue.board_table import COUNTED, BoardTable, boards_of_file, escaped_glob
from experiments.view.catalogue.discovery import Catalogue, Item, Kind, MissingError

GROUP_COLUMNS = "{'board': 'BIGINT', 'completions': 'BIGINT', 'valid': 'BIGINT'}"
JUDGED_COLUMNS = (
    "{'sample': 'BIGINT', 'verdict': 'STRUCT(id VARCHAR, valid BOOLEAN, failure VARCHAR, agent BIGINT, step BIGINT)'}"
)
ANSWER_COLUMNS = "{'id': 'VARCHAR', 'sample': 'BIGINT', 'plan': 'VARCHAR[]'}"
NONE = "CAST(NULL AS {})"
BENCHMARK_FILES = ("benchmark.parquet", "benchmark.jsonl")


def table_of(catalogue: Catalogue, item: Item, part: str) -> BoardTable:
    """A table of an item. part: `file`, `held-out`, `stage-N` or `answers`.

    Raises InputError where the item has no such part, or its file is not there yet or not readable.
    """
    if item.kind is Kind.RUN:
        return _of_run(RunFolder(item.path), item, part)
    if item.kind is Kind.EVALUATION:
        return _answers(catalogue, item)
    path = item.path if item.kind is Kind.BOARDS else _benchmark_file(item.path)
    return BoardTable(path.name, *boards_of_file(_there(path)), countable=_countable(path))


def _of_run(folder: RunFolder, item: Item, part: str) -> BoardTable:
    if part == "held-out":
        return BoardTable("Held-out boards", *boards_of_file(_there(folder.validation)))
    number = part.removeprefix("stage-")
    if not (part.startswith("stage-") and number.isascii() and number.isdigit() and len(number) < 4):
        raise MissingError(f"{item.name}: has no boards called {part!r:.40}")
    return _rolled_out(folder.stage(int(number)), f"Boards of stage {int(number)}")


def _rolled_out(stage: Stage, title: str) -> BoardTable:
    """The boards of a stage, each with what became of its rollouts, all of its groups pooled."""
    boards = _there(stage.boards)
    if not stage.groups.exists():
        return BoardTable(title, *boards_of_file(boards))
    pooled = "SELECT board, sum(completions) AS completions, sum(valid) AS valid"
    reader = f"read_json(?, format = 'newline_delimited', columns = {GROUP_COLUMNS}, ignore_errors = true)"
    success = "g.valid / g.completions"
    extra = ", ".join(
        [
            *("CAST(NULL AS BOOLEAN) AS valid", "CAST(NULL AS VARCHAR) AS failure", "CAST(NULL AS BIGINT) AS agent"),
            *("CAST(NULL AS BIGINT) AS step", "CAST(NULL AS VARCHAR[]) AS answer", f"{success} AS success"),
            *("CAST(g.completions AS BIGINT) AS completions", f"{success} * (1 - {success}) AS learnability"),
        ]
    )
    source = f"LEFT JOIN ({pooled} FROM {reader} GROUP BY board) AS g ON g.board = boards.place"
    query, values = boards_of_file(boards, extra, f"{source} ORDER BY boards.place")
    return BoardTable(title, query, [*values, escaped_glob(stage.groups)], rolled_out=True)


def _answers(catalogue: Catalogue, item: Item) -> BoardTable:
    """The boards of an evaluation with the first answer to each."""
    summary = read_raw(_there(item.path / "summary.json"))
    boards = _evaluated(catalogue, item.path, summary if isinstance(summary, dict) else {})
    first = 0 if not isinstance(summary, dict) or summary.get("greedy", True) else 1
    extra = (
        "v.valid, v.failure, v.agent, v.step, v.answer, CAST(NULL AS DOUBLE) AS success, "
        "CAST(NULL AS BIGINT) AS completions, CAST(NULL AS DOUBLE) AS learnability"
    )
    judged = f"read_json(?, format = 'newline_delimited', columns = {JUDGED_COLUMNS}, ignore_errors = true)"
    answers = f"read_json(?, format = 'newline_delimited', columns = {ANSWER_COLUMNS}, ignore_errors = true)"
    both = (
        f"SELECT j.verdict.id AS id, j.verdict.valid AS valid, j.verdict.failure AS failure, j.verdict.agent AS agent, "
        f"j.verdict.step AS step, a.plan AS answer FROM {judged} AS j "
        f"LEFT JOIN {answers} AS a ON a.id = j.verdict.id AND a.sample = j.sample WHERE j.sample = {first}"
    )
    query, values = boards_of_file(boards, extra, f"JOIN ({both}) AS v ON v.id = boards.id ORDER BY boards.place")
    files: list[Any] = [escaped_glob(_there(item.path / name)) for name in ("verdicts.jsonl", "answers.jsonl")]
    return BoardTable("Boards and answers", query, [*values, *files], judged=True)


def _evaluated(catalogue: Catalogue, folder: Path, summary: dict[str, Any]) -> Path:
    """The file of an evaluation's boards. Raises InputError where it lies outside of what is shown."""
    if (folder / "boards.jsonl").exists():
        return folder / "boards.jsonl"
    path = Path(str(summary.get("benchmark", "")))
    if not catalogue.holds(path):
        raise InputError("the boards of this evaluation lie elsewhere; start `lakewright view` with their folder too")
    return path


def _benchmark_file(folder: Path) -> Path:
    return next((folder / name for name in BENCHMARK_FILES if (folder / name).exists()), folder / BENCHMARK_FILES[0])


def _there(path: Path) -> Path:
    if not path.exists():
        raise MissingError(f"{path.name} is not there yet, or no longer")
    return path


def _countable(path: Path) -> bool:
    return path.suffix == ".parquet" or path.stat().st_size <= COUNTED
