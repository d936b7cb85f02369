"""Rollouts belong to boards by what the boards are: not by where a file holds them, nor by what it calls them."""

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.rows import Row, board_key, read_all, write_rows
from lakewright.engineer.evidence import CellGroups
from lakewright.engineer.seen import group_by_cell
from lakewright.experiments.environments.lake import row_of
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_rollouts import BoardAnswers, read_answers, read_rollouts
from tests.support.boards.generated_rows import small_rows
from tests.support.refusals import refused
from tests.support.samples.finished_run import rollouts
from tests.support.samples.tiny_runs import finished

FIRST, SECOND, THIRD = small_rows()[:3]


@pytest.fixture
def stage(tmp_path) -> Stage:
    return Stage(tmp_path)


def keep(stage: Stage, rows: list[Row], *groups: tuple[object, int]) -> None:
    """Writes boards, and groups of four answers to some, so many of them valid."""
    write_rows(stage.boards, rows)
    lines = [msgspec.to_builtins(RolloutGroup(str(board), 4, valid, 0.5, 0.5, 0.5)) for board, valid in groups]
    named = [line | {"board": board} for line, (board, _) in zip(lines, groups, strict=True)]
    stage.groups.write_bytes(msgspec.json.Encoder().encode_lines(named))


def played(stage: Stage) -> list[tuple[str, int]]:
    return [(row_of(problem).id, group.valid) for problem, group in read_rollouts(stage)]


def by_cell(stage: Stage) -> list[CellGroups]:
    return group_by_cell((problem.cell, group) for problem, group in read_rollouts(stage))


def test_the_boards_of_a_stage_may_lie_in_any_order(stage):
    groups = [(board_key(row), valid) for row, valid in ((FIRST, 1), (SECOND, 2), (THIRD, 3))]
    keep(stage, [FIRST, SECOND, THIRD], *groups)
    expected = by_cell(stage)
    assert played(stage) == [(FIRST.id, 1), (SECOND.id, 2), (THIRD.id, 3)]
    keep(stage, [THIRD, FIRST, SECOND], *groups)
    assert played(stage) == [(FIRST.id, 1), (SECOND.id, 2), (THIRD.id, 3)]
    assert by_cell(stage) == expected


def test_a_board_that_was_drawn_twice_has_both_groups_and_the_stratum_of_its_first_row(stage):
    again = msgspec.structs.replace(FIRST, id="again", hole_ratio=0.9)
    keep(stage, [SECOND, FIRST, again], (board_key(FIRST), 1), (board_key(SECOND), 2), (board_key(again), 3))
    assert played(stage) == [(FIRST.id, 1), (SECOND.id, 2), (FIRST.id, 3)]
    assert {found.cell.values[0] for found in by_cell(stage)} == {FIRST.hole_ratio, SECOND.hole_ratio}
    assert sum(found.groups.groups for found in by_cell(stage)) == 3


def test_a_group_of_a_board_that_the_stage_does_not_have_is_named(stage):
    keep(stage, [FIRST, SECOND], (board_key(FIRST), 1), (board_key(THIRD), 2))
    with refused("groups.jsonl:2:", "board", "boards.parquet"):
        read_rollouts(stage)


def test_groups_of_older_versions_name_boards_by_their_place(stage):
    keep(stage, [FIRST, SECOND], (1, 2), (0, 1))
    assert played(stage) == [(SECOND.id, 2), (FIRST.id, 1)]
    keep(stage, [FIRST, SECOND], (2, 1))
    with pytest.raises(InputError, match=r"groups\.jsonl.*board"):
        read_rollouts(stage)


def test_answers_are_found_by_board_and_in_older_folders_by_place(stage):
    given = rollouts()
    for name in (board_key(SECOND), 1):
        lines = [BoardAnswers(name, given[:1]), BoardAnswers(board_key(THIRD), given[2:])]
        stage.rollouts.write_bytes(msgspec.json.Encoder().encode_lines(lines))
        assert read_answers(stage.rollouts, SECOND, 1) == given[:1], name
        assert read_answers(stage.rollouts, FIRST, 0) == [], name


def test_a_run_names_its_boards_in_groups_and_plans(tmp_path):
    run: RunFolder = finished("fixed")
    stage = run.stage(0)
    rows = [row_of(problem) for problem, _ in read_rollouts(stage)]
    assert rows == read_all(stage.boards)[: len(rows)], "drawn boards are trained on in their order"
    for place, row in enumerate(read_all(run.validation)):
        assert len(read_answers(stage.plans, row, place)) >= 1, row.id
