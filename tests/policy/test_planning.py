"""Planning with the simulator as judge: never an invalid plan, never one that costs more than a valid greedy one."""

import dataclasses
import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.rows import Row, verify_rows
from lakewright.policy import planning
from lakewright.policy.inference import answers, sample
from lakewright.policy.judging import best_valid
from lakewright.policy.planning import load_planner, sum_shortest_paths
from tests.support.boards.generated_rows import BLOCKED, rows
from tests.support.refusals import refused

ROWS = [*rows()[:12], *rows()[-12:], BLOCKED]
GREEDY = dataclasses.replace(load_planner("pretrained", samples=0, device="cpu"), horizon=16)


@functools.cache
def greedy_plans() -> tuple[list[str] | None, ...]:
    return tuple(GREEDY.plans(ROWS))


def cost_of(row: Row, plan: list[str]) -> int:
    """The sum of costs of a plan, which must be valid."""
    [verdict] = verify_rows([row], [plan])
    assert verdict.valid, f"{row.id}: {plan} is invalid: {verdict.failure}"
    return verdict.sum_of_costs


@pytest.mark.deep
@settings(max_examples=5)
@given(st.sampled_from([0, 3]), st.integers(0, 99), st.booleans())
def test_the_judge_returns_valid_plans_only_and_none_worse_than_the_greedy_one(samples, seed, first_valid):
    changes = {"samples": samples, "seed": seed, "first_valid": first_valid, "temperature": 2.0}
    found = dataclasses.replace(GREEDY, **changes).plans(ROWS)
    for row, plan, greedy in zip(ROWS, found, greedy_plans(), strict=True):
        if plan is not None:
            assert cost_of(row, plan) >= sum_shortest_paths(row), row.id
        if greedy is not None:
            assert plan is not None, f"{row.id}: the greedy plan {greedy} is valid"
            assert cost_of(row, plan) <= cost_of(row, greedy), row.id
            assert plan == greedy or not first_valid, row.id


def test_without_samples_it_is_the_greedy_plan_where_that_is_valid():
    codec = GREEDY.codec
    boards = [planning.board_of(row) for row in ROWS]
    prompts = [codec.encode_prompt(board) for board in boards]
    answers = sample(GREEDY.model, codec.tokenizer, prompts, max_new_tokens=33, temperature=0.0).answers
    moves = [codec.decode_answer(answer, board, 16) for answer, board in zip(answers, boards, strict=True)]
    plans = [None if one is None else planning.plan_of(one) for one in moves]
    verdicts = verify_rows(ROWS, [plan or ["", ""] for plan in plans])
    valid = [plan if one.valid else None for plan, one in zip(plans, verdicts, strict=True)]
    assert list(greedy_plans()) == valid
    assert {plan is None for plan in valid} == {True, False}, "some boards are solved and some are not"


def test_only_boards_that_may_gain_from_it_are_sampled(monkeypatch):
    asked = []

    def counted(model, tokenizer, prompts, **how):
        asked.append((len(prompts), how["copies"]))
        return sample(model, tokenizer, prompts, **how)

    monkeypatch.setattr(answers, "sample", counted)
    greedy = GREEDY.plans(ROWS)
    optimal = [
        row for row, plan in zip(ROWS, greedy, strict=True) if plan and cost_of(row, plan) == sum_shortest_paths(row)
    ]
    assert optimal, "some greedy plans cost no more than shortest paths"
    dataclasses.replace(GREEDY, samples=3).plans(ROWS)
    dataclasses.replace(GREEDY, samples=3, first_valid=True).plans(ROWS)
    solved = sum(plan is not None for plan in greedy)
    assert asked == [(25, 1), (25, 1), (25 - len(optimal), 3), (25, 1), (25 - solved, 3)]


def test_the_best_plan_costs_least_then_ends_soonest_then_comes_first():
    row = Row("pass", 3, 2, ["...", "...", "..."], [(0, 0), (2, 0)], [(0, 2), (2, 2)])
    plans = [["RR", "WRR"], ["RR", "RR"], ["U", "RR"], ["RR", "RR"]]
    assert best_valid(verify_rows([row] * 4, plans)) == 1
    assert best_valid(verify_rows([row], plans[2:3])) is None
    assert best_valid([]) is None


def test_shortest_paths_alone_are_a_bound_that_certified_plans_keep():
    assert sum_shortest_paths(BLOCKED) == float("inf")
    assert all(sum_shortest_paths(row) <= row.sum_of_costs for row in rows()[:60])
    assert all(sum_shortest_paths(row) < row.sum_of_costs for row in rows()[:60] if row.wait_required)


def test_a_board_that_the_codec_has_no_words_for_is_refused():
    large = Row("large", 11, 1, ["." * 11] * 11, [(0, 0)], [(10, 10)])
    with refused("11x11"):
        GREEDY.plan(large)
    assert GREEDY.plans([]) == []
