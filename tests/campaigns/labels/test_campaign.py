"""A campaign tries as many boards as asked for, and shows those on which labels differ."""

import sys

import pytest

from lakewright.core_jax.errors import InputError
from tests.campaigns.__main__ import main
from tests.campaigns.labels import campaign
from tests.campaigns.labels.campaign import Batches

SMALL = Batches((3,), of_teams=8, of_two=8)


def test_a_campaign_compares_labels_and_replays_plans(monkeypatch):
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    batches = Batches((3, 4), of_two=64)
    found = campaign.check_labels(80, batches=batches)
    assert sum(total.boards for total in found) == 80
    assert {total.agents > 2 for total in found} == {False, True}, "boards for two agents, and for teams"
    assert sum(total.wrong for total in found) == 0, campaign.format_totals(found)
    assert all(sum(total.decided.values()) == total.boards for total in found)
    alone = [total.milliseconds_alone for total in found]
    assert all(times.timed and 0 < times.p50 <= times.p99 <= times.max for times in alone), "some boards are timed"
    monkeypatch.setattr(campaign, "w9_joint_astar", lambda board: 99)
    lines = campaign.format_totals(campaign.check_labels(20, batches=batches)).splitlines()
    assert any("PlainBoard" in line for line in lines), "boards on which labels differ are shown"


def test_where_one_solver_takes_too_long_another_is_asked(monkeypatch):
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    monkeypatch.setattr(campaign, "w9_joint_astar", lambda board: None)
    monkeypatch.setattr(campaign, "w9_cbs", lambda board: 99)
    assert [(total.wrong, total.uncompared) for total in campaign.check_labels(8, agents=2, batches=SMALL)] == [(8, 0)]
    monkeypatch.setattr(campaign, "w9_cbs", lambda board: None)
    assert [(total.wrong, total.uncompared) for total in campaign.check_labels(8, agents=2, batches=SMALL)] == [(0, 8)]


def test_a_campaign_that_was_killed_resumes_after_its_last_batch(tmp_path):
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    journal, tried = tmp_path / "campaign.jsonl", []
    campaign.check_labels(8, 5, journal, batches=SMALL)
    whole = campaign.check_labels(16, 5, journal, tried.append, batches=SMALL)
    assert tried == [8, 8], "the first batch is read, the second tried"
    assert len(journal.read_bytes().splitlines()) == 2
    assert [_counts(total) for total in whole] == [
        _counts(total) for total in campaign.check_labels(16, 5, batches=SMALL)
    ]
    with pytest.raises(InputError, match="seed 5"):
        campaign.check_labels(16, 6, journal)
    with pytest.raises(InputError, match="not 5; choose another file"):
        campaign.check_labels(16, 5, journal, agents=5)


def test_a_campaign_of_one_number_of_agents_has_only_such_boards():
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    assert {total.agents for total in campaign.check_labels(16, 5, agents=3, batches=SMALL)} == {3}


def test_a_campaign_without_its_peer_says_what_to_install_and_a_wrong_seed_is_refused(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "w9_pathfinding", None)
    assert main(["labels", "4"]) == 2
    assert "pip install 'lakewright[bench]'" in capsys.readouterr().err
    assert main(["labels", "4", "--seed", "-1"]) == 2
    assert "--seed is -1" in capsys.readouterr().err


def _counts(total: campaign.Total) -> tuple:
    return total.agents, total.hole_ratio, total.boards, total.undecided, total.wrong, total.decided
