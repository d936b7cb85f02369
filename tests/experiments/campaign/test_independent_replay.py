"""The campaign's own replay of plans agrees with the simulator, of which it uses nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core_jax.lake import verify
from core_jax.solver import solve
from core_jax.types import PAD, WAIT, Failure
from experiments.campaign.independent_replay import replayed
from experiments.campaign.label_campaign import Kind, _replays, fresh_boards

BOARDS = 512


def drawn(seed: int, agents: int = 2, size: int = 4):
    random = np.random.default_rng(seed)
    boards = fresh_boards(random, Kind(agents, size, 0.2), BOARDS)
    return random, boards, solve(boards, makespan_plans=True)


@given(seed=st.integers(0, 1000), agents=st.sampled_from([2, 3]), changes=st.integers(0, 3))
def test_it_agrees_with_the_simulator_on_optimal_plans_spoilt_plans_and_any_moves(seed, agents, changes):
    random, boards, labels = drawn(seed, agents)
    moves = np.array(labels.moves)
    for _ in range(changes):  # at random places, padding among them
        places = [random.integers(0, length, BOARDS) for length in moves.shape[1:]]
        moves[np.arange(BOARDS), *places] = random.integers(PAD, 6, BOARDS)
    ended = np.cumsum(moves == PAD, axis=2) > 0
    moves[ended] = PAD  # nothing moves after the last move
    theirs, ours = verify(boards, moves), replayed(boards.holes, boards.starts, boards.goals, moves)
    valid = np.asarray(theirs.failure) == Failure.NONE
    differs = np.flatnonzero(ours.valid != valid)[:1]
    assert not len(differs), [part[differs] for part in (boards.holes, boards.starts, boards.goals, moves)]
    assert (ours.makespan == theirs.makespan)[valid].all()
    assert (ours.sum_of_costs == theirs.sum_of_costs)[valid].all()
    if not changes:
        assert (ours.waits == (moves == WAIT).any(axis=(1, 2)))[valid].all()


def test_a_plan_or_a_label_that_is_spoilt_is_found():
    _, boards, labels = drawn(0)
    good = np.flatnonzero(np.asarray(labels.solvable) & (np.asarray(labels.sum_of_costs) > 0))
    assert _replays(boards, labels)[good].all()
    moves = np.array(labels.moves)
    moves[good, :, 0] = (moves[good, :, 0] + 1) % 4
    assert not _replays(boards, labels.replace(moves=moves))[good].all()
    for name in ("sum_of_costs", "makespan"):
        spoilt = labels.replace(**{name: np.asarray(getattr(labels, name)) + 1})
        assert not _replays(boards, spoilt)[good].any(), name
    assert not _replays(boards, labels.replace(wait_required=~np.asarray(labels.wait_required)))[good].any()
