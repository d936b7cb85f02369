"""A better answer earns more, and a batch is judged as its answers are one by one."""

import jax
import numpy as np
import pytest

from lakewright.core_jax.types import PAD, WAIT, BoardVerdict, Failure
from lakewright.policy.codecs.tokens import ID, encode_answer
from lakewright.policy.tasks import BoardTask, task_of
from lakewright.policy.training import RewardSettings, judge_answers
from lakewright.policy.training import reward as rewards_module
from lakewright.policy.training.reward import compute_rewards, play_plans
from tests.support.boards import search_oracle as oracle
from tests.support.boards.generated_rows import rows, unsolved
from tests.support.boards.sample_boards import as_lists, as_strings, drawing, picture
from tests.support.models.tiny_policy import HORIZON, tasks

SETTINGS = RewardSettings()
END = ID["<eos>"]
# Both walk right on rows of their own, three steps each.
ROOM = BoardTask(
    drawing(["....", "....", "....", "H..."], [(0, 0), (2, 0)], [(0, 3), (2, 3)]), 3, 6, False, np.zeros((2, 0)), 0.1
)


def answer(*paths: str) -> list[int]:
    """The tokens of cells written as in a prompt, step by step."""
    return [*(ID[cell] for step in zip(*(path.split() for path in paths), strict=True) for cell in step), END]


LADDER = {
    "cannot be read": [END + 1, END],
    "jumps at once": answer("3,3", "2,1"),
    "jumps at its second step of three": answer("0,1 3,3 0,3", "2,1 2,2 2,3"),
    "falls into a hole at its third step of three": answer("0,1 0,2 0,3", "2,0 2,0 3,0"),
    "never starts": [END],
    "brings one home": answer("0,1 0,2 0,3", "2,0 2,0 2,0"),
    "comes home late": answer("0,0 0,0 0,1 0,2 0,3", "2,1 2,2 2,3 2,3 2,3"),
    "is optimal": answer("0,1 0,2 0,3", "2,1 2,2 2,3"),
}


def reward_of(answers: list[list[int]], settings: RewardSettings = SETTINGS) -> list[float]:
    """The rewards of answers on ROOM."""
    asked = [ROOM] * len(answers)
    verdicts, moves = judge_answers(asked, answers, HORIZON)
    return compute_rewards(asked, verdicts, moves, settings).tolist()


def scribbles(count: int) -> tuple[list[BoardTask], list[list[int]]]:
    """Tasks of mixed sizes, with answers that are right, cut, mangled or noise."""
    rng = np.random.default_rng(0)
    asked = [tasks()[i] for i in rng.integers(len(tasks()), size=count)]
    answers = []
    for number, task in enumerate(asked):
        words = encode_answer(task.board, task.moves)
        if number % 4 == 1:
            words = [*words[:2], END]
        elif number % 4 == 2:
            words[rng.integers(len(words))] = ID[f"{rng.integers(5)},{rng.integers(5)}"]
        elif number % 4 == 3:
            words = [*rng.integers(0, 120, 2 * rng.integers(6)).tolist(), END]
        answers.append(words)
    return asked, answers


def assert_same(found: BoardVerdict, expected: BoardVerdict, asked: list[BoardTask]) -> None:
    for name, one, other in zip(
        BoardVerdict.__dataclass_fields__, *map(jax.tree.leaves, (found, expected)), strict=True
    ):
        for task, left, right in zip(asked, one, other, strict=True):
            assert np.array_equal(left, right), f"{name}: {left} and {right} on {picture(task.board)}"


def test_each_rung_of_the_ladder_earns_more_than_the_one_below():
    earned = dict(zip(LADDER, reward_of(list(LADDER.values())), strict=True))
    assert list(earned.values()) == sorted(set(earned.values())), earned
    assert earned["cannot be read"] == 0
    assert earned["is optimal"] == pytest.approx(1)


def test_each_part_of_the_reward_is_what_its_documentation_says():
    earned = dict(zip(LADDER, reward_of(list(LADDER.values())), strict=True))
    assert earned["jumps at once"] == pytest.approx(0.1)
    assert earned["jumps at its second step of three"] == pytest.approx(0.1 + 0.2 / 3)
    assert earned["falls into a hole at its third step of three"] == pytest.approx(0.1 + 0.4 / 3)
    assert earned["never starts"] == pytest.approx(0.3)
    assert earned["brings one home"] == pytest.approx(0.3 + 0.2 / 2)
    assert earned["comes home late"] == pytest.approx(0.7 + 0.3 / (1 + 2))


def test_the_weights_are_settings():
    settings = RewardSettings(parsed=0.0, legal=0.0, home=0.0, valid=1.0, cost=0.0)
    assert reward_of(list(LADDER.values()), settings) == [0, 0, 0, 0, 0, 0, 1, 1]


def test_a_certified_plan_earns_everything_and_its_failure_is_none():
    asked = list(tasks())
    verdicts, moves = judge_answers(asked, [encode_answer(task.board, task.moves) for task in asked], HORIZON)
    for task, failure, earned in zip(
        asked, verdicts.failure, compute_rewards(asked, verdicts, moves, SETTINGS), strict=True
    ):
        assert (failure, earned) == (Failure.NONE, pytest.approx(1)), picture(task.board)
    assert (verdicts.makespan >= [task.makespan for task in asked]).all()


def test_no_reward_leaves_its_range():
    asked, answers = scribbles(500)
    verdicts, moves = judge_answers(asked, answers, HORIZON)
    earned = compute_rewards(asked, verdicts, moves, SETTINGS)
    unread = verdicts.failure == Failure.PARSE_ERROR
    valid = verdicts.failure == Failure.NONE
    unfinished = verdicts.failure == Failure.GOAL_NOT_REACHED
    assert unread.any()
    assert valid.any()
    assert unfinished.any()
    assert (earned[unread] == 0).all()
    assert ((earned[valid] > 0.7) & (earned[valid] <= 1)).all()
    assert ((earned[unfinished] >= 0.3) & (earned[unfinished] < 0.5)).all()
    broken = earned[~(unread | valid | unfinished)]
    assert ((broken >= 0.1) & (broken < 0.3)).all()


def test_what_cannot_be_read_is_a_parse_error_of_no_agent_and_step():
    verdicts, moves = judge_answers([ROOM] * 2, [LADDER["cannot be read"], LADDER["is optimal"]], HORIZON)
    assert verdicts.failure.tolist() == [Failure.PARSE_ERROR, Failure.NONE]
    for field in (verdicts.agent, verdicts.step, verdicts.makespan, verdicts.sum_of_costs):
        assert field[0] == -1
    assert verdicts.legal_steps.tolist() == [0, 3]
    assert verdicts.at_goal.tolist() == [[False, False], [True, True]]
    assert (moves[0] == PAD).all()


def test_a_batch_of_mixed_sizes_beyond_one_chunk_is_judged_as_its_answers_alone(monkeypatch):
    asked, answers = scribbles(120)
    whole, moves = judge_answers(asked, answers, HORIZON)
    alone = [judge_answers([task], [words], HORIZON) for task, words in zip(asked, answers, strict=True)]
    assert_same(whole, jax.tree.map(lambda *fields: np.concatenate(fields), *(one for one, _ in alone)), asked)
    assert np.array_equal(moves, np.concatenate([plan for _, plan in alone]))
    monkeypatch.setattr(rewards_module, "CHUNK", 32)
    assert_same(judge_answers(asked, answers, HORIZON)[0], whole, asked)
    monkeypatch.undo()
    five_fold = jax.tree.map(lambda field: np.concatenate([field] * 5), whole)
    assert_same(judge_answers(asked * 5, answers * 5, HORIZON)[0], five_fold, asked * 5)


def test_teams_of_several_sizes_are_judged_as_each_is_alone(monkeypatch):
    monkeypatch.setattr(rewards_module, "CHUNK", 8)
    asked, answers = scribbles(40)
    lone = [cut_to_one(task) if number % 3 == 0 else task for number, task in enumerate(asked)]
    answers = [encode_answer(t.board, t.moves) if len(t.moves) == 1 else a for t, a in zip(lone, answers, strict=True)]
    answers[0] = LADDER["cannot be read"]
    verdicts, moves = judge_answers(lone, answers, HORIZON)
    earned = compute_rewards(lone, verdicts, moves, SETTINGS)
    assert moves.shape == (40, 2, HORIZON)
    assert {len(task.board.starts) for task in lone} == {1, 2}
    for i, (task, words) in enumerate(zip(lone, answers, strict=True)):
        (agents, _), (alone, plan) = task.board.starts.shape, judge_answers([task], [words], HORIZON)
        assert np.array_equal(moves[i, :agents], plan[0]), picture(task.board)
        assert (moves[i, agents:] == PAD).all(), "who is not there does not move"
        assert not verdicts.at_goal[i, agents:].any(), "who is not there is not home"
        here = jax.tree.map(lambda field, i=i: field[i : i + 1], verdicts)
        assert_same(here.replace(at_goal=here.at_goal[:, :agents]), alone, [task])
        assert earned[i] == compute_rewards([task], alone, plan, SETTINGS)[0], picture(task.board)


def cut_to_one(task: BoardTask) -> BoardTask:
    """The task of its first agent alone, as far as judging goes."""
    board = task.board.replace(starts=task.board.starts[:1], goals=task.board.goals[:1])
    return BoardTask(board, task.makespan, task.sum_of_costs, False, task.moves[:1], task.hole_ratio)


def test_the_verdicts_are_the_oracles():
    asked, answers = scribbles(400)
    verdicts, moves = judge_answers(asked, answers, HORIZON)
    for i, task in enumerate(asked):
        if verdicts.failure[i] != Failure.PARSE_ERROR:
            played = oracle.play(*as_lists(task.board), as_strings(moves[i]))
            found = verdicts.agent[i], verdicts.step[i], verdicts.makespan[i], verdicts.sum_of_costs[i]
            assert Failure(verdicts.failure[i]).name.lower() == played.failure, picture(task.board) + f"\n{played}"
            assert found == played[1:], picture(task.board) + f"\n{as_strings(moves[i])} {played}"


def test_waiting_at_home_costs_nothing():
    moves = np.full((1, 2, HORIZON), WAIT, np.int8)
    moves[0, :, :3] = 3
    assert play_plans([ROOM], moves).sum_of_costs.tolist() == [6]


def test_a_row_without_a_plan_is_no_task():
    with pytest.raises(ValueError, match="not solved: only boards with a plan can be trained on"):
        task_of(unsolved(rows()[0]))
