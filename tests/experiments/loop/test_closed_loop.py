"""The closed loop in miniature: what it leaves, what it draws from, and what it never touches again."""

import jax
import msgspec
import pytest

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.rows import Row, read_all
from lakewright.engineer.evidence import Modules, evidence_tokens, read_tokens, show_evidence
from lakewright.engineer.trial import Trial
from lakewright.experiments.environments.lake import config_of, design_of, lake_space, outcomes_of
from lakewright.experiments.loop.records.run_folder import FORMAT, RunConfig, RunFolder
from lakewright.experiments.loop.records.stage_records import Done, Validation, find_record, read_record
from lakewright.policy.models import load_checkpoint
from lakewright.policy.training import GrpoSettings
from tests.support.models.tiny_policy import ENV, boards_as_settings, tiny_run
from tests.support.refusals import refused
from tests.support.samples.tiny_runs import FILES, TRIED, decision, files, finished, run_loop, state, watch_loading
from tests.support.tools.parameter_walk import follow

LOOPED = ("fixed", "random", "self")


def grids(rows: list[Row]) -> list[tuple]:
    """The boards of rows, without their names."""
    return [(row.grid, row.starts, row.goals) for row in rows]


@pytest.mark.parametrize("teacher", LOOPED)
def test_a_run_of_each_teacher_leaves_every_file_and_no_litter(teacher):
    changes = decision(finished(teacher), 0).verdict.design != design_of(ENV)
    assert files(finished(teacher).folder) == FILES | (TRIED if changes else set())
    assert {decision(finished(teacher), number).teacher for number in (0, 1)} == {teacher}


@pytest.mark.parametrize("teacher", LOOPED)
def test_each_stage_is_drawn_from_the_config_that_was_decided_before_it(teacher):
    run = finished(teacher)
    assert config_of(run.stage(0).design()) == ENV
    for number in (0, 1):
        config, count = config_of(run.stage(number).design()), tiny_run().grpo.boards
        rows = read_all(run.stage(number).boards)
        assert len(rows) == count
        for row in rows:
            holes = sum(line.count("H") for line in row.grid)
            assert holes == holes_of(row.size, 2, config.sizes[row.size].hole_ratio), row.id
    assert run.stage(1).design() == run.stage(0).next_design()


def test_the_fixed_teacher_keeps_the_config_and_another_proposes_a_change():
    assert config_of(finished("fixed").stage(1).design()) == ENV
    assert decision(finished("random"), 0).verdict.design != design_of(ENV)


def test_every_record_can_be_read_and_names_its_stage():
    run = finished("self")
    assert read_record(run.config, RunConfig) == RunConfig(FORMAT, tiny_run(teacher="self"))
    held_out = read_all(run.validation)
    assert len(held_out) == 2 * 4
    for number in (0, 1):
        stage = run.stage(number)
        outcomes = read_record(stage.validation, Validation).outcomes
        evidence = stage.read_evidence()
        assert (evidence.design, evidence.outcomes) == (stage.design(), outcomes)
        assert (evidence.round, evidence.rounds) == (number, 2)
        assert [config_of(old.design) for old in evidence.history] == [ENV][:number], "round 0 is kept, shown or not"
        assert {found.cell.stratum for found in evidence.groups} == set(evidence.statistics) == {3, 5}
        assert sum(found.groups.groups for found in evidence.groups) == evidence.problems == 4
        assert evidence.by_trait.keys() <= evidence.outcomes.keys()
        assert evidence.training["grpo.group"] == 2
        assert "reward" in evidence.training
        assert "step_time" not in evidence.training, "evidence, and so the engineer's prompt, is free of the clock"
        assert {size: outcomes_of(found).boards for size, found in outcomes.items()} == {3: 4, 5: 4}
        assert set(read_record(stage.done, Done).versions) >= {"lakewright", "jax", "torch", "trl"}
        load_checkpoint(stage.checkpoint)


def test_the_difficulty_model_counts_the_held_out_boards_after_the_warm_up_and_every_stage():
    run = finished("random")
    known = run.stage(1).read_forecast()
    assert known is not None
    trial = find_record(run.stage(0).trial, Trial)
    tried = sum(len(part.valid) for part in trial.cells) if trial else 0
    held_out = len(read_all(run.validation)) * 3
    assert known.model.groups == held_out + 4 + 4 + tried


def test_training_is_logged_step_by_step():
    run, settings = finished("self"), tiny_run()
    for stage, count, figures in (
        (run.warmup, settings.warmup.steps, {"step", "loss"}),
        (run.stage(0), settings.grpo.steps, {"step", "reward", "valid", "frac_reward_zero_std", "failure/hole"}),
    ):
        lines = msgspec.json.Decoder(dict).decode_lines(stage.train_log.read_bytes())
        assert len(lines) == count
        assert all(set(line) >= figures for line in lines)


@pytest.mark.deep
def test_stages_may_begin_short_and_double(tmp_path):
    grpo = GrpoSettings(steps=3, first_steps=1, prompts=2, group=2)
    assert [grpo.of_stage(number).steps for number in (0, 1, 2, 3, 10**9)] == [1, 2, 3, 3, 3]
    assert grpo.of_stage(1).boards == 4
    run = RunFolder(tmp_path / "run")
    run_loop(tiny_run(teacher="rules", grpo=grpo), run)
    assert [len(run.stage(number).read_steps()) for number in (0, 1)] == [1, 2]
    assert [len(read_all(run.stage(number).boards)) for number in (0, 1)] == [2, 4]


def test_a_first_stage_that_is_longer_than_the_others_is_refused():
    with refused("first_steps", 4, "steps 3", kind=ValueError):
        GrpoSettings(steps=3, first_steps=4)


def test_the_checkpoint_itself_answers_the_evidence_in_words_of_the_delta():
    for number in (0, 1):
        asked = decision(finished("self"), number).proposal
        evidence = finished("self").stage(number).read_evidence()
        view = show_evidence(evidence, Modules(), jax.random.key(0))
        assert asked.prompt == " ".join(evidence_tokens(view, lake_space()))
        assert asked.delta == read_tokens(asked.answer.split(), lake_space())
        assert asked.error == ""


@pytest.mark.parametrize("teacher", ["self", "random"])
def test_running_again_changes_no_file(teacher):
    before = state(finished(teacher).folder)
    run_loop(tiny_run(teacher=teacher), finished(teacher))
    assert state(finished(teacher).folder) == before


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"seed": 1}, ["seed", 0, 1]),
        ({"stages": 3}, ["stages", 2, 3]),
        ({"teacher": "rules"}, ["teacher", "'self'", "'rules'"]),
        (boards_as_settings(EnvConfig.single(3, 2, 0.2, 0.5)), ["design.3.data_ratio", 0.5, 1.0]),
        ({"horizon": 9}, ["horizon", 8, 9]),
    ],
)
def test_other_settings_on_the_same_folder_are_refused_and_nothing_is_lost(changes, difference):
    before = state(finished("self").folder)
    with refused("config.json", *difference, "to continue that run add "):
        run_loop(msgspec.structs.replace(tiny_run(teacher="self"), **changes), finished("self"))
    assert state(finished("self").folder) == before


@pytest.fixture(scope="module")
def again(tmp_path_factory) -> tuple[RunFolder, list[str]]:
    """The run of the fixed teacher with another learning rate, and the checkpoints that were loaded in it."""
    run = RunFolder(tmp_path_factory.mktemp("again") / "run")
    faster = msgspec.structs.replace(tiny_run().grpo, learning_rate=1e-3)
    with pytest.MonkeyPatch.context() as patch:
        loaded = watch_loading(patch)
        run_loop(tiny_run(teacher="fixed", grpo=faster), run)
    return run, loaded


def test_each_stage_trains_on_from_the_checkpoint_before_it(again):
    validated, trained = again[1][::2], again[1][1::2]
    assert trained == ["warmup", "stage_00"]
    assert validated == ["warmup", "stage_00", "stage_01"]


def test_a_fresh_run_of_the_same_seed_draws_the_same_boards_and_another_seed_others(tmp_path, again):
    one, same, other = finished("fixed"), again[0], RunFolder(tmp_path / "other")
    run_loop(tiny_run(teacher="fixed", seed=1, stages=1), other)
    for number in (0, 1):
        assert read_all(same.stage(number).boards) == read_all(one.stage(number).boards)
    assert grids(read_all(other.stage(0).boards)) != grids(read_all(one.stage(0).boards))
    assert grids(read_all(one.stage(0).boards)) != grids(read_all(one.stage(1).boards)), "each stage has its own boards"
    assert read_all(other.validation) == read_all(one.validation), "the held-out set is the same for every seed"


@pytest.mark.deep
@pytest.mark.parametrize("parameter", ["settings", "reward", "held_out", "trial", "guard", "rollback"])
def test_a_parameter_comes_back_to_a_file_at_most_fifteen_times(parameter, tmp_path):
    walk = follow(parameter, RunFolder(tmp_path / "run"))
    assert walk.stays[0].endswith("closed_loop.py")
    assert any(file.endswith("run_engineer.py") for file in walk.files)
    assert walk.returns <= 15
