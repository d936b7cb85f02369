"""The closed loop with samplers: they choose the boards, and their rollouts are charged."""

import msgspec
import pytest

from lakewright.core_jax.rows import read_all
from lakewright.engineer.samplers import SamplerSettings
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import SampledRecord, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts
from lakewright.experiments.loop.records.token_budget import count_run_tokens
from lakewright.experiments.loop.training import stage_training
from lakewright.policy.training import GrpoSettings
from tests.support.models.tiny_policy import tiny_run
from tests.support.samples.tiny_runs import run_loop

SHORT = {"teacher": "fixed", "grpo": GrpoSettings(steps=2, prompts=4, group=2)}


def test_learnable_boards_are_chosen_by_rollouts_that_are_charged(tmp_path):
    run, sampler = RunFolder(tmp_path / "run"), SamplerSettings("sfl", {"pool": 1.5}, plans=2)
    run_loop(tiny_run(stages=1, sampler=sampler, **SHORT), run)
    sampled = read_record(run.stage(0).sampled, SampledRecord)
    assert sampled.sampler == "sfl"
    assert {name: sampled.figures[name] for name in ("fresh", "scored", "replayed")} == {
        "fresh": 16,
        "scored": 12,
        "replayed": 0,
    }
    assert 12 * 2 <= sampled.figures["tokens"] <= 12 * 2 * 17, "an answer has at most 2 agents x 8 steps and an end"
    assert count_run_tokens(run, 1).sampling == sampled.figures["tokens"]
    assert count_run_tokens(run, 1).total == sum(msgspec.structs.astuple(count_run_tokens(run, 1)))
    assert len(read_all(run.stage(0).boards)) == 8


@pytest.mark.deep
def test_scoring_takes_no_more_than_half_of_the_budget_that_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(stage_training, "SCORED", 3)
    run, sampler = RunFolder(tmp_path / "run"), SamplerSettings("dapo", plans=2)
    run_loop(tiny_run(stages=1, budget=200, sampler=sampler, **SHORT), run)
    figures = read_record(run.stage(0).sampled, SampledRecord).figures
    assert 0 < figures["scored"] < 8
    assert 100 <= figures["tokens"] <= 100 + 3 * 2 * 17, "half of it, and at most one scoring of three boards more"
    assert len(read_all(run.stage(0).boards)) == 8, "boards that nobody looked at fill up"
    assert count_run_tokens(run, 1).training > 0


def test_boards_are_replayed_in_the_next_stage(tmp_path):
    run = RunFolder(tmp_path / "run")
    run_loop(tiny_run(sampler=SamplerSettings("plr"), **SHORT), run)
    first, second = (read_all(run.stage(number).boards) for number in (0, 1))
    sampled = read_record(run.stage(1).sampled, SampledRecord)
    assert sampled.figures["replayed"] == 4
    grids = [row.grid for row in first]
    assert sum(row.grid in grids for row in second) >= 4
    scores = {group.key: group.learnability for _, group in read_rollouts(run.stage(0))}
    assert sorted(level["score"] for level in sampled.state["levels"]) == sorted(scores.values())
    assert sampled.statistics.keys() <= {3, 5}


@pytest.mark.deep
@pytest.mark.parametrize("name", ["signal", "redraw"])
def test_samplers_that_keep_the_shares_keep_them_in_the_loop(tmp_path, name):
    runs = [RunFolder(tmp_path / kind) for kind in ("fresh", name)]
    for run, kind in zip(runs, ("fresh", name), strict=True):
        run_loop(tiny_run(stages=1, sampler=SamplerSettings(kind), **SHORT), run)
    plain, drawn = (read_all(run.stage(0).boards) for run in runs)
    assert [row.size for row in drawn] == [row.size for row in plain]
    sampled = read_record(runs[1].stage(0).sampled, SampledRecord)
    assert sampled.figures["fresh"] >= 8
    assert (sampled.figures["scored"] > 0) == (name == "redraw")
