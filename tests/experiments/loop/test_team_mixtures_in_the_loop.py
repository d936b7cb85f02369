"""The closed loop with teams of several sizes: every board drawn has them in turn, every count has them all."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig, holes_of
from lakewright.core_jax.rows import board_key, read_all
from lakewright.core_jax.support import convert
from lakewright.engineer.evidence import evidence_text
from lakewright.engineer.samplers import SamplerSettings
from lakewright.engineer.trial import try_designs
from lakewright.experiments.environments.lake import config_of, design_of, lake_space, outcomes_of, row_of
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts
from lakewright.experiments.loop.redesign.run_engineer import start_trial
from lakewright.experiments.loop.settings.run_settings import RunSettings, load_settings
from lakewright.experiments.loop.training import lake_trainee
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.viewer.site import write_report
from lakewright.policy.training import GrpoSettings
from tests.support.boards.generated_rows import ROOMY
from tests.support.models.tiny_policy import SHORT, boards_as_settings, tiny_run
from tests.support.refusals import refused
from tests.support.samples.tiny_runs import decision, finished, run_loop

pytestmark = pytest.mark.deep  # whole runs

TEAMS = (2, 3)
ENV = EnvConfig({3: SizeConfig(0.5, 0.1, 0.5), 5: SizeConfig(0.5, 0.25, 0.5)})  # see ROOMY


def of_teams(env: EnvConfig = ENV, **changes: Any) -> RunSettings:
    """A tiny run on boards for teams of two and of three."""
    validation = msgspec.structs.replace(SHORT["validation"], hole_ratios=(0.1,))
    return tiny_run(env, teams=TEAMS, validation=validation, **changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    """The finished run of a checkpoint that is its own engineer, on teams of two and of three."""
    folder = RunFolder(tmp_path_factory.mktemp("teams") / "run")
    run_loop(of_teams(teacher="self"), folder)
    return folder


def test_the_boards_of_every_stage_are_for_the_teams_in_turn(run):
    for number in (0, 1):
        rows, config = read_all(run.stage(number).boards), config_of(run.stage(number).design())
        assert [row.agents for row in rows] == [2, 3] * 2
        for row in rows:
            holes = sum(line.count("H") for line in row.grid)
            assert holes == holes_of(row.size, row.agents, config.sizes[row.size].hole_ratio), row.id
            assert len(row.plan or ()) == row.agents, row.id


def test_validation_counts_every_team(run):
    held_out = read_all(run.validation)
    assert Counter((row.size, row.agents) for row in held_out) == dict.fromkeys([(3, 2), (5, 2), (3, 3), (5, 3)], 4)
    for stage in (run.warmup, run.stage(0), run.stage(1)):
        validation = read_record(stage.validation, Validation)
        assert {size: outcomes_of(found).boards for size, found in validation.outcomes.items()} == {3: 8, 5: 8}
        assert len(validation.valid) == len(held_out)
        assert all(len(example.plan) == example.row.agents for example in validation.examples)


def test_evidence_pools_the_teams_of_a_size_and_an_engineer_is_shown_them(run):
    evidence = run.stage(1).read_evidence()
    assert evidence.given == {"agents": TEAMS}
    assert evidence.outcomes.keys() == {3, 5}
    assert "5x5, 2 or 3 agents: data_ratio" in evidence_text(evidence, lake_space())
    assert "2 or 3 agents" not in evidence_text(finished("self").stage(1).read_evidence(), lake_space())
    assert decision(run, 0).teacher == "self"


def test_the_report_names_the_teams(run):
    write_report(run)
    assert "2 or 3 agents on 3x3, 5x5 boards" in run.report.read_text()


def test_a_trial_rolls_out_every_team(run):
    work, design = start_trial(make_trainee(of_teams()), run.stage(0), "trial"), design_of(ENV)
    trial = try_designs(work, [design])
    assert all(found.strata.keys() == {3, 5} for found in trial.candidates)
    assert {tried.cell for tried in trial.cells} == work.environment.mix(design).keys()
    assert {tried.cell.given for tried in trial.cells} == {(2,), (3,)}
    assert sum(work.environment.mix(design).values()) == pytest.approx(1)


@pytest.mark.deep
def test_boards_drawn_while_training_are_for_the_teams_in_turn(tmp_path):
    folder = RunFolder(tmp_path / "run")
    warmup = msgspec.structs.replace(SHORT["warmup"], fresh=True, hole_ratios=(0.2,))
    grpo = GrpoSettings(steps=2, prompts=4, group=2, fresh=True)
    run_loop(of_teams(ROOMY, teacher="fixed", stages=1, warmup=warmup, grpo=grpo), folder)
    drawn = read_all(folder.stage(0).boards)
    assert [row.agents for row in drawn] == [2, 3] * 4
    assert {row.hole_ratio for row in drawn} <= {cell.hole_ratio for cell in ROOMY.sizes.values()}, "as was asked for"
    played = [(problem.key, group.key) for problem, group in read_rollouts(folder.stage(0))]
    assert played == [(board_key(row), board_key(row)) for row in drawn]


def test_samplers_choose_among_boards_of_every_team(tmp_path):
    folder = RunFolder(tmp_path / "run")
    sampler = SamplerSettings("sfl", {"pool": 1.0, "mix": 0.5}, plans=2)
    run_loop(of_teams(ROOMY, teacher="fixed", stages=1, sampler=sampler), folder)
    assert {row.agents for row in read_all(folder.stage(0).boards)} == {2, 3}


def test_held_out_cells_that_cannot_be_drawn_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(lake_trainee, "can_draw_all", lambda cell: (*cell.sizes, cell.agents) != (3, 3))
    rows = map(row_of, make_trainee(of_teams()).hold_out(RunFolder(tmp_path)))
    assert {(row.size, row.agents) for row in rows} == {(3, 2), (5, 2), (5, 3)}


def test_a_team_without_a_held_out_board_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(lake_trainee, "can_draw_all", lambda cell: cell.agents != 3)
    with refused("validation:", 3):
        make_trainee(of_teams()).hold_out(RunFolder(tmp_path))


ROWS = {"3": {"data_ratio": 1.0, "hole_ratio": 0.2, "wait_ratio": 0.5}}
REFUSED = {
    "a team that fits no size": (
        {"teams": [2, 5], "design": ROWS, "warmup_design": ROWS},
        ["5 agents"],
    ),
    "a team named twice": ({"teams": [2, 3, 2]}, ["teams", "[2, 3, 2]"]),
    "agents that are no team": ({"teams": [3, 4]}, ["agents", "2", "teams [3, 4]"]),
    "one agent": ({"teams": [1, 2]}, ["teams"]),
    "a floor of nothing": ({"teams": [2, 5], "guard": {"floor": 0.0}}, ["guard.floor", "0", "5 agents"]),
    "a sampler of one team": (
        {"sampler": {"name": "domain_randomisation"}},
        ["sampler.name", "domain_randomisation", "drop teams"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_teams_that_cannot_be_had_are_refused_in_one_line(name):
    changes, problem = REFUSED[name]
    raw = {"teams": [2, 3], **boards_as_settings(ENV), **changes}
    with refused(*problem):
        convert(raw, RunSettings, "settings")


def test_teams_are_an_override():
    assert load_settings("cpu", ["teams=[2, 3]"]).teams == TEAMS
    assert load_settings("cpu", []).teams == ()
