"""`benchmark eval` as a user runs it: servers, checkpoints and solvers answer, kills and caps lose nothing."""

import contextlib
import json
import signal
import subprocess
import sys
import threading

import msgspec
import pytest
import torch

from lakewright.core_jax.rows import Row, write_rows
from lakewright.experiments.boards.evaluation.answerers import ModelAnswerer, WantedAnswer
from lakewright.experiments.boards.evaluation.scores import Summary
from lakewright.experiments.jobs.executors.choice import ExecutorChoice
from lakewright.experiments.jobs.executors.executor import SERIAL
from lakewright.policy import inference
from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.codecs.text_prompt import read_lake
from lakewright.policy.inference import Samples
from lakewright.policy.models import save_checkpoint
from tests.support.machines.kills import cut_off
from tests.support.models.damaged_weights import damage_copy, drop, poison
from tests.support.models.small_language_model import language, language_checkpoint
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.processes.commands import assert_refused, lakewright, surroundings
from tests.support.processes.watching import PATIENCE
from tests.support.refusals import refused
from tests.support.samples.evaluations import ROWS, board_of, write_plan
from tests.support.servers.chat_server import KEY, closed, completion, failing, send, serving


def answering(request, body):
    """Answers each second board with its certified plan and the others with none, after a moment's thought."""
    shows = read_lake("asked", body["messages"][0]["content"])
    place, row = next((n, row) for n, row in enumerate(ROWS) if (row.grid, row.starts, row.goals) == shows_board(shows))
    send(request, completion(f"<think>agent 0: UP</think>{write_plan(row.plan) if place % 2 else 'No.'}"))


def shows_board(row: Row) -> tuple:
    return row.grid, row.starts, row.goals


def asking(benchmark, tmp_path, server, *more: object) -> tuple:
    who = ("--endpoint", server.url, "--model-name", "m", "--retries", 1, "--timeout", 60, "--max-tokens", 100)
    return ("benchmark", "eval", benchmark, "--out", tmp_path / "out", *who, *more)


def test_an_endpoint_is_evaluated_and_its_key_is_in_no_file(benchmark, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LAKEWRIGHT_API_KEY", KEY)
    with serving(answering, [failing(429)]) as server:
        code, out, reported = lakewright(capsys, *asking(benchmark, tmp_path, server, "--json", "--samples", 2))
    assert (code, reported, server.keys) == (0, [], {f"Bearer {KEY}"})
    summary = msgspec.json.decode(out, type=Summary)
    assert (summary.pooled.outcomes.valid, summary.refusals, summary.who) == (6, {"no_plan": 6}, "m")
    assert {rate.k: rate.rate for rate in summary.pooled.pass_at["valid"]} == {1: 0.5, 2: 0.5}
    assert {body["temperature"] for body in server.seen} == {0.0, 1.0}
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {
        "SHA256SUMS",
        "job.json",
        "answers.jsonl",
        "verdicts.jsonl",
        "summary.json",
        "plot.png",
        "plot.svg",
        "spending.jsonl",
    }
    for file in (tmp_path / "out").iterdir():
        assert KEY.encode() not in file.read_bytes(), f"{file.name} holds the key"


@pytest.mark.deep
def test_a_killed_process_has_kept_whole_answers_and_asks_for_the_others_only(benchmark, tmp_path, capsys):
    def hanging(request, body):
        hung.set()
        killed.wait(PATIENCE)
        request.close_connection = True

    hung, killed = threading.Event(), threading.Event()
    with serving(hanging, [answering] * 5) as server:
        arguments = [*map(str, asking(benchmark, tmp_path, server, "--concurrency", 1, "--timeout", PATIENCE))]
        with subprocess.Popen(
            [sys.executable, "-m", "lakewright.experiments.cli", *arguments], env=surroundings()
        ) as process:
            assert hung.wait(PATIENCE), "the sixth board is not asked for"
            process.kill()
        killed.set()
        kept = (tmp_path / "out" / "answers.jsonl").read_bytes()
        assert (process.returncode, kept.count(b"\n"), kept[-1:]) == (-signal.SIGKILL, 5, b"\n")
        server.usual = answering
        before = len(server.seen)
        assert lakewright(capsys, *arguments)[0] == 0
    assert len(server.seen) - before == len(ROWS) - 5
    assert (tmp_path / "out" / "answers.jsonl").read_bytes().startswith(kept)


def test_the_cost_cap_ends_with_one_and_a_higher_one_resumes(benchmark, tmp_path, capsys):
    prices = ("--price-in", 10, "--price-out", 20)  # 0.002 dollars an answer
    with serving(answering) as server:
        code, out, reported = lakewright(capsys, *asking(benchmark, tmp_path, server, *prices, "--max-cost", 0.03))
        assert (code, len(reported)) == (1, 1)
        assert "may exceed --max-cost; raise it and run the same command again" in reported[0]
        before = len(server.seen)
        assert 0 < before < 12
        assert f"{12 - before} boards have no answer yet" in out
        assert lakewright(capsys, *asking(benchmark, tmp_path, server, *prices, "--max-cost", 1))[0] == 0
    assert len(server.seen) == 12


def test_tries_that_failed_count_for_the_cap_of_later_commands_too(benchmark, tmp_path, capsys):
    prices = ("--price-in", 10, "--price-out", 20, "--retries", 0, "--concurrency", 1, "--json")
    with serving(answering, [closed]) as server:
        arguments = asking(benchmark, tmp_path, server, *prices)
        assert lakewright(capsys, *arguments)[0] == 2
        (charge,) = (json.loads(line) for line in (tmp_path / "out" / "spending.jsonl").read_text().splitlines())
        failed = (charge["tokens_in"] * 10 + charge["tokens_out"] * 20) / 1e6
        code, out, _ = lakewright(capsys, *arguments, "--max-cost", failed + 0.02)
        assert code == 1
        dollars = json.loads(out)["tokens"]["dollars"]
        assert failed < dollars <= failed + 0.02
        code, out, _ = lakewright(capsys, *arguments)
        assert (code, json.loads(out)["tokens"]["dollars"]) == (0, pytest.approx(failed + 12 * 0.002))


def test_an_endpoint_that_fails_ends_with_two_and_keeps_what_it_said(benchmark, tmp_path, capsys):
    with serving(failing(500), [answering] * 5) as server:
        arguments = asking(benchmark, tmp_path, server, "--concurrency", 1)
        assert_refused(
            capsys, arguments, f"endpoint {server.url}, model 'm': answers 500 (no)", "run the same command again"
        )
    assert len((tmp_path / "out" / "answers.jsonl").read_bytes().splitlines()) == 5


BAD = {
    "no such benchmark": (("--solver", "greedy"), "missing", ["missing: does not exist", "check the path"]),
    "no benchmark in a folder": (("--solver", "greedy"), "", ["holds no benchmark.jsonl", "benchmark build"]),
    "an endpoint without a model": (("--endpoint", "http://x/v1"), "rows.jsonl", ["--model-name", "give both"]),
    "an address that is none": (
        ("--endpoint", "localhost", "--model-name", "m"),
        "rows.jsonl",
        ["url is 'localhost'", "write it as http://host:port/v1"],
    ),
    "samples of one mind": (("--solver", "greedy", "--samples", 3), "rows.jsonl", ["--samples is 3", "never varies"]),
    "no answer wanted": (("--solver", "random", "--no-greedy"), "rows.jsonl", ["--samples", "--no-greedy"]),
    "a device that is not there": (
        ("--model", "MODEL", "--device", "cuda"),
        "rows.jsonl",
        ["device is cuda", "no CUDA device", "choose cpu or auto"],
    ),
    "a model that is not there": (
        ("--model", "some/where/else"),
        "rows.jsonl",
        ["some/where/else: no config.json", "give a checkpoint folder"],
    ),
    "a compact prompt for a solver": (
        ("--solver", "greedy", "--prompt", "compact"),
        "rows.jsonl",
        ["--prompt is compact", "--model", "leave it out"],
    ),
    "a device of a solver": (
        ("--solver", "greedy", "--device", "cpu"),
        "rows.jsonl",
        ["--device cpu belongs to --model"],
    ),
    "thoughts of a solver": (
        ("--solver", "greedy", "--no-thinking"),
        "rows.jsonl",
        ["--no-thinking belongs to --model"],
    ),
    "tokens of a solver": (
        ("--solver", "greedy", "--max-tokens", 9),
        "rows.jsonl",
        ["--max-tokens 9 belongs to --model"],
    ),
    "a row's text for a solver": (
        ("--solver", "greedy", "--prompt", "row"),
        "rows.jsonl",
        ["--solver reads no prompt"],
    ),
    "a cost cap of a model": (
        ("--model", "MODEL", "--max-cost", 5),
        "rows.jsonl",
        ["--max-cost 5.0 belongs to --endpoint, but --model answers; leave it out"],
    ),
    "a batch of a server": (
        ("--endpoint", "http://x/v1", "--model-name", "m", "--batch", 9),
        "rows.jsonl",
        ["--batch 9 belongs to --model, but --endpoint answers"],
    ),
    "a seed of a server": (
        ("--endpoint", "http://x/v1", "--model-name", "m", "--seed", 9),
        "rows.jsonl",
        ["--seed 9 belongs to --model or --solver, but --endpoint answers"],
    ),
    "a temperature below zero": (
        ("--solver", "random", "--temperature", -1),
        "rows.jsonl",
        ["temperature", "-1.0 does not fit"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_reported(benchmark, tmp_path, capsys, name):
    who, place, parts = BAD[name]
    who = [str(language_checkpoint()) if word == "MODEL" else word for word in who]
    assert_refused(capsys, ("benchmark", "eval", tmp_path / place, "--out", tmp_path / "out", *who), *parts)


@pytest.mark.parametrize(
    ("damage", "said"),
    [(drop("model.norm.weight"), " is missing"), (poison("model.norm.weight", float("nan")), " holds nan")],
)
def test_a_model_with_damaged_weights_is_refused_and_leaves_the_folder_free(benchmark, tmp_path, capsys, damage, said):
    folder = damage_copy(language_checkpoint(), tmp_path / "damaged", damage)
    who = ("--out", tmp_path / "out", "--model", folder)
    parts = (f"{folder}/model.safetensors: tensor model.norm.weight{said}", "fetch or train it again")
    assert_refused(capsys, ("benchmark", "eval", benchmark, *who), *parts)
    assert not (tmp_path / "out" / "job.json").exists()


@pytest.mark.deep
def test_a_start_on_a_goal_is_planned_for_and_stated_in_prompts_in_words(tmp_path, capsys):
    swap = Row("swap", 2, 2, ["..", ".."], [(0, 0), (0, 1)], [(0, 1), (0, 0)])
    write_rows(tmp_path / "rows.jsonl", [swap])
    benchmark = ("benchmark", "eval", tmp_path / "rows.jsonl", "--out", tmp_path / "out")
    assert lakewright(capsys, *benchmark, "--solver", "optimal", "--json")[0] == 0
    with serving(answering) as server:
        arguments = asking(tmp_path / "rows.jsonl", tmp_path / "asked", server)
        assert_refused(capsys, arguments, "row 'swap' cannot be described in a prompt", "is both s and G")
        assert not server.seen
    save_checkpoint(tmp_path / "model", tiny_model(), tokenizer())
    arguments = (
        "benchmark",
        "eval",
        tmp_path / "rows.jsonl",
        "--out",
        tmp_path / "reported",
        "--model",
        tmp_path / "model",
    )
    assert_refused(capsys, arguments, "a board is 2x2, the tokens codec has words for 3 to 10; leave it out")


@pytest.mark.parametrize("codec", ["tokens", "text"])
def test_a_checkpoint_is_evaluated_in_its_codec_and_a_kill_loses_a_batch_at_most(benchmark, tmp_path, capsys, codec):
    if codec == "text":
        place = language_checkpoint()
    else:
        save_checkpoint(place := tmp_path / "model", tiny_model(), tokenizer())
    arguments = ("benchmark", "eval", benchmark, "--model", place, "--batch", 5, "--max-tokens", 8, "--samples", 1)
    code, out, reported = lakewright(capsys, *arguments, "--out", tmp_path / "out", "--json")
    assert (code, reported) == (0, [])
    summary = msgspec.json.decode(out, type=Summary)
    assert (summary.pooled.outcomes.boards, summary.tokens.answers, summary.complete) == (12, 24, True)
    assert summary.tokens.completion > 0
    answers = (tmp_path / "out" / "answers.jsonl").read_bytes()
    assert (b'"text"' in answers) == (codec == "text")
    cut_off(tmp_path / "out" / "answers.jsonl", 10)
    assert lakewright(capsys, *arguments, "--out", tmp_path / "out", "--json")[1] == out
    assert (tmp_path / "out" / "answers.jsonl").read_bytes() == answers


def test_a_batch_on_a_cluster_takes_the_memory_of_the_model_and_a_gpu_where_one_is_asked_for(
    benchmark, tmp_path, capsys, monkeypatch
):
    opened, model = [], tiny_model()
    save_checkpoint(place := tmp_path / "model", model, tokenizer())

    @contextlib.contextmanager
    def open_executor(choice, task, folder=None):
        opened.append(task)
        yield SERIAL

    monkeypatch.setattr(ExecutorChoice, "open", open_executor)
    arguments = ("benchmark", "eval", benchmark, "--model", place, "--device", "cpu", "--out", tmp_path / "out")
    assert lakewright(capsys, *arguments, "--executor", "ray")[0] == 0
    weights = sum(part.numel() * part.element_size() for part in model.parameters())
    assert (opened[0].memory, opened[0].gpus) == (weights + 2 * 10**9, None)
    assert lakewright(capsys, *arguments, "--executor", "ray", "--device", "cuda")[0] == 2
    assert opened[1].gpus == 1.0


def test_a_model_that_was_trained_on_the_compact_prompt_is_asked_in_it(benchmark, tmp_path, capsys):
    arguments = ("benchmark", "eval", benchmark, "--model", language_checkpoint(), "--max-tokens", 4, "--json")
    tokens = []
    for prompt in ("own", "compact"):
        code, out, _ = lakewright(capsys, *arguments, "--prompt", prompt, "--out", tmp_path / prompt)
        assert code == 0
        tokens.append(msgspec.json.decode(out, type=Summary).tokens.prompt)
    codec = TextCodec(language(), TextSettings(prompt="compact"))
    assert tokens[1] == sum(len(codec.encode_prompt(board_of(row))) for row in ROWS) < tokens[0]


def test_solvers_are_evaluated_without_the_training_libraries(benchmark, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "trl", None)
    code, out, _ = lakewright(
        capsys, "benchmark", "eval", benchmark, "--solver", "optimal", "--out", tmp_path / "out", "--json"
    )
    assert code == 0
    assert msgspec.json.decode(out, type=Summary).pooled.outcomes.optimal_sum_of_costs == 12


def test_as_many_answers_in_text_are_decoded_together_as_the_device_holds(monkeypatch):
    asked = [WantedAnswer(row, "Which way?" * (place + 1), 0, 0.0) for place, row in enumerate(ROWS[:5])]
    fitted: list[tuple[int, int, int]] = []
    batches: list[int] = []
    full = torch.OutOfMemoryError("CUDA out of memory")

    def decode(model, words, prompts, **how):
        batches.append(how["batch"])
        if len(batches) == 3:
            raise full
        return Samples([[1]] * len(prompts), [[]] * len(prompts))

    monkeypatch.setattr(inference, "fit_answers", lambda model, *given: fitted.append(given) or 2)
    monkeypatch.setattr("lakewright.policy.inference.answers.sample", decode)
    answerer = ModelAnswerer(str(language_checkpoint()), TextSettings(max_tokens=7), "cpu", None, 0)
    with refused("1 answers of", "set --batch", "GPU is full"):
        list(answerer.answers(asked))
    assert batches == [2, 2, 1]
    ((prompt, answer, copies),) = fitted
    assert prompt == len(answerer._codec.encode_request(asked[-1].prompt))
    assert (answer, copies) == (7, 1)
