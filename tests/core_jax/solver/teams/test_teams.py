"""Boards of one, and of three and more agents, against exhaustive search and known answers."""

import functools
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.core_jax.lake import verify
from lakewright.core_jax.solver import SolverStage, check_memory, solve, solve_with_stages
from lakewright.core_jax.solver.teams import hard_boards
from lakewright.core_jax.solver.teams import team_solver as teams
from lakewright.core_jax.solver.teams.host_search import host_search
from lakewright.core_jax.support import parallel
from lakewright.core_jax.types import PAD, WAIT, Board, Certificate, Failure, Labels, Status
from tests.support.boards import search_oracle as oracle
from tests.support.boards.sample_boards import (
    as_lists,
    as_strings,
    assert_every,
    assert_same_optima,
    batch,
    drawing,
    each,
    infinite_where_unsolvable,
    mapped,
    mixed_boards,
    optima,
    picture,
    random_boards,
    searched,
)
from tests.support.deep import keep_quick
from tests.support.refusals import refused

COUNTS = {(3, 3): 200, (3, 4): 50, (3, 5): 25, (4, 3): 18, (4, 4): 30}  # boards by agents and size
MANY = {(3, 4): 200, (3, 5): 150, (4, 3): 36}  # of which the oracle takes long
each_team = pytest.mark.parametrize(("agents", "size"), keep_quick(COUNTS, {(3, 3), (3, 4), (4, 3)}))


@functools.cache
def drawn(agents: int, size: int, many: bool = False) -> Board:
    count = (MANY if many else COUNTS)[agents, size]
    if (agents, size) == (4, 4):  # at fewer holes the oracle takes seconds a board
        return random_boards(4, count, size, 4 + np.arange(count) % 3, agents)
    return mixed_boards(10 * agents + size, count, size, agents)


@functools.cache
def solved(agents: int, size: int) -> Labels:
    return solve(drawn(agents, size), makespan_plans=True)


@each_team
def test_labels_agree_with_exhaustive_search(agents, size):
    boards, labels = drawn(agents, size), solved(agents, size)
    expected = searched(boards)
    assert_same_optima(boards, optima(labels), expected)
    status = np.where(expected[:, 0] >= 0, Status.SOLVABLE, Status.UNSOLVABLE)
    assert_every(labels.status == status, boards, status=labels.status, expected=status)
    assert_every(labels.certificate != Certificate.NONE, boards)
    assert set(labels.status) == {Status.SOLVABLE, Status.UNSOLVABLE}, "the sample should hold both"
    assert labels.wait_required.any(), "the sample should hold boards on which a wait is required"


@pytest.mark.deep
@pytest.mark.parametrize(("agents", "size"), MANY)
def test_labels_of_many_boards_agree_with_exhaustive_search(agents, size):
    boards = drawn(agents, size, many=True)
    assert_same_optima(boards, optima(solve(boards)), searched(boards))


def test_a_set_for_three_agents_is_the_same_however_it_is_cut():
    config = EnvConfig.single(4, 3, hole_ratio=0.3, wait_ratio=0.5)
    whole = generate(config, 1, 24)[4]
    parts = [generate(config, 1, count, first=first)[4] for first, count in ((0, 5), (5, 19))]
    for name in ("boards", "labels"):
        pieces = zip(*(jax.tree.leaves(getattr(part, name)) for part in parts), strict=True)
        for field, piece in zip(jax.tree.leaves(getattr(whole, name)), pieces, strict=True):
            widths = [part.shape[1:] for part in piece]
            if len(set(widths)) > 1:  # plans are as long as the longest of their batch
                longest = max(width[-1] for width in widths)
                piece = [
                    np.pad(part, ((0, 0), (0, 0), (0, longest - part.shape[-1])), constant_values=PAD) for part in piece
                ]
            assert_every((np.concatenate(piece) == field).reshape(24, -1).all(axis=1), whole.boards)
    for name in ("drawn", "met", "solvable", "waiting"):
        counts = [sum(getattr(found, name) for found in batch.acceptance) for batch in (whole, *parts)]
        assert counts[0] == counts[1] + counts[2], name


@each_team
def test_every_plan_replays_at_exactly_its_optimum(agents, size):
    boards, labels = drawn(agents, size), solved(agents, size)
    for objective, moves in (("sum_of_costs", labels.moves), ("makespan", labels.makespan_moves)):
        optimum, played = getattr(labels, objective), verify(boards, moves)
        valid = (played.failure == Failure.NONE) & (getattr(played, objective) == optimum)
        assert_every(valid | ~labels.solvable, boards, moves=moves, failure=played.failure)
        assert_every((moves == PAD).all(axis=(1, 2)) | labels.solvable, boards, moves=moves)
        for board, plan, best in itertools.islice(zip(each(boards), moves, optimum, strict=True), 40):
            result = oracle.play(*as_lists(board), as_strings(plan))
            same = (result.failure, getattr(result, objective)) == ("none", best)
            assert best < 0 or same, picture(board) + f"\n{result}"


@each_team
def test_a_plan_waits_exactly_where_a_wait_is_required(agents, size):
    boards, labels = drawn(agents, size), solved(agents, size)
    last = np.take_along_axis(labels.moves, np.maximum((labels.moves != PAD).sum(axis=2) - 1, 0)[..., None], axis=2)
    assert_every((last != WAIT).all(axis=(1, 2)), boards, moves=labels.moves)
    waits = (labels.moves == WAIT).any(axis=(1, 2))
    assert_every(waits == labels.wait_required, boards, moves=labels.moves, wait_required=labels.wait_required)


SQUARE = [(0, 0), (0, 1), (1, 1)]
KNOWN = {
    "three go around a square": (["..", ".."], SQUARE, [(0, 1), (1, 1), (1, 0)], (1, 3)),
    "three in line go on": (["...."], [(0, 0), (0, 1), (0, 2)], [(0, 1), (0, 2), (0, 3)], (1, 3)),
    "three in line in another order": (["...."], [(0, 0), (0, 1), (0, 2)], [(0, 2), (0, 1), (0, 3)], (-1, -1)),
    "each pair can, all three cannot": (["..", ".."], SQUARE, [(0, 1), (0, 0), (1, 1)], (-1, -1)),
    "two neighbours swap on a ring, one apart": (
        ["...@", ".@.@", "...@", "@@@."],
        [(0, 0), (0, 1), (3, 3)],
        [(0, 1), (0, 0), (3, 3)],
        (7, 8),
    ),
}


def test_known_boards_have_their_known_optima():
    boards = batch([drawing(rows, starts, goals, size=4) for rows, starts, goals, _ in KNOWN.values()])
    labels = solve(boards)
    expected = np.array([answer for *_, answer in KNOWN.values()])
    assert_every((optima(labels)[:, :2] == expected).all(axis=1), boards, name=np.array(list(KNOWN)), expected=expected)
    assert_same_optima(boards, optima(labels), searched(boards))
    assert not labels.wait_required.any(), "on none of them does anybody wait"


def test_one_agent_needs_its_distance_and_never_waits():
    boards = mixed_boards(1, 300, 4, agents=1)
    assert_same_optima(boards, optima(solve(boards)), searched(boards))


def test_agents_may_start_at_home_or_on_the_goal_of_another():
    boards = mixed_boards(7, 128, 3, agents=3)
    ends = np.concatenate([boards.starts, boards.goals], axis=1)
    chosen = np.random.default_rng(7).random((128, 6)).argsort(axis=1)[:, :3]
    boards = boards.replace(goals=np.take_along_axis(ends, chosen[..., None], axis=1))
    assert_same_optima(boards, optima(solve(boards)), searched(boards))


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.booleans(), st.permutations(range(3)))
def test_labels_ignore_turns_mirrors_and_the_order_of_agents(seed, turns, mirror, order):
    boards = mixed_boards(seed, 64, 4, agents=3)
    image = mapped(boards, turns, mirror)
    image = image.replace(starts=image.starts[:, order], goals=image.goals[:, order])
    assert_same_optima(boards, optima(solve(image)), optima(solve(boards)))


@pytest.mark.parametrize(("agents", "size"), [(3, 4), (4, 4)])
def test_dropping_an_agent_never_raises_an_optimum(agents, size):
    boards, all_of_them = drawn(agents, size), infinite_where_unsolvable(solved(agents, size))
    for left in itertools.combinations(range(agents), agents - 1):
        fewer = boards.replace(starts=boards.starts[:, left], goals=boards.goals[:, left])
        for some, every in zip(infinite_where_unsolvable(solve(fewer)), all_of_them, strict=True):
            assert_every(some <= every, boards, all=every, without_one=some)


def test_boards_of_unequal_depth_do_not_disturb_each_other():
    boards = batch(each(drawn(3, 4))[:40])
    together = optima(solved(3, 4))[:40]
    alone = [optima(solve(jax.tree.map(lambda field: field[None], board))) for board in each(boards)]
    assert_same_optima(boards, np.concatenate(alone), together)


def nothing_found(boards, wanted=None):
    """The search, if it never found anything; what it says are bounds of nothing."""
    found = host_search.search_batch(boards, wanted, nodes=0)
    found.answers[["cost_known", "wait_known", "makespan_known"]] = False
    found.answers["solvable"] = True
    for bound in ("slack", "makespan", "others", "excess"):
        found.answers[bound] = 0
    return found


@each_team
def test_formulas_alone_find_the_same_optima(agents, size, monkeypatch):
    boards, known = drawn(agents, size), solved(agents, size)
    monkeypatch.setattr(teams, "search_batch", nothing_found)
    found = solve_with_stages(boards, makespan_plans=True)
    labels = found.labels
    assert SolverStage.SEARCH not in found.stage
    assert_same_optima(boards, optima(labels), optima(known))
    for objective, moves in (("sum_of_costs", labels.moves), ("makespan", labels.makespan_moves)):
        played = verify(boards, moves)
        valid = (played.failure == Failure.NONE) & (getattr(played, objective) == getattr(known, objective))
        assert_every(valid | ~known.solvable, boards, moves=moves, failure=played.failure)
    waits = (labels.moves == WAIT).any(axis=(1, 2))
    assert_every(waits == known.wait_required, boards, moves=labels.moves, wait_required=known.wait_required)


@pytest.mark.parametrize("nodes", [0, 3, 70])
def test_what_a_search_that_ends_early_says_is_right_and_its_bounds_serve_the_formulas(nodes, monkeypatch):
    boards, known = drawn(4, 4), solved(4, 4)
    monkeypatch.setattr(teams, "search_batch", functools.partial(host_search.search_batch, nodes=nodes))
    found = solve_with_stages(boards, makespan_plans=True)
    assert {SolverStage.FORMULAS, SolverStage.SEARCH} <= set(found.stage), "the sample should need both"
    assert_same_optima(boards, optima(found.labels), optima(known))
    assert_every((found.conflicts == 0) | (found.stage > SolverStage.SEARCH), boards, conflicts=found.conflicts)


def test_labels_and_plans_do_not_depend_on_threads_or_on_what_is_solved_with_them(monkeypatch):
    boards = mixed_boards(21, 200, 5, agents=4)
    expected = solve(boards, makespan_plans=True)
    order = np.random.default_rng(0).permutation(200)
    shuffled = jax.tree.map(lambda field: field[order], boards)
    for workers in (1, 3):
        monkeypatch.setattr(parallel, "workers", lambda count=workers: count)
        found = solve(shuffled, makespan_plans=True)
        for theirs, ours in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            assert np.array_equal(theirs, ours[order]), f"{workers} workers"


def test_a_board_whose_wait_is_not_the_wanted_one_keeps_status_cost_and_wait():
    boards, known = drawn(3, 4), solved(3, 4)
    wanted = np.arange(len(known.status)) % 2 == 0
    labels = solve_with_stages(boards, wanted=wanted).labels
    for field in ("status", "sum_of_costs", "wait_required"):
        assert_every(getattr(labels, field) == getattr(known, field), boards)
    met = known.solvable & (known.wait_required == wanted)
    assert_every((labels.makespan == known.makespan) | ~met, boards)
    assert_every((verify(boards, labels.moves).failure == Failure.NONE) | ~met, boards)


@pytest.mark.deep
def test_a_board_beyond_what_the_search_holds_is_solved_by_formulas():
    size = 17  # more free cells than it numbers
    ends = [(0, 0), (0, 4), (2, 2)], [(0, 4), (0, 0), (2, 3)]
    boards = batch([drawing(["." * size] * size, *ends)])
    found = solve_with_stages(boards, makespan_plans=True)
    smaller = solve(batch([drawing(["." * 8] * 8, *ends)]), makespan_plans=True)  # a shape that is solved below, too
    assert found.stage[0] == SolverStage.FORMULAS
    assert optima(found.labels).tolist() == optima(smaller).tolist()
    assert verify(boards, found.labels.moves).sum_of_costs[0] == found.labels.sum_of_costs[0]


@pytest.mark.deep
def test_three_agents_whose_way_is_longer_than_what_is_searched_are_decided():
    rows = ["@.@@@@@@", "........", "@@@@@@@.", "........", ".@@@@@@@", "........", "@@@@@@.@"]
    # Two at a time change places at either end; so they go through three times.
    boards = batch([drawing(rows, [(1, 2), (1, 3), (1, 4)], [(5, 5), (5, 4), (5, 3)], size=8)])
    labels = solve(boards, makespan_plans=True)
    assert optima(labels).tolist() == [[72, 173, True]]
    for moves, optimum in ((labels.moves, "sum_of_costs"), (labels.makespan_moves, "makespan")):
        assert getattr(verify(boards, moves), optimum)[0] == getattr(labels, optimum)[0], picture(each(boards)[0])


def test_an_unfinished_search_is_undecided_never_wrong(monkeypatch):
    boards, known = drawn(4, 4), solved(4, 4)
    monkeypatch.setattr(teams, "search_batch", nothing_found)
    monkeypatch.setattr(hard_boards, "JOINT_MOVES", 0)
    labels = solve(boards, makespan_plans=True, budget=1)
    undecided = labels.status == Status.UNDECIDED
    assert undecided.any(), "one conflict should be too few for some boards"
    assert_every((labels.certificate == Certificate.NONE) == undecided, boards, certificate=labels.certificate)
    assert_every((optima(labels) == [-1, -1, 0]).all(axis=1) | ~undecided, boards, labels=optima(labels))
    planless = (labels.moves == PAD).all(axis=(1, 2)) & (labels.makespan_moves == PAD).all(axis=(1, 2))
    assert_every(planless | ~undecided, boards, moves=labels.moves)
    assert_every((labels.status == known.status) | undecided, boards, status=labels.status)
    assert_every((optima(labels) == optima(known)).all(axis=1) | undecided, boards, labels=optima(labels))


RESTART = 64  # conflicts: the solver looks at its budget when it restarts, some fifty conflicts later


def test_all_formulas_of_a_board_share_one_budget(monkeypatch):
    monkeypatch.setattr(teams, "search_batch", nothing_found)
    monkeypatch.setattr(hard_boards, "JOINT_MOVES", 0)
    boards, budget = drawn(4, 4), 200
    found = solve_with_stages(boards, makespan_plans=True, budget=budget)
    assert found.conflicts.max() >= budget, "the budget should be too small for some boards"
    assert_every(found.conflicts <= budget + RESTART, boards, conflicts=found.conflicts)


def test_four_agents_that_block_each_other_have_no_plan_although_any_three_have():
    arms = [(0, 1), (1, 2), (2, 1), (1, 0)]  # any three of them can go around; all four leave no room
    boards = batch([drawing(["@.@@", "...@", "@.@@"], arms, arms[1:] + arms[:1], size=4)])
    assert (searched(boards)[:, :2] == -1).all()
    labels = solve(boards, makespan_plans=True)
    assert labels.status[0] == Status.UNSOLVABLE, "there is no plan" + picture(each(boards)[0])
    assert (optima(labels)[0] == [-1, -1, 0]).all()
    for left in itertools.combinations(range(4), 3):
        fewer = solve(boards.replace(starts=boards.starts[:, left], goals=boards.goals[:, left]))
        assert fewer.solvable.all(), f"agents {left} alone have a plan"


def test_too_many_agents_are_refused():
    with refused("agents", "9:", 8):
        solve(mixed_boards(0, 1, 6, agents=9))


def test_boards_beyond_memory_are_refused_with_the_estimate():
    with refused("2000x2000", "5 agents", "GiB"):
        check_memory(2000, 5)
