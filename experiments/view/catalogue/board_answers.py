"""All plans that were given for one board: a group of rollouts, or the answers of an evaluation."""

from typing import Any

import msgspec

from lakewright.experiments.loop.records import Answer, RunFolder, read_answers
from lakewright.experiments.view.catalogue.board_table import Tile, asked, escaped_glob
from lakewright.experiments.view.catalogue.board_tables import (
    ANSWER_COLUMNS,
    JUDGED_COLUMNS,
    lines,
    written_so_far,
)
from lakewright.experiments.view.catalogue.discovery import Item, Kind

MOST = 64  # plans of a board


def answers_to(item: Item, part: str, tile: Tile) -> list[Answer]:
    """The plans that are kept for a board of a table, at most MOST; those that could not be read have no moves."""
    if item.kind is Kind.RUN and tile.row and part.startswith("stage-"):
        stage = RunFolder(item.path).stage(int(part.removeprefix("stage-")))
        return read_answers(written_so_far(stage.rollouts), tile.row, tile.place)[:MOST]
    if item.kind is Kind.EVALUATION and tile.row:
        return _of_evaluation(item, tile.row.id)
    return []


def _of_evaluation(item: Item, name: str) -> list[Answer]:
    query = (
        f"SELECT v.verdict AS verdict, a.plan AS plan FROM {lines(JUDGED_COLUMNS)} AS v "
        f"LEFT JOIN {lines(ANSWER_COLUMNS)} AS a ON a.id = v.verdict.id AND a.sample = v.sample "
        f"WHERE v.verdict.id = ? ORDER BY v.sample LIMIT {MOST}"
    )
    files: list[Any] = [escaped_glob(item.path / file) for file in ("verdicts.jsonl", "answers.jsonl")]
    return [_answer({**found["verdict"], "plan": found["plan"]}) for found in asked(query, [*files, name])]


def _answer(found: dict[str, Any]) -> Answer:
    given = {name: found.get(name) for name in Answer.__struct_fields__}
    given |= {"plan": given["plan"] or [], "failure": given["failure"] or "parse_error", "text": given["text"] or ""}
    given |= {name: -1 if given[name] is None else given[name] for name in ("agent", "step")}
    return msgspec.convert(given, Answer)
