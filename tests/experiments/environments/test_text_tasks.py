"""Boards as questions: drawn one by one, answered by their certified plan, and scored by playing the answer."""

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import board_key
from lakewright.experiments.environments.text_tasks import BoardStream, TextTask, score
from lakewright.policy.codecs import Refused
from lakewright.policy.judging import judge_plans, read_plan
from tests.support.boards.generated_rows import small_rows

KIND = (3, 2, 0.2, 0.5)


def test_a_board_depends_on_its_kind_its_seed_and_its_number_alone():
    forwards, backwards = BoardStream(*KIND, seed=1), BoardStream(*KIND, seed=1)
    numbers = [0, 1, 31, 32, 40]
    assert [forwards[number] for number in numbers] == [backwards[number] for number in numbers[::-1]][::-1]
    other = BoardStream(*KIND, seed=2)
    assert [other[number] for number in numbers] != [forwards[number] for number in numbers]
    assert len({board_key(forwards[number]) for number in range(40)}) > 35, "boards of a stream are alike"


def test_the_certified_answer_scores_one_and_anything_less_less():
    for row in small_rows():
        task = TextTask(row)
        assert score(row, task.judge(task.answer)) == 1.0, row
        assert score(row, task.judge(f"{task.answer}\nor so?")) == 1.0, "a remark after the plan"
        assert score(row, task.judge("the answer is above")) == 0.0
        late = task.judge("\n".join(line.replace(": ", ": WAIT ") for line in task.answer.splitlines()))
        assert late.valid, row
        assert score(row, late) == pytest.approx(0.7 + 0.3 / (1 + late.sum_of_costs - row.sum_of_costs))


def test_a_task_comes_back_from_its_fields():
    for row in small_rows():
        assert TextTask.of(TextTask(row).fields) == TextTask(row)


def test_the_key_is_that_of_the_board_whatever_its_id():
    first, second = small_rows()[:2]
    renamed = TextTask.of(TextTask(first).fields | {"id": "another", "hole_ratio": None}).row
    assert board_key(renamed) == board_key(first) != board_key(second)


def test_plans_and_refusals_are_judged_each_in_its_place():
    rows = small_rows()[:3]
    unclear = read_plan("agent 0: FLY", 2)
    assert isinstance(unclear, Refused)
    verdicts = judge_plans(rows, [rows[0].plan, unclear, rows[2].plan])
    assert [verdict.failure for verdict in verdicts] == ["none", "parse_error", "none"]
    assert [verdict.id for verdict in verdicts] == [row.id for row in rows]


def test_a_kind_without_boards_is_refused():
    with pytest.raises(InputError, match="map size 2 is not supported"):
        BoardStream(2, 2, 0.2, 0.5, seed=0)
