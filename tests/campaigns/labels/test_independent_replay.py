"""The campaign's own replay of plans agrees with the simulator, of which it uses nothing."""

import ast
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.lake import verify
from lakewright.core_jax.solver import solve
from lakewright.core_jax.types import JUMP, PAD, WAIT, Failure
from tests.campaigns.labels import campaign as label_campaign
from tests.campaigns.labels import independent_replay
from tests.campaigns.labels.campaign import Kind, _replay_labels, fresh_boards
from tests.campaigns.labels.independent_replay import replay_plans

BOARDS = 512


def drawn(seed: int, agents: int = 2, size: int = 4):
    random = np.random.default_rng(seed)
    boards = fresh_boards(random, Kind(agents, size, 0.2), BOARDS)
    return random, boards, solve(boards, makespan_plans=True)


@pytest.mark.deep
@given(seed=st.integers(0, 1000), agents=st.sampled_from([2, 3]), changes=st.integers(0, 3))
def test_it_agrees_with_the_simulator_on_optimal_plans_spoilt_plans_and_any_moves(seed, agents, changes):
    random, boards, labels = drawn(seed, agents)
    moves = np.array(labels.moves)
    for _ in range(changes):  # at random places, padding among them
        places = [random.integers(0, length, BOARDS) for length in moves.shape[1:]]
        moves[np.arange(BOARDS), *places] = random.choice([*range(PAD, JUMP + 1), -128, -2, 127], BOARDS)
    theirs, ours = verify(boards, moves), replay_plans(boards.holes, boards.starts, boards.goals, moves)
    valid = np.asarray(theirs.failure) == Failure.NONE
    differs = np.flatnonzero(ours.valid != valid)[:1]
    assert not len(differs), [part[differs] for part in (boards.holes, boards.starts, boards.goals, moves)]
    assert (ours.makespan == theirs.makespan)[valid].all()
    assert (ours.sum_of_costs == theirs.sum_of_costs)[valid].all()
    if not changes:
        assert (ours.waits == (moves == WAIT).any(axis=(1, 2)))[valid].all()


def credulous(labels):
    """A simulator that believes every plan and every label."""
    believed = SimpleNamespace(
        failure=np.zeros(BOARDS, int), sum_of_costs=labels.sum_of_costs, makespan=labels.makespan
    )
    return lambda boards, moves: believed


@pytest.mark.parametrize("believes", [False, True])
def test_a_plan_or_a_label_that_is_spoilt_is_found(monkeypatch, believes):
    """Also where the simulator finds nothing, as the other replay must find it alone."""

    def held(labels):
        if believes:
            monkeypatch.setattr(label_campaign, "verify", credulous(labels))
        return _replay_labels(boards, labels)[good]

    _, boards, labels = drawn(0)
    good = np.flatnonzero(np.asarray(labels.solvable) & (np.asarray(labels.sum_of_costs) > 0))
    assert held(labels).all()
    for name in ("moves", "makespan_moves"):
        assert not held(labels.replace(**{name: np.full_like(getattr(labels, name), PAD)})).any(), name
    moves = np.array(labels.moves)
    moves[good, :, 0] = (moves[good, :, 0] + 1) % 4
    assert not held(labels.replace(moves=moves)).all()
    for name in ("sum_of_costs", "makespan"):
        spoilt = labels.replace(**{name: np.asarray(getattr(labels, name)) + 1})
        assert not held(spoilt).any(), name
    assert not held(labels.replace(wait_required=~np.asarray(labels.wait_required))).any()


def test_it_uses_nothing_of_the_simulator():
    tree = ast.parse(Path(independent_replay.__file__).read_text())
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert sorted(imports) == ["from typing import NamedTuple", "import numpy as np"]
