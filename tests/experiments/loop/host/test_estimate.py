"""`lakewright estimate`: tensors counted one by one, and the peaks of real steps on the CPU."""

import functools
from pathlib import Path

import msgspec
import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.optim.swa_utils import AveragedModel
from transformers import Qwen3Config, Qwen3ForCausalLM

from lakewright.engineer.evidence import EvidenceSettings
from lakewright.engineer.problems import Problem
from lakewright.experiments.cli import main
from lakewright.experiments.loop.host.estimate import Estimate, estimate_of
from lakewright.experiments.loop.host.estimate_table import estimate_table
from lakewright.experiments.loop.host.memory_arithmetic import Sharing, Trained, gradients, optimizer_state, weights
from lakewright.experiments.loop.host.model_shape import adapter_weights, model_shape, shape_of_model
from lakewright.experiments.loop.settings.run_settings import QuestionSettings, RunSettings, load_settings
from lakewright.experiments.loop.training.policy_models import load_policy
from lakewright.experiments.loop.training.trainee import Trainee, make_trainee
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TextCodec, TextSettings, TokensCodec
from lakewright.policy.evaluation import evaluate
from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.models import build_model, load_model, save_checkpoint
from lakewright.policy.training import (
    AnswerGroup,
    GrpoSettings,
    HostSettings,
    LoraSettings,
    WarmupSettings,
    answer_groups,
    prepare_training,
    train_grpo,
    train_on_answers,
    warm_up,
)
from lakewright.policy.training.optimizers import build_muon_and_adamw
from tests.support.models.gguf_model import write_gguf
from tests.support.models.small_language_model import language, language_model
from tests.support.models.tiny_policy import board_play, tasks, tiny_run, tokenizer
from tests.support.processes.commands import HOUSE, assert_refused, elsewhere
from tests.support.processes.tensor_memory import peak_of_tensors
from tests.support.refusals import refused

MODEL = ModelSettings(hidden=64, layers=3, heads=4, mlp=96)
FACTOR = 1.15  # an estimate is at most so many times the measured peak, and never less than nine tenths of it
WARMUP = WarmupSettings(steps=8, boards=24, batch=16)


def bytes_of(tensors) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors if tensor.ndim)


def assert_near(estimated: int, measured: int, what: str) -> None:
    assert 0.9 * measured <= estimated <= FACTOR * measured, f"{what}: {estimated:,} estimated, {measured:,} measured"


def trained_as(shape, optimizer: str, adapter: int = 0) -> Trained:
    return Trained(shape, 4, adapter, optimizer, Sharing("none", 1), checkpointing=False)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_weights_gradients_and_optimizer_state_are_counted_exactly(optimizer):
    model = build_model(MODEL, tokenizer(), 0)
    stepping = (
        torch.optim.AdamW(model.parameters()) if optimizer == "adamw" else build_muon_and_adamw(model, 1e-3, 1e-3)
    )
    model(input_ids=torch.tensor([[1, 2, 3]])).logits.sum().backward()
    stepping.step()
    trained = trained_as(shape_of_model(model, "tiny"), optimizer)
    parts = getattr(stepping, "parts", [stepping])
    assert weights(trained) == bytes_of(model.parameters()) == bytes_of(AveragedModel(model).module.parameters())
    assert gradients(trained) == bytes_of(parameter.grad for parameter in model.parameters())
    kept = [tensor for part in parts for state in part.state.values() for tensor in state.values()]
    assert optimizer_state(trained) == bytes_of(kept)


def test_an_adapter_is_counted_exactly():
    model = language_model()
    shape = shape_of_model(model, "small")
    lora = get_peft_model(model, LoraConfig(r=3, target_modules="all-linear", task_type="CAUSAL_LM"))
    added = [parameter for parameter in lora.parameters() if parameter.requires_grad]
    trained = trained_as(shape, "adamw", adapter_weights(shape, 3))
    assert trained.adapter == sum(map(torch.numel, added))
    assert weights(trained) == bytes_of(lora.parameters())
    assert gradients(trained) == bytes_of(added)


def test_the_shape_of_a_known_model_is_its_own_without_its_memory():
    shape = model_shape(load_settings("qwen3-4b", []))
    assert shape.parameters == 4_022_468_096, "as the safetensors of Qwen/Qwen3-4B count them"
    assert adapter_weights(shape, 32) == 66_060_288


def long_tasks(count: int) -> list:
    """Tasks of the largest boards, as an estimate is for the longest prompts; and a smaller one, for padding."""
    drawn = sorted(tasks(), key=lambda task: task.size)
    largest = [task for task in drawn if task.size == drawn[-1].size]
    return [*(largest * count)[: count - 1], drawn[0]]


def from_scratch(**changes) -> RunSettings:
    grpo = GrpoSettings(steps=1, prompts=8, group=4)
    return tiny_run(model=MODEL, horizon=12, warmup=WARMUP, **{"grpo": grpo, **changes})


def phases_of(settings: RunSettings) -> dict[str, int]:
    return {phase.name: phase.total for phase in estimate_of(settings).phases}


@pytest.fixture
def small_tiles(monkeypatch):
    """TRL's head computes in tiles of 32 768 words, which would hide everything else that a small model takes."""
    for place in (
        "trl.trainer.utils._CHUNKED_LOGPROB_CHUNK_SIZE",
        "lakewright.experiments.loop.host.memory_arithmetic.TILE_WORDS",
    ):
        monkeypatch.setattr(place, 256)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "muon", "average": 0.9},
        pytest.param({}, marks=pytest.mark.deep),
        pytest.param({"share_prompts": False}, marks=pytest.mark.deep),
    ],
    ids=str,
)
def test_the_peak_of_a_step_of_grpo_is_as_estimated(tmp_path, changes):
    settings = from_scratch(grpo=GrpoSettings(steps=2, prompts=8, group=4, **changes))  # the second has all
    with peak_of_tensors() as peak:
        model = build_model(MODEL, tokenizer(), 0)
        train_grpo(
            *(model, BoardPlay(TokensCodec(tokenizer()), 12, settings.reward), long_tasks(16), settings.grpo),
            seed=0,
            scratch=tmp_path,
        )
    assert_near(max(phases_of(settings)["update"], phases_of(settings)["sampling"]), peak.bytes, str(changes))


def test_the_peak_of_the_warm_up_is_as_estimated():
    settings = from_scratch()
    longest = estimate_of(settings).lengths.example
    extra = [([1] * (longest - 8), [2] * 8)]
    with peak_of_tensors() as peak:
        model = build_model(MODEL, tokenizer(), 0)
        warm_up(model, board_play(), long_tasks(8), extra, WARMUP, 0)
    assert_near(phases_of(settings)["warm-up"], peak.bytes, "warm-up")


def test_the_peak_of_a_validation_is_as_estimated():
    settings = from_scratch()
    with peak_of_tensors() as peak:
        model = build_model(MODEL, tokenizer(), 0)
        evaluate(model, board_play(12), long_tasks(8))
    assert_near(phases_of(settings)["validation"], peak.bytes, "validation")


WORDS = TextSettings(max_tokens=48)
HOSTS = {
    "all weights": HostSettings(),
    "an adapter in bf16, checkpointing": HostSettings(bf16=True, checkpointing=True, lora=LoraSettings(rank=4)),
}
MORE_HOSTS = {
    "all weights, checkpointing": HostSettings(checkpointing=True),
    "all weights in bf16": HostSettings(bf16=True),
    "an adapter": HostSettings(lora=LoraSettings(rank=4)),
}
each_host = [
    *(pytest.param(host, id=name, marks=() if host.bf16 else pytest.mark.deep) for name, host in HOSTS.items()),
    *(pytest.param(host, id=name, marks=pytest.mark.deep) for name, host in MORE_HOSTS.items()),
]


@functools.cache
def deep_checkpoint() -> Path:
    """A language model whose layers take more than everything else."""
    torch.manual_seed(0)
    widths = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 6, "head_dim": 16}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": language().pad_token_id}
    folder = elsewhere() / "deep-language"
    save_checkpoint(folder, Qwen3ForCausalLM(Qwen3Config(vocab_size=len(language()), **widths, **heads)), language())
    return folder


@pytest.mark.deep
@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("host", each_host)
def test_the_peak_of_a_language_model_in_training_is_as_estimated(tmp_path, host):
    grpo = GrpoSettings(steps=2, prompts=2, group=2, share_prompts=False, host=host)
    run = {"codec": "text", "text": WORDS, "start": str(deep_checkpoint())}
    settings = tiny_run(**run, grpo=grpo, warmup=WarmupSettings(steps=0))
    with peak_of_tensors() as peak:
        model, _ = load_model(deep_checkpoint(), torch.bfloat16 if host.bf16 else torch.float32)
        play = BoardPlay(TextCodec(language(), WORDS), 8)
        train_grpo(model, play, long_tasks(4), grpo, seed=0, scratch=tmp_path)
    assert_near(max(phases_of(settings)["update"], phases_of(settings)["sampling"]), peak.bytes, str(host))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="float32"),
        pytest.param({"autocast": True, "freeze_embeddings": True}, id="autocast", marks=pytest.mark.deep),
    ],
)
def test_the_peak_of_a_warm_up_in_words_is_as_estimated(changes):
    warmup = WarmupSettings(steps=2, boards=24, batch=16, optimizer="adamw", extra_share=0.5)  # the second has all
    run = {"codec": "text", "text": WORDS, "start": str(deep_checkpoint())}
    settings = tiny_run(**run, warmup=warmup, **changes)
    with peak_of_tensors() as peak:
        model, _ = load_policy(settings, deep_checkpoint())
        play = BoardPlay(TextCodec(language(), WORDS), 8)
        longest = [(play.encode_prompt(long_tasks(2)[0]), [2] * WORDS.max_tokens)]
        warm_up(model, play, long_tasks(8), longest, warmup, 0)
    assert_near(phases_of(settings)["warm-up"], peak.bytes, str(changes))


@pytest.mark.parametrize("host", each_host)
def test_the_peak_of_the_training_of_an_engineer_in_words_is_as_estimated(host):
    prompt, answer = 200, 60
    run = {"codec": "text", "text": WORDS, "start": str(deep_checkpoint()), "warmup": WarmupSettings(steps=0)}
    engineer, evidence = QuestionSettings(answer=answer, group=3), EvidenceSettings(budget=prompt)
    grpo = GrpoSettings(host=host)
    settings = tiny_run(**run, teacher="self_trained", engineer=engineer, evidence=evidence, grpo=grpo)
    group = AnswerGroup([1] * prompt, [[2] * answer] * 3, [1.0, -1.0, 0.0])
    words = range(len(language()))
    with peak_of_tensors() as peak:
        policy, _ = load_policy(settings, deep_checkpoint())
        reference, _ = load_policy(settings, deep_checkpoint())
        model = prepare_training(policy, host)
        train_on_answers(model, reference, [group, group], lambda ids: [words for _ in ids], engineer.training)
    assert_near(phases_of(settings)["engineer"], peak.bytes, str(host))


def sums(*overrides: str) -> RunSettings:
    environment = f"environment={HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
    return load_settings("text", [environment, *overrides])


def test_the_longest_sequences_of_text_are_those_of_the_whole_space():
    lengths = estimate_of(sums("text.max_tokens=7")).lengths
    longest = "1111+1111+1111+1111="  # four terms of four digits, where the first design has fewer
    assert (lengths.prompt, lengths.answer) == (len(longest) + len(["<begin>"]), 7)
    assert lengths.example == lengths.prompt + len("44444") + 1, (
        "nobody is taught the engineer's part, as it is not asked"
    )
    taught = estimate_of(sums("teacher=self")).lengths
    assert taught.example > taught.prompt + taught.answer, "evidence is longer than sums"


def longest_sums(count: int) -> tuple[RunSettings, Trainee, list[Problem]]:
    """Settings of small steps on sums, and problems with the longest prompts."""
    settings = sums("text.max_tokens=16")
    trainee = make_trainee(settings)
    return (
        settings,
        trainee,
        trainee.environment.draw_cell(trainee.environment.space.cell(4, terms=4, carry=True), count, 0),
    )


def test_the_peak_of_a_warm_up_in_bytes_is_as_estimated():
    settings, trainee, problems = longest_sums(64)
    warmup = msgspec.structs.replace(settings.warmup, steps=2)
    with peak_of_tensors() as peak:
        model, words = trainee.build_model()
        warm_up(model, trainee.make_play(model, words), problems, [], warmup, 0)
    assert_near(phases_of(settings)["warm-up"], peak.bytes, "warm-up in bytes")


def test_the_peak_of_a_validation_in_bytes_is_as_estimated():
    settings, trainee, problems = longest_sums(512)
    with peak_of_tensors() as peak:
        model, words = trainee.build_model()
        answer_groups(model, trainee.make_play(model, words), problems)
    assert_near(phases_of(settings)["validation"], peak.bytes, "validation in bytes")


@pytest.mark.usefixtures("small_tiles")
def test_the_peak_of_a_step_in_bytes_is_as_estimated(tmp_path):
    settings = sums("text.max_tokens=7", "grpo.steps=2", "grpo.prompts=16", "grpo.average=0.0", "grpo.guided=false")
    trainee = make_trainee(settings)
    cell = trainee.environment.space.cell(4, terms=4, carry=True)
    problems = trainee.environment.draw_cell(cell, 32, 0)
    with peak_of_tensors() as peak:
        model, words = trainee.build_model()
        train_grpo(model, trainee.make_play(model, words), problems, settings.grpo, seed=0, scratch=tmp_path)
    found = phases_of(settings)
    assert_near(max(found["update"], found["sampling"]), peak.bytes, "bytes")


def test_an_environment_that_cannot_be_used_is_refused(capsys):
    assert_refused(capsys, ("estimate", "--preset", "text", "environment=nothing.py:Nothing"), "nothing.py")
    given = ("estimate", "--preset", "cpu-6h", sums().environment.join(("environment=", "")))
    assert_refused(capsys, given, "model.architecture is board, which reads boards and no text")


def test_processes_divide_what_their_config_divides():
    whole, shared = (
        {p.name: p.items for p in estimate_of(qwen(config, 8)).phases} for config in ("multi_gpu", "zero2")
    )
    assert whole["update"]["weights"] == shared["update"]["weights"] == 2 * 4_022_468_096
    assert shared["update"]["gradients"] == 2 * 4_022_468_096 // 8
    assert whole["update"]["gradients"] == 2 * 2 * 4_022_468_096, "and once more in the buckets of all processes"
    assert shared["update"]["optimizer"] == 12 * 4_022_468_096 // 8


def qwen(config: str, processes: int) -> RunSettings:
    return load_settings("qwen3-4b", [f"launch.config={config}", f"launch.processes={processes}"])


def test_an_update_that_is_computed_in_parts_on_a_gpu_is_estimated_as_its_parts():
    updates = [phases_of(load_settings("qwen3-0.6b", [f"grpo.host.micro_batch={rows}"]))["update"] for rows in (48, 96)]
    assert updates[0] == updates[1] < 80e9


def test_the_command_prints_a_short_table_and_json(capsys):
    assert main(["estimate", "--preset", "qwen3-4b", "grpo.host.lora.rank=32", "launch.processes=1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Qwen/Qwen3-4B: 4,022,468,096 weights in bf16, 66,060,288 of an adapter trained; ")
    assert len(out.splitlines()) < 25
    assert main(["estimate", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Estimate)
    assert (
        estimate_table(found)
        .splitlines()[0]
        .startswith("qwen3 from scratch: 605,056 weights in fp32, all trained; 1 process")
    )


def test_a_gguf_file_is_estimated_as_the_checkpoint_that_it_becomes(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    file = write_gguf(tmp_path / "tiny.gguf")
    assert main(["estimate", "--preset", "smollm2", f"start={file}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    model, _ = load_model(file)
    frozen = model.get_input_embeddings().weight.numel()
    parameters = sum(part.numel() for part in model.parameters())
    assert lines[0] == f"{file}: {parameters:,} weights in fp32, {parameters - frozen:,} trained; 1 process on the CPU"
    assert "signs counted" not in lines[1], "its tokenizer is there"


def test_a_network_on_the_board_says_what_is_not_estimated(capsys):
    assert main(["estimate", "--preset", "cpu-6h"]) == 0
    assert "does not cover the activations of a network on the board" in capsys.readouterr().out


def test_a_model_that_cannot_be_found_is_refused(capsys, tmp_path):
    given = ("estimate", "--preset", "qwen3-4b", f"start={tmp_path / 'nothing'}")
    assert_refused(capsys, given, "config.json cannot be read", "give its folder")
    with refused("start", "nobody/model, whose config.json"):
        model_shape(load_settings("qwen3-4b", ["start=nobody/model"]))
