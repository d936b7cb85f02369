"""Bad input on the command line: exit code 2, and one line that names the place, the value and the remedy."""

import msgspec
import pytest
from cyclopts import App

from lakewright.core_jax.config import EnvConfig
from lakewright.engineer.evidence import Evidence
from lakewright.experiments.cli import main
from lakewright.experiments.cli.boards import make_env_config
from lakewright.experiments.loop.records.run_folder import FORMAT, RunConfig, RunFolder
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from tests.support.boards.generated_rows import SMALL, small_rows
from tests.support.models.tiny_policy import tiny_run
from tests.support.processes.commands import assert_refused, lakewright

ONE = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5", "--count", "3")
CONFIG = msgspec.to_builtins(SMALL, str_keys=True)


def cell(**changes: object) -> dict:
    """SMALL as plain data with one field of its size changed."""
    return {"sizes": {"3": {**CONFIG["sizes"]["3"], **changes}}}


def test_a_full_gpu_is_one_line_in_every_command_and_other_errors_are_not_hidden(capsys):
    app = App()

    @app.default
    def fail(message: str) -> None:
        raise RuntimeError(message)

    assert main(["CUDA out of memory. Tried to allocate 2.00 GiB"], lambda: app) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "the memory of the GPU is full (no room for another 2.00 GiB)" in told
    with pytest.raises(RuntimeError, match="device-side assert"):
        main(["CUDA error: device-side assert triggered"], lambda: app)


WRONG_CONFIGS = {
    "an unknown field": ({**CONFIG, "colour": "red"}, ["unknown field 'colour' = 'red'", "choose from sizes, agents"]),
    "an unknown field of a size": (cell(slip=0.1), ["sizes.3", "unknown field 'slip' = 0.1", "choose from data_ratio"]),
    "a missing field": ({"sizes": {"3": {"data_ratio": 1.0}}}, ["sizes.3", "field 'hole_ratio' is missing", "add it"]),
    "a hole ratio too high": (cell(hole_ratio=0.6), ["sizes.3.hole_ratio is 0.6", "choose 0 to 0.5"]),
    "a wait ratio below zero": (cell(wait_ratio=-0.1), ["sizes.3.wait_ratio is -0.1", "choose 0 to 1"]),
    "a ratio in words": (cell(wait_ratio="half"), ["sizes.3.wait_ratio", "'half' does not fit", "expected `float`"]),
    "shares that do not sum to one": (cell(data_ratio=0.5), ["sum to 0.5", "divide each by 0.5"]),
    "a size without free cells": ({**CONFIG, "agents": 5}, ["sizes.3", "9 cells cannot hold", "use a larger size"]),
    "a size that is not supported": ({"sizes": {"17": CONFIG["sizes"]["3"]}}, ["size 17", "choose 3 to 16"]),
    "one agent that waits": ({**CONFIG, "agents": 1}, ["sizes.3.wait_ratio is", "for 1 agent", "set it to 0"]),
    "no size": ({"sizes": {}}, ["sizes is empty", "name at least one"]),
}


@pytest.mark.parametrize("name", WRONG_CONFIGS)
def test_a_wrong_config_is_reported(tmp_path, capsys, name):
    raw, parts = WRONG_CONFIGS[name]
    (tmp_path / "env.json").write_bytes(msgspec.json.encode(raw))
    place = [] if name == "one agent that waits" else [f"{tmp_path}/env.json"]
    given = ("--config", tmp_path / "env.json", "--count", 3, "--out", tmp_path / "out.jsonl")
    assert_refused(capsys, ("generate", *given), *place, *parts)
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("text", ["{", "", "[1", "[" * 100_000, "\xff"])
def test_a_config_that_is_not_json_is_reported(tmp_path, capsys, text):
    (tmp_path / "env.json").write_text(text, "latin-1")
    given = ("--config", tmp_path / "env.json", "--count", 3, "--out", tmp_path / "out.jsonl")
    assert_refused(capsys, ("generate", *given), f"{tmp_path}/env.json")


def test_a_line_break_in_a_name_is_spelled_out(tmp_path, capsys):
    settings = {"model": {"hidde\n": 32}}
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode({"arms": {"a": {}}, "budget": 1, "settings": settings}))
    given = ("study", tmp_path / "spec.json", "--out", tmp_path / "out")
    assert_refused(capsys, given, "settings: model: ", r"unknown field `hidde\n`")


def changed(**options: str | None) -> tuple[str, ...]:
    """The options ONE with some changed, or taken away by None."""
    given = dict(zip(ONE[::2], ONE[1::2], strict=True))
    given |= {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return tuple(word for name, value in given.items() if value is not None for word in (name, value))


@pytest.mark.parametrize(("agents", "waits"), [(2, 0.5), (1, 0.0)])
def test_ratios_that_are_not_given_are_usual(agents, waits):
    given = {"size": 3, "agents": agents, "hole_ratio": None, "wait_ratio": None}
    assert make_env_config(None, given) == EnvConfig.single(size=3, agents=agents, hole_ratio=0.3, wait_ratio=waits)
    assert make_env_config(None, given | {"wait_ratio": 0.0}).sizes[3].wait_ratio == 0


WRONG_OPTIONS = {
    "a size too small": ({"size": "2"}, ["map size 2 is not supported", "choose 3 to 16"]),
    "a ratio outside its range": ({"hole_ratio": "0.7"}, ["hole_ratio is 0.7", "choose 0 to 0.5"]),
    "a ratio that is no number": ({"wait_ratio": "nan"}, ["wait_ratio is nan", "choose 0 to 1"]),
    "a ratio in words": ({"wait_ratio": "half"}, ["--wait-ratio", "'half'", "--help"]),
    "no size": ({"size": None}, ["--size is missing", "give it, or a --config"]),
    "no count": ({"count": None}, ["--count", "--help"]),
    "a count of nothing": ({"count": "0"}, ["count is 0", "choose 1 to 4294967296"]),
    "a count beyond all": ({"count": str(10**30)}, ["count is 1e+30", "choose 1 to 4294967296"]),
    "a seed below zero": ({"seed": "-1"}, ["seed", "-1"]),
    "a seed beyond all": ({"seed": str(2**70)}, ["seed", str(2**70)]),
    "a config besides": ({"config": "env.json"}, ["--config and --size exclude each other", "remove one"]),
}


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_a_wrong_option_is_reported(tmp_path, capsys, name):
    options, parts = WRONG_OPTIONS[name]
    assert_refused(capsys, ("generate", *changed(**options), "--out", tmp_path / "out.jsonl"), *parts)


@pytest.mark.parametrize(
    ("out", "parts"),
    [
        ("out.csv", ["out.csv", "ending .csv is not a known format", "use .jsonl or .parquet"]),
        ("out", ["ending (none) is not a known format", "use .jsonl or .parquet"]),
        ("file/out.jsonl", ["file"]),
        ("folder.jsonl", ["folder.jsonl"]),
        ("x" * 300 + ".jsonl", ["File name too long", "choose a shorter name"]),
        (b"caf\xe9.jsonl".decode(errors="surrogateescape"), ["is not UTF-8; rename the file"]),
    ],
)
def test_a_place_where_nothing_can_be_written_is_reported(tmp_path, capsys, out, parts):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder.jsonl").mkdir()
    assert_refused(capsys, ("generate", *ONE, "--out", tmp_path / out), *parts)


@pytest.mark.parametrize("name", ["x" * 300 + ".jsonl", "x" * 5000, "x/" * 3000 + "x.jsonl"])
def test_a_name_too_long_for_a_file_is_refused_in_a_short_line(tmp_path, capsys, name):
    (tmp_path / "rows.jsonl").write_bytes(msgspec.json.encode(small_rows()[0]) + b"\n")
    for given in (
        ("solve", name, "--out", tmp_path / "out.jsonl"),
        ("solve", tmp_path / "rows.jsonl", "--out", name),
        ("convert", tmp_path / "rows.jsonl", "--out", name),
        ("benchmark", "eval", name, "--solver", "greedy", "--out", tmp_path / "out"),
        ("generate", "--config", name, "--count", 3, "--out", tmp_path / "out.jsonl"),
    ):
        assert_refused(capsys, given, name[:50], "File name too long; choose a shorter name")
        assert len(lakewright(capsys, *given)[2][0]) < 200


@pytest.mark.parametrize("name", ["none.jsonl", "none.parquet", "rows.csv", "folder.jsonl", "half.parquet"])
@pytest.mark.parametrize("does", ["solve", "verify"])
def test_a_file_that_cannot_be_read_is_reported_and_an_old_result_is_kept(tmp_path, capsys, does, name):
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "half.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "out.jsonl").write_text("an old result")
    assert_refused(capsys, (does, tmp_path / name, "--out", tmp_path / "out.jsonl"), f"{tmp_path}/{name}", ";")
    assert (tmp_path / "out.jsonl").read_text() == "an old result"
    assert not [file for file in tmp_path.iterdir() if file.name.endswith(".part")]


WRONG_RUNS = {
    "an unknown preset": (
        ["--preset", "huge"],
        ["--preset is 'huge'", "choose from cpu, ", "run --help"],
    ),
    "an unknown teacher": (
        ["--teacher", "oracle"],
        ["--teacher is 'oracle'", "choose from fixed, static, ", "--help"],
    ),
    "an unknown setting": (["nosuch=3"], ["unknown field 'nosuch' = 3", "choose from environment,"]),
    "an unknown setting of a part": (["grpo.nosuch=3"], ["grpo", "unknown field 'nosuch' = 3", "choose from steps,"]),
    "a setting of the wrong kind": (["grpo.steps=many"], ["grpo.steps", "'many' does not fit", "expected `int`"]),
    "a part of what has none": (["stages.of=3"], ["stages is a value", "name a setting"]),
    "a ratio outside its range": (["env.sizes.3.wait_ratio=2"], ["sizes.3.wait_ratio is 2", "choose 0 to 1"]),
    "no stage": (["stages=0"], ["stages: 0", ">= 1"]),
    "a guard outside its range": (["guard.floor=2"], ["floor is 2", "choose 0 to 1"]),
    "lessons about what is not shown": (
        ["lessons.rule=forecast"],
        ["shows no forecast; give evidence.preset=forecast"],
    ),
    "a floor that four sizes cannot all have": (["guard.floor=0.3"], ["floor", "0.3"]),
    "a stray word": (["faster"], ["faster", "--help"]),
    "one completion a board": (["grpo.group=1"], ["group", "1"]),
    "no step of GRPO": (["grpo.steps=0"], ["steps", "0"]),
    "no prompt": (["grpo.prompts=0"], ["prompts", "0"]),
    "a temperature of nothing": (["grpo.temperature=0"], ["temperature", "0"]),
    "an unknown loss": (["grpo.loss_type=steep"], ["loss_type", "'steep'"]),
    "a learning rate below zero": (["grpo.learning_rate=-1"], ["learning_rate", "-1"]),
    "a horizon of nothing": (["horizon=0"], ["horizon", "0"]),
    "a model without layers": (["model.layers=0"], ["layers", "0"]),
    "a warm-up without boards": (["warmup.boards=0"], ["boards", "0"]),
    "a warm-up batch of nothing": (["warmup.batch=0"], ["batch", "0"]),
    "a held-out hole ratio outside its range": (["validation.hole_ratios=[0.9]"], ["hole_ratio", "0.9", "<= 0.5"]),
    "no held-out hole ratio": (["validation.hole_ratios=[]"], ["hole_ratios"]),
    "a held-out set of nothing": (["validation.boards=0"], ["boards", "0"]),
    "a reward that is no number": (["reward.valid=nan"], ["reward", "nan"]),
    "a model of absurd depth": (["model.layers=100000000"], ["model: {'layers': 100000000}", "<= 256"]),
    "a model beyond all memory": (
        ["model.layers=256", "model.hidden=16384", "model.mlp=65536"],
        ["model: 1,099,525,898,240 weights take", "this machine has", "choose a smaller model"],
    ),
    "a number of many digits": (
        [f"seed={'9' * 5000}"],
        ["override 'seed=999", "thousands of digits; choose one within"],
    ),
    "a long number in hexadecimal": ([f"seed=0x{'f' * 5000}"], ["override 'seed=0xf", "20000 bits; choose one within"]),
    "an option of many bits": (["--seed", f"0x{'f' * 5000}"], ["seed is a whole number of 20000 bits", "64 bits"]),
    "many brackets": ([f"grpo.steps={'[' * 3000}"], ["override 'grpo.steps=[[", "nested too deeply; nest at most"]),
    "two settings in one": (
        ["grpo.steps=1\nseed=2"],
        ["grpo.steps=1\\nseed=2", "has several lines; give each setting"],
    ),
    "a name of many parts": ([f"{'a.' * 5000}a=1"], ["override 'a.a.", "has 5001 parts; name a setting"]),
    "too many proposals": (["engineer.proposals=1000000"], ["engineer.proposals: 1000000", "<= 64"]),
    "too large a group": (["engineer.group=100000000"], ["engineer.group: 100000000", "<= 256"]),
    "a mixture that is never fitted": (
        ["teacher=alp_gmm", "teacher_options.window=4"],
        ["teacher_options: window is 4, less than first 8", "choose at least 8"],
    ),
    "a server at no address": (
        ["teacher=endpoint", "engineer.endpoint.url=http://a b", "engineer.endpoint.model=m"],
        ["url is 'http://a b', which holds a space", "write it as http://host:port/v1"],
    ),
}


@pytest.mark.parametrize("name", WRONG_RUNS)
def test_a_wrong_setting_of_a_run_is_reported_before_anything_is_made(tmp_path, capsys, monkeypatch, name):
    given, parts = WRONG_RUNS[name]
    monkeypatch.setattr(
        "lakewright.experiments.loop.closed_loop.run",
        lambda *_: pytest.fail("the run began with a setting it cannot use"),
    )
    assert_refused(capsys, ("run", "--out", tmp_path / "run", *given), *parts)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("sweep", "SPEC", "--shard", "0/" + "9" * 5000), ["--shard is '0/999", "write i/n"]),
    ],
)
def test_numbers_of_other_commands_are_checked_before_any_work(tmp_path, capsys, options, parts):
    spec = tmp_path / "spec.toml"
    spec.write_text("sizes = [3]\nagents = [2]\nhole_ratios = [0.0]\nboards = 10\n")
    words = [str(spec) if word == "SPEC" else word for word in options]
    out = ["--out", str(tmp_path / "out")] if "sweep" in options else []
    assert_refused(capsys, (*words, *out), *parts)


def test_a_sweep_of_more_shards_than_can_be_listed_is_refused(tmp_path, capsys):
    spec = tmp_path / "spec.toml"
    spec.write_text("sizes = [3]\nagents = [2]\nhole_ratios = [0.0]\nboards = 4294967296\nshard = 1\n")
    parts = ["the boards make 4294967296 shards", "choose larger shards, 1048576 at most in all"]
    assert_refused(capsys, ("sweep", spec, "--out", tmp_path / "out"), *parts)


def test_lessons_of_a_folder_without_runs_are_refused_before_anything_is_saved(tmp_path, capsys):
    given = ("run", "--out", tmp_path / "run", f"lessons.recorded={tmp_path}/none")
    parts = [f"lessons.recorded: {tmp_path}/none has no stage with evidence.json", "give a folder of runs"]
    assert_refused(capsys, given, *parts)
    assert not (tmp_path / "run" / "config.json").exists()


def test_lessons_of_gains_need_runs_that_recorded_them(tmp_path, capsys):
    stage = tmp_path / "runs" / "stage_00"
    stage.mkdir(parents=True)
    known = Evidence(design=make_trainee(RunSettings()).start, outcomes={}, round=0, rounds=1)
    (stage / "evidence.json").write_bytes(msgspec.json.encode(known))
    rule = ("evidence.preset=worth", "lessons.rule=gain", f"lessons.recorded={tmp_path}/runs")
    assert_refused(
        capsys, ("run", "--out", tmp_path / "run", *rule), "evidence.json has no worth of cells", "give runs"
    )


def test_settings_are_only_of_runs(tmp_path, capsys):
    given = ("generate", *ONE, "--out", tmp_path / "out.jsonl", "grpo.steps=3")
    assert_refused(capsys, given, "'grpo.steps=3'", "takes no settings", "remove it")


@pytest.mark.parametrize("command", ["run", "report"])
@pytest.mark.parametrize("form", [FORMAT + 1, 0, None, "one"])
def test_a_run_folder_of_another_version_is_reported(tmp_path, capsys, command, form):
    raw = {**msgspec.to_builtins(RunConfig(FORMAT, tiny_run()), str_keys=True), "format": form}
    written = msgspec.json.encode(raw)
    (tmp_path / "config.json").write_bytes(written)
    given = ("run", "--out", tmp_path) if command == "run" else ("report", tmp_path)
    parts = f"format is {form!r}", f"this version reads {FORMAT}", "use the version that wrote it"
    assert_refused(capsys, given, f"{tmp_path}/config.json", *parts)
    assert (tmp_path / "config.json").read_bytes() == written, "nothing is lost"


def test_a_folder_of_something_else_is_reported(tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("ten years of work")
    assert_refused(capsys, ("run", "--out", tmp_path), str(tmp_path), "holds no run", "choose another folder")
    assert_refused(capsys, ("report", tmp_path), str(tmp_path), "holds no run", "give a folder made by")
    assert_refused(capsys, ("run", "--out", tmp_path / "thesis.txt"), "thesis.txt")
    assert_refused(capsys, ("report", tmp_path / "none"), "none", "holds no run")
    assert (tmp_path / "thesis.txt").read_text() == "ten years of work"


def test_two_runs_do_not_share_a_folder(tmp_path, capsys):
    with RunFolder(tmp_path / "run").locked():
        assert_refused(capsys, ("run", "--out", tmp_path / "run"), "another process runs here", "wait for it")


def test_a_row_of_the_samples_is_not_bad(tmp_path, capsys):
    (tmp_path / "in.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(small_rows()))
    assert lakewright(capsys, "verify", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl") == (0, "", [])
