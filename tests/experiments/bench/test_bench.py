"""The benchmark measures what it says: our solver and its peers on the same boards."""

import msgspec
import numpy as np
import pytest

from lakewright.core_jax.config import holes_of
from lakewright.core_jax.support import REST
from lakewright.experiments.bench import (
    architectures,
    lake,
    language,
    sampling,
    simulator,
    table,
    timing,
    updates,
    warmups,
)
from lakewright.experiments.bench.comparison import bandwidth, peers
from lakewright.experiments.bench.measurement import Bench
from lakewright.experiments.cli import main
from lakewright.experiments.loop.settings import load_settings
from lakewright.policy.models import ModelSettings
from lakewright.policy.networks import BoardNetworkSettings
from tests.support.models.small_language_model import language_checkpoint

TINY_MODEL = ModelSettings(hidden=16, layers=1, heads=2, mlp=16)
BOARD_MODEL = ModelSettings(architecture="board", board=BoardNetworkSettings(4, 1, 8, 1))
APART = peers.PlainBoard([[False, True, False]] * 3, [(0, 0), (1, 0)], [(0, 2), (2, 0)])
CROSSING = peers.PlainBoard([[False] * 3] * 3, [(1, 0), (0, 1)], [(1, 2), (2, 1)])
CROSSING_COSTS = 5  # one of the two agents waits for the other

each_peer = pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.name)


def measured(**settings) -> Bench:
    """The whole benchmark, with hardly any boards."""
    few = {"CASES": ((3, 2),), "BOARDS": {2: 64}, "DRAWN": {2: 32}, "PEER_SECONDS": 0.02, **settings}
    few_steps = {"PLANS": 128, "ENVIRONMENTS": 16, "STEPS": 4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bandwidth, "MEMORY_BYTES", 1 << 18)
        patch.setattr(timing, "REPEATS", 2)
        for module, values in ((lake, few), (simulator, few_steps)):
            for name, value in values.items():
                patch.setattr(module, name, value)
        return lake.measure()


@pytest.fixture(scope="module")
def found() -> Bench:
    return measured()


def test_every_kind_of_work_has_a_rate_and_every_peer_a_row(found):
    ours = [row for row in found.measurements if row.solver == "lakewright"]
    assert {row.work.split(",")[0] for row in ours} == {"generate", "solve", "floods alone", "verify", "environment"}
    assert all(row.rate > 0 for row in ours)
    assert {row.solver for row in found.measurements} == {"lakewright", *(peer.name for peer in peers.PEERS)}


def test_a_flood_is_compared_with_what_copies_would_allow(found):
    assert set(found.copies) == {"memory", "cache"}
    assert found.flood_limits[0].at_cache > found.flood_limits[0].reached > 0


def test_a_solved_case_says_where_its_time_goes(found):
    (profile,) = found.profiles
    floods = {"floods of sums of costs", "floods of makespans", "plans"}
    assert set(profile.seconds) == {"distances", "certificates", *floods, REST}
    assert all(seconds > 0 for seconds in profile.seconds.values())
    shares = [float(profile.share(phase).rstrip("%")) for phase in profile.seconds]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_a_solved_case_says_how_its_boards_were_decided(found):
    solved = next(row for row in found.measurements if row.work == "solve")
    assert solved.undecided == 0
    assert sum(solved.certificates.values()) == sum(solved.stages.values()) == 64
    assert set(solved.stages) == {"certificate", "flood"}


def test_peers_that_are_here_agree_with_our_labels_and_others_say_how_to_get_them(found):
    rows = [row for row in found.measurements if row.solver != "lakewright"]
    for row, peer in zip(rows, peers.PEERS, strict=True):
        if peers.version(peer):
            assert (row.differing, row.note) == (0, ""), row
            assert row.rate > 0, row
            assert row.given == ("all" if peer.decides else "solvable"), row
        else:
            assert (row.rate, row.note) == (None, "not installed: pip install lakewright[bench]"), row


def test_without_peers_their_rows_say_so_and_nothing_is_compared():
    rows = measured(version=lambda peer: None).measurements
    assert [row.note for row in rows].count("not installed: pip install lakewright[bench]") == len(peers.PEERS)
    assert all(row.times_fastest_peer is None for row in rows)


def test_the_benchmark_is_read_by_programs_and_by_people(found, capsys, monkeypatch):
    monkeypatch.setattr("lakewright.experiments.bench.measure", lambda agents, on_progress: found)
    assert main(["bench", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Bench) == found
    assert main(["bench"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [len([line for line in lines if line.startswith(f"| {work} ")]) for work in ("solve", "verify", "plans")]
    assert rows == [4, 1, 1]


def test_completions_per_second_are_measured_against_transformers(capsys, monkeypatch):
    few = {"WARMUP_STEPS": 1, "PROMPTS": 4, "LONGEST": 6}
    teams = {"TEAM_PROMPTS": 4, "TEAM_SIZE": 6, "TEAM": 2, "TEAM_HORIZON": 8}
    for name, value in (few | teams).items():
        monkeypatch.setattr(sampling, name, value)
    monkeypatch.setattr(timing, "REPEATS", 2)
    assert main(["bench", "--sampling"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| sample")]
    assert [" completions " in row for row in rows] == [True] * 6, rows
    assert sum("`pretrained`" in row for row in rows) == 2, rows
    assert [row for row in rows if "transformers' generate" in row], rows


def test_warm_ups_are_measured_against_the_trainer_of_trl(capsys, monkeypatch):
    for name, value in {"SECONDS": 0.2, "TRIAL_STEPS": 1, "HELD_OUT": 4, "RATES": (1e-3,)}.items():
        monkeypatch.setattr(warmups, name, value)
    few = load_settings("cpu", ["warmup.boards=64", "warmup.batch=4"])
    monkeypatch.setattr(warmups, "load_settings", lambda preset, overrides: few)
    assert main(["bench", "--warmups", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=list[warmups.Trained])
    assert [row.trainer for row in found] == ["ours", "SFTTrainer, AdamW at 0.001"]
    assert all(row.steps >= 1 and row.seconds > 0 and 0 <= row.valid <= 1 for row in found), found


def test_architectures_are_measured_in_the_same_processor_time(capsys, monkeypatch):
    tiny = {"qwen3": TINY_MODEL, "board": BOARD_MODEL}
    one_size = load_settings("cpu-30", ["env.sizes={4={data_ratio=1.0,hole_ratio=0.2,wait_ratio=0.5}}"])
    settings = {"SECONDS": 0.3, "BOARDS": 64, "HELD_OUT": 8, "NETWORKS": tiny, "load_settings": lambda *_: one_size}
    for name, value in settings.items():
        monkeypatch.setattr(architectures, name, value)
    assert main(["bench", "--architectures", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=list[architectures.Learned])
    assert [row.network for row in found] == list(tiny)
    for row in found:
        assert row.steps >= 1
        assert row.seconds > 0.3, row
        assert row.valid.keys() == {2, 3}
        assert all(0 <= share <= 1 for share in row.valid.values()), row


@pytest.mark.deep
def test_steps_of_grpo_are_measured_with_prompts_read_once_and_for_every_answer(capsys, monkeypatch):
    monkeypatch.setattr(updates, "STEPS", 3)
    few = load_settings("cpu", ["grpo.prompts=4", "grpo.group=2", "warmup.batch=4", "horizon=8"])
    for module in (sampling, updates):
        monkeypatch.setattr(module, "load_settings", lambda preset, overrides: few)
    monkeypatch.setattr(sampling, "WARMUP_STEPS", 1)
    assert main(["bench", "--updates"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "| 4 x 2 " in line]
    assert ["read once" in row for row in rows] == [False, True, False, True], rows


@pytest.mark.deep
def test_the_cases_of_a_language_model_are_measured_one_by_one(monkeypatch):
    monkeypatch.setattr(language, "REPEATS", 1)
    few = load_settings("smollm2", ["grpo.prompts=2", "text.prompt=full"])
    monkeypatch.setattr(language, "load_settings", lambda preset, overrides: few)
    found = [language._measured(str(language_checkpoint()), case) for case in range(len(language.CASES))]
    assert all(rate.tokens > 0 and rate.seconds > 0 and rate.peak > 1e8 for rate in found), found
    lines = language.table(found).splitlines()
    assert len(lines) == 2 + len(language.CASES)


def test_a_table_without_floods_and_phases_ends_with_the_measurements(found):
    lines = table(msgspec.structs.replace(found, flood_limits=[], profiles=[])).splitlines()
    assert lines[-1].startswith("| ")
    assert sum(line.startswith("|-") for line in lines) == 1, "an empty table is shown"
    assert sum(line.startswith("|-") for line in table(found).splitlines()) == 3


def test_the_same_random_boards_come_each_time_with_the_holes_asked_for():
    boards, again = (lake.random_boards(5, 3, 40) for _ in range(2))
    assert np.array_equal(boards.starts, again.starts)
    assert (boards.holes.sum(axis=(1, 2)) == holes_of(5, 3, lake.HOLE_RATIO)).all()
    ends = np.concatenate([boards.starts, boards.goals], axis=1)
    assert all(len({tuple(cell) for cell in board}) == 6 for board in ends.tolist())
    assert not boards.holes[np.arange(40)[:, None], ends[..., 0], ends[..., 1]].any()


def test_a_flood_of_one_layer_moves_its_states_six_times():
    assert bandwidth.flood_bytes(3, 1) == 6 * 12 * 12 * 4 / 32
    assert bandwidth.flood_layers(np.array([-1] * 31 + [4] + [2] * 31 + [8] + [99])) == 6


@each_peer
def test_a_peer_finds_the_known_sum_of_costs(peer):
    pytest.importorskip(peer.package.replace("-", "_"), reason="peers are installed by the extra `bench`")
    assert peer.solve(CROSSING) == CROSSING_COSTS


def test_joint_astar_proves_a_board_unsolvable():
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    assert peers.w9_joint_astar(APART) == peers.UNSOLVABLE
