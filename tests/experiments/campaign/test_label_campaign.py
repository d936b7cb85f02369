"""A campaign tries as many boards as asked for, and shows those on which labels differ."""

import pytest

from experiments.campaign import label_campaign as campaign


def test_a_campaign_compares_labels_and_replays_plans(monkeypatch):
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    monkeypatch.setattr(campaign, "SIZES", (3, 4))
    found = campaign.measure(40)
    assert sum(tried.boards for tried in found) == sum(len(tried.seconds) for tried in found) == 40
    assert sum(tried.wrong for tried in found) == 0, campaign.table(found)
    assert all(sum(tried.decided.values()) == tried.boards for tried in found)
    monkeypatch.setattr(campaign, "w9_joint_astar", lambda board: 99)
    lines = campaign.table(campaign.measure(20)).splitlines()
    assert any("PlainBoard" in line for line in lines), "boards on which labels differ are shown"
