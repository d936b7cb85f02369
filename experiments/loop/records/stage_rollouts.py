"""The training rollouts of a stage: each group of answers, with the board that they answer."""

from collections.abc import Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Group
from lakewright.core_jax.rows import Row, board_key, read_all
from lakewright.core_jax.support import convert
from lakewright.experiments.loop.records.run_folder import Stage


def read_rollouts(stage: Stage) -> list[tuple[Row, Group]]:
    """Each group of a stage with its board, in the order of groups.jsonl; the boards may lie in any order.

    A board that was drawn more than once has a group for each time; its stratum is that of its first row. Raises
    InputError where the file is damaged, or a group is of a board that the stage does not have.
    """
    rows = read_all(stage.boards)
    of_key = {board_key(row): row for row in reversed(rows)}
    groups = [convert(raw, Group, str(stage.groups)) for raw in _named(_lines(stage), rows)]
    if unknown := next((line for line, group in enumerate(groups, 1) if group.board not in of_key), 0):
        raise InputError(
            f"{stage.groups}:{unknown}: its board is not in {stage.boards.name}; "
            "restore the file that belongs to it, or run the stage again"
        )
    return [(of_key[group.board], group) for group in groups]


def _lines(stage: Stage) -> list[Any]:
    try:
        return msgspec.json.Decoder().decode_lines(stage.groups.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{stage.groups}: not lines of JSON ({error}); run the stage again") from error


def _named(lines: list[Any], rows: Sequence[Row]) -> list[Any]:
    """The lines, with the board's key where an older version wrote its place among `rows`."""

    def named(line: Any) -> Any:
        place = line.get("board") if isinstance(line, dict) else None
        if isinstance(place, int) and 0 <= place < len(rows):
            return {**line, "board": board_key(rows[place])}
        return line

    return list(map(named, lines))
