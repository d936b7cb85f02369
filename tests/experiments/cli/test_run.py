"""`lakewright run` and `lakewright report`, from overrides on the command line to the table and the report."""

import re

import msgspec
import pytest

from lakewright.core_jax.rows import read_all
from lakewright.experiments.cli import main
from lakewright.experiments.loop.records.run_folder import RunConfig, RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.settings.run_settings import ValidationSettings, load_settings
from tests.support.models.tiny_policy import tiny_run
from tests.support.processes.commands import HOUSE, assert_refused
from tests.support.refusals import refused
from tests.support.samples.tiny_runs import FILES, TRIED, files, quick, state

OVERRIDES = [
    "stages=2",
    "env.sizes={3={data_ratio=0.5,hole_ratio=0.2,wait_ratio=0.5},5={data_ratio=0.5,hole_ratio=0.25,wait_ratio=0.5}}",
    "--warmup_env.sizes={3={data_ratio=1,hole_ratio=0.2,wait_ratio=0.5},5={data_ratio=0,hole_ratio=0.2,wait_ratio=0}}",
    *("warmup.steps=3", "warmup.boards=32", "warmup.batch=8", "--grpo.steps=1", "grpo.prompts=4", "grpo.group=2"),
    *("model.hidden=32", "model.layers=1", "model.heads=2", "model.mlp=32", "horizon=8"),
    *("validation.boards=1", "validation.hole_ratios=[0.1, 0.2]", "validation.wait_ratios=[0.5]"),
]


@pytest.fixture(scope="module", autouse=True)
def quickly():
    """Every run here is quick."""
    with quick():
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run."""
    out = tmp_path_factory.mktemp("cli") / "run"
    assert main(["run", *OVERRIDES, "--teacher", "rules", "--seed", "3", "--out", str(out)]) == 0
    return RunFolder(out)


def test_a_run_is_what_the_command_line_says(folder):
    settings = read_record(folder.config, RunConfig).settings
    assert (settings.teacher, settings.seed, settings.stages, settings.horizon) == ("rules", 3, 2, 8)
    assert (settings.grpo.steps, settings.model.hidden, settings.validation.hole_ratios) == (1, 32, (0.1, 0.2))
    assert list(settings.design) == ["3", "5"]
    asked_first = {f"warmup/{name}.json" for name in ("env", "evidence", "difficulty", "proposal", "trial", "next")}
    assert files(folder.folder) == FILES | TRIED | asked_first | {"report.html"}


def test_the_same_command_again_is_quiet_in_a_pipe_and_touches_no_stage(folder, capfd):
    before = state(folder.folder)
    assert main(["run", "--out", str(folder.folder), "--seed=3", *OVERRIDES, "--teacher=rules", "--json"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert [stage["name"] for stage in msgspec.json.decode(out)["stages"]] == ["warm-up", "stage 0", "stage 1"]
    after = state(folder.folder)
    assert {name: after[name] for name in FILES} == {name: before[name] for name in FILES}


@pytest.mark.parametrize("quiet", [pytest.param(True, marks=pytest.mark.deep), False])
def test_a_run_in_a_pipe_prints_lines_of_its_stages_unless_it_is_quiet_and_its_table(quiet, tmp_path, capfd):
    words = ["--quiet"] if quiet else []
    assert main(["run", *OVERRIDES, "stages=1", "--out", str(tmp_path / "run"), *words]) == 0
    out, err = capfd.readouterr()
    if quiet:
        assert err == ""
    else:
        lines = err.splitlines()
        assert lines[0].startswith("warm-up: ")
        assert "stage_00, 1 of 1, teacher self" in lines
        assert [line for line in lines if "% of held-out" in line], "a line of the validation"
    assert [re.split(",|  | \\d+ %", line)[0] for line in out.splitlines() if line[:1].strip()] == [
        f"report: {tmp_path}/run/report.html",
        "warm-up",
        "stage 0",
        "engineer exam:",
        "the only stage was drawn from the first design: 1 time the trial preferred it",
        f"final checkpoint: {tmp_path}/run/stage_00/checkpoint",
        f"every stage in a browser: lakewright view {tmp_path}/run",
    ]


def test_the_report_can_be_printed_and_written_again(folder, capfd):
    folder.report.unlink()
    assert main(["report", str(folder.folder)]) == 0
    out, err = capfd.readouterr()
    assert "stage 1" in out
    assert err == ""
    assert folder.report.exists()


def test_other_settings_on_the_same_folder_are_reported_in_one_line(folder, capfd):
    before = state(folder.folder)
    assert main(["run", *OVERRIDES, "--teacher", "rules", "--seed", "4", "--out", str(folder.folder)]) == 2
    out, err = capfd.readouterr()
    remedy = "to continue that run add seed=3, or choose another folder"
    assert out == ""
    assert err == f"lakewright: {folder.config}: holds another run: settings.seed is 3 there and 4 now; {remedy}\n"
    assert state(folder.folder) == before


def test_a_run_that_was_refused_for_its_model_leaves_nothing_in_the_way_of_another(tmp_path, capfd):
    out = tmp_path / "run"
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    given = ["run", *OVERRIDES, "stages=1", "--out", str(out)]
    assert main([*given, f"start={tmp_path}/model", "seed=2"]) == 2
    assert "no model.safetensors" in capfd.readouterr().err
    assert main([*given, "validation.boards=2", "--quiet"]) == 0
    assert capfd.readouterr().err == ""
    run = RunFolder(out)
    assert (run.settings().start, run.settings().validation.boards) == ("", 2)
    assert len(read_record(run.warmup.validation, Validation).valid) == len(read_all(run.validation)) == 8
    assert main([*given, "validation.boards=1"]) == 2
    assert "validation.boards is 2 there and 1 now" in capfd.readouterr().err


def test_a_warm_up_that_was_interrupted_is_not_given_up_for_another_run(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.open(tiny_run())
    run.warmup.scratch.mkdir(parents=True)
    (run.warmup.scratch / "training.safetensors").touch()
    with refused("run: settings.stages"):
        run.open(msgspec.structs.replace(tiny_run(), stages=7))


def test_a_file_is_no_folder_of_a_run_or_of_anything_else(tmp_path, capsys):
    file = tmp_path / "FILE"
    file.write_text("mine")
    commands = (
        ("run", *OVERRIDES, "--out"),
        ("study", "cpu", "--out"),
        ("benchmark", "build", "--out"),
        ("view", "bundle", tmp_path, "--out"),
    )
    for command in commands:
        assert_refused(capsys, (*command, file), f"{file}: is a file; choose a folder")
    assert file.read_text() == "mine"


SUMS = ("--environment", HOUSE / "docs" / "examples" / "addition.py:Addition")
ROW = "{data_ratio=0.25,hole_ratio=0.1,wait_ratio=0.5}"
SIZES = f"sizes={{{','.join(f'{size}={ROW}' for size in (3, 4, 5, 6))}}}"
HUNT = HOUSE / "docs" / "examples" / "hunt.py:Hunt"
ELSEWHERE = {
    "several turns": (("--environment", HUNT), f"environment '{HUNT!s:.79}", "has several turns, and a run trains on"),
    "boards that are never trained on": (
        (*SUMS, "exclude=none.parquet", "grpo.fresh=true", "warmup.fresh=true"),
        "exclude is 'none.parquet', which only the lake has; leave it out",
    ),
    "teams": ((*SUMS, "teams=[2,3]"), "teams is (2, 3), which only the lake has; leave it out"),
    "boards": ((*SUMS, f"env.{SIZES}"), "strata.3.data_ratio is unknown; choose from share, "),
    "boards of the warm-up": ((*SUMS, f"warmup_env.{SIZES}"), "strata.3.data_ratio is unknown; choose from share, "),
    "a limit of holes": (
        (*SUMS, "guard.max_hole_change=0.2"),
        "guard: reach.hole_ratio is unknown; choose from share, ",
    ),
    "a most of waits": ((*SUMS, "guard.max_wait_ratio=0.5"), "guard: most.wait_ratio is unknown; choose from "),
    "a longest plan": ((*SUMS, "horizon=8"), "horizon is 8, which only the lake has; set text.max_tokens"),
    "parts of a reward": ((*SUMS, "reward.legal=0.4"), "reward is ", "which only the lake has; leave it out, because"),
    "holes of the held-out set": ((*SUMS, "validation.hole_ratios=[0.2]"), "validation.hole_ratios is (0.2,), which"),
    "waits of the held-out set": ((*SUMS, "validation.wait_ratios=[0.2]"), "validation.wait_ratios is (0.2,), which"),
    "turned boards": ((*SUMS, "warmup.augment=false"), "warmup.augment is False, which only the lake has"),
    "saved boards": ((*SUMS, "warmup.boards=10"), "warmup.boards is 10, which only the lake has", "while training"),
    "fresh boards": ((*SUMS, "warmup.fresh=true"), "warmup.fresh is True, which only the lake has"),
    "holes of the warm-up": ((*SUMS, "warmup.hole_ratios=[0.2]"), "warmup.hole_ratios is (0.2,)", "set warmup_design"),
    "a short prompt": ((*SUMS, "text.prompt=compact"), "text.prompt is 'compact', which only the lake has"),
    "a thought of bytes": ((*SUMS, "text.thinking=false"), "text.thinking is False, which the codec bytes does not"),
    "boards in bytes": (
        ("--preset", "text"),
        "codec is bytes, which cannot write boards of the lake; set environment, or ",
    ),
    "a batch of bytes": ((*SUMS, "text.batch=256"), "text.batch is 256, which the codec bytes does not use; leave it"),
    "a decoder of bytes": ((*SUMS, "text.decoder=vllm"), "text.decoder is 'vllm', which the codec bytes does not use"),
    "an answer of tokens": (("text.max_tokens=9",), "text.max_tokens is 9, which the codec tokens does not use"),
    "a design": (("design.3.share=1",), "design: sizes.3: unknown field 'share' = 1.0; choose from data_ratio, "),
    "a design of the warm-up": (("warmup_design.3.share=1",), "warmup_design: sizes.3: unknown field 'share'"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_setting_without_effect_in_an_environment_is_refused(tmp_path, capsys, name):
    words, *parts = ELSEWHERE[name]
    assert_refused(capsys, ("run", "--out", tmp_path / "run", *words), *parts)
    assert files(tmp_path / "run") == set()


@pytest.mark.parametrize("preset", ["smollm2", "frontier"])
def test_the_boards_of_a_preset_are_left_out_in_other_environments(preset):
    settings = load_settings(preset, ["environment=sums.py:Sums"])
    assert (settings.design, settings.warmup_design, settings.teams) == ({}, {}, ())
    assert load_settings(preset, []).design
    assert (settings.horizon, settings.validation.hole_ratios) == (16, ValidationSettings().hole_ratios)
    assert load_settings(preset, ["environment=sums.py:Sums", "horizon=8"]).horizon == 8, "what is given stays given"
