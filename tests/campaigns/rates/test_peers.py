"""Other people's solvers are measured on our boards, and agree with our labels."""

import pytest

from lakewright.experiments.bench import lake, measurement
from lakewright.experiments.bench.measurement import Bench
from tests.campaigns.rates import peer_rates, peers

APART = peers.PlainBoard([[False, True, False]] * 3, [(0, 0), (1, 0)], [(0, 2), (2, 0)])
CROSSING = peers.PlainBoard([[False] * 3] * 3, [(1, 0), (0, 1)], [(1, 2), (2, 1)])
CROSSING_COSTS = 5  # one of the two agents waits for the other

each_peer = pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.name)


def measured(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Every solver, on hardly any boards."""
    monkeypatch.setattr(measurement, "REPEATS", 2)
    monkeypatch.setattr(lake, "BOARDS", {2: 64})
    monkeypatch.setattr(lake, "CASES", ((3, 2), (3, 3)))
    monkeypatch.setattr(peer_rates, "PEER_SECONDS", 0.02)
    return peer_rates.measure_rates(only=2)


def test_peers_that_are_here_agree_with_our_labels_and_others_say_how_to_get_them(monkeypatch):
    found = measured(monkeypatch)
    assert {row.agents for row in found.measurements} == {2}
    rows = [row for row in found.measurements if row.solver != "lakewright"]
    for row, peer in zip(rows, peers.PEERS, strict=True):
        if peers.find_version(peer):
            assert (row.differing, row.note) == (0, ""), row
            assert row.rate > 0, row
            assert row.given == ("all" if peer.decides else "solvable"), row
        else:
            assert (row.rate, row.note) == (None, "not installed: pip install lakewright[bench]"), row


def test_without_peers_their_rows_say_so_and_nothing_is_compared(monkeypatch):
    monkeypatch.setattr(peer_rates, "find_version", lambda peer: None)
    rows = measured(monkeypatch).measurements
    assert [row.note for row in rows].count("not installed: pip install lakewright[bench]") == len(peers.PEERS)
    assert all(row.times_fastest_peer is None for row in rows)


@each_peer
def test_a_peer_finds_the_known_sum_of_costs(peer):
    pytest.importorskip(peer.package.replace("-", "_"), reason="peers are installed by the extra `bench`")
    assert peer.solve(CROSSING) == CROSSING_COSTS


def test_joint_astar_proves_a_board_unsolvable():
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    assert peers.w9_joint_astar(APART) == peers.UNSOLVABLE
