"""Packages for tools whose dependencies clash with ours, checked by those tools in environments of their own."""

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from core_jax.rows import write_rows
from experiments.interop.text_tasks import TextTask, board_key
from tests.support.chat_server import send, serving
from tests.support.generated_rows import small_rows
from tests.support.own_environments import HOUSE, own_environment, run_there

pytestmark = pytest.mark.deep


def test_reasoning_gym_creates_scores_and_mixes_our_dataset():
    python = own_environment("reasoning_gym", "reasoning-gym==0.1.25")
    told = run_there(python, HOUSE / "tests" / "support" / "reasoning_gym_client.py")
    assert told.stdout.startswith("reasoning-gym 0.1"), told.stdout


def test_verifiers_validates_every_board_and_scores_the_answers_of_a_scripted_model(tmp_path):
    python = own_environment("verifiers", "verifiers==0.4.0")
    write_rows(tmp_path / "rows.jsonl", small_rows())
    boards = ["verifiers-lakewright", "--taskset.benchmark", tmp_path / "rows.jsonl"]
    where = ["--runtime.type", "subprocess", "--no-rich", "-o", tmp_path, "--run.dir", "validated"]
    run_there(python.with_name("vf-validate"), *boards, *where)
    checked = lines_of(tmp_path / "validated" / "results.jsonl")
    assert [line["valid"] for line in checked] == [True] * len(small_rows()), checked[0]

    answers = {TextTask(row).question: TextTask(row).answer for row in small_rows()}
    answers[TextTask(small_rows()[0]).question] = "I do not know."
    with serving(lambda request, body: stream(request, answers[prompt_of(body)])) as server:
        run_there(
            python.with_name("vf-eval"),
            "verifiers-lakewright",
            *("--env.taskset.benchmark", tmp_path / "rows.jsonl", "-n", "4", "-c", "2"),
            *("--model", "scripted", "--client.base-url", server.url, "--env.agent.harness.id", "null"),
            *("--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich"),
            *("-o", tmp_path, "--run.dir", "evaluated"),
        )
    traces = lines_of(tmp_path / "evaluated" / "traces.jsonl")
    assert len(traces) == 4
    found = {trace["task"]["data"]["idx"]: trace["traces"][0] for trace in traces}
    for number in range(4):
        earned = {name: reward["score"] for name, reward in found[number]["rewards"].items()}
        assert earned == dict.fromkeys(("valid", "optimal"), float(number > 0)), found[number]
        assert found[number]["metrics"]["failure/parse_error"] == float(number == 0)
        assert found[number]["task"]["key"] == board_key(small_rows()[number])


def test_verifiers_bounds_and_repeats_boards_that_are_drawn_without_end():
    python = own_environment("verifiers", "verifiers==0.4.0")
    run_there(python, HOUSE / "tests" / "support" / "verifiers_client.py")


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def prompt_of(body: dict) -> str:
    """The words of the last message of a request, which may come in parts."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def stream(request: BaseHTTPRequestHandler, text: str) -> None:
    """A completion in pieces, as verifiers asks for it."""
    pieces = [{"role": "assistant", "content": text}, {}]
    lines = []
    for piece, reason in zip(pieces, (None, "stop"), strict=True):
        choice = {"index": 0, "delta": piece, "finish_reason": reason}
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]}
        lines.append(f"data: {json.dumps(chunk)}\n\n")
    send(request, "".join([*lines, "data: [DONE]\n\n"]).encode(), Content_Type="text/event-stream")
