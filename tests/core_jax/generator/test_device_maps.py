"""Maps on accelerators, on a CPU: the boards and labels of `generate` are those of the host's way."""

import jax
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import attempts, device_maps, generate
from tests.support.boards.sample_boards import assert_every


@pytest.mark.parametrize("size", [5, *(pytest.param(size, marks=pytest.mark.deep) for size in (3, 4, 8))])
def test_boards_and_labels_are_those_of_the_hosts_way(monkeypatch, size):
    config = EnvConfig.single(size, 2, hole_ratio=0.3, wait_ratio=0.5)
    expected = generate(config, 5, 100)[size]
    monkeypatch.setattr(attempts, "on_gpu", lambda: True)
    monkeypatch.setattr(device_maps, "BLOCKS", (64,))
    found = generate(config, 5, 100)[size]
    assert found.acceptance == expected.acceptance
    same = jax.tree.map(
        lambda one, other: (one == other).reshape(len(one), -1).all(axis=1), found.boards, expected.boards
    )
    assert_every(np.stack(jax.tree.leaves(same)).all(axis=0), expected.boards)
    for name in ("status", "certificate", "makespan", "sum_of_costs", "wait_required"):
        one, other = getattr(found.labels, name), getattr(expected.labels, name)
        assert_every(one == other, expected.boards, found=one, expected=other)
    steps = min(found.labels.moves.shape[2], expected.labels.moves.shape[2])
    one, other = (labels.moves[..., :steps] for labels in (found.labels, expected.labels))
    assert_every((one == other).all(axis=(1, 2)), expected.boards)
