"""Packages for tools whose dependencies clash with ours, checked by those tools in environments of their own."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from lakewright.core_jax.rows import board_key, write_rows
from lakewright.experiments.boards.episodes.pools import pool_rows
from lakewright.experiments.environments.text_tasks import TextTask
from tests.support.boards.generated_rows import small_rows
from tests.support.processes.commands import HOUSE, surroundings
from tests.support.servers.chat_server import serving
from tests.support.servers.scripted_model import prompt_of, stream
from tests.support.tools.own_environments import own_environment, run_there
from tests.support.tools.text_games import joint_moves

pytestmark = pytest.mark.deep
VERSIONS = {
    "reasoning_gym": ["reasoning-gym==0.1.25"],
    "verifiers": ["verifiers==0.4.0"],
    "openenv": ["openenv==0.10.0"],
}


@pytest.mark.parametrize("name", ["reasoning_gym", "verifiers", "openenv"])
def test_a_package_can_be_installed_beside_lakewright(name):
    python = own_environment(name, *VERSIONS[name])
    guest = HOUSE / "docs" / "integrations" / f"{name}_lakewright"
    uv = Path(sys.executable).with_name("uv")
    found = run_there(uv, "pip", "install", "--dry-run", "--python", python, HOUSE, guest)
    assert f"+ {name.replace('_', '-')}-lakewright" in found.stderr


def test_reasoning_gym_creates_scores_and_mixes_our_dataset():
    python = own_environment("reasoning_gym", *VERSIONS["reasoning_gym"])
    told = run_there(python, HOUSE / "tests" / "support" / "tools" / "reasoning_gym_client.py")
    assert told.stdout.startswith("reasoning-gym 0.1"), told.stdout


def test_verifiers_validates_every_board_and_scores_the_answers_of_a_scripted_model(tmp_path):
    python = own_environment("verifiers", *VERSIONS["verifiers"])
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
    python = own_environment("verifiers", *VERSIONS["verifiers"])
    checked = run_there(python, HOUSE / "tests" / "support" / "tools" / "verifiers_client.py")
    assert checked.stdout.endswith("40 boards\n")


def test_openenv_validates_and_plays_on_the_running_server(tmp_path):
    python = own_environment("openenv", *VERSIONS["openenv"])
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = json.dumps({"size": 4, "agents": 2, "hole_ratio": 0.2, "boards": 8})
    rows = pool_rows(**json.loads(options))
    program = [python, "-m", "openenv_lakewright.server.app", "--port", str(port)]
    with open(tmp_path / "log.txt", "w") as log:
        env = surroundings() | {"LAKEWRIGHT_OPTIONS": options}
        server = subprocess.Popen(program, stdout=log, stderr=subprocess.STDOUT, env=env)
        try:
            wait_until_healthy(url, server, tmp_path / "log.txt")
            run_there(python.with_name("openenv"), "validate", "--url", url)
            games = json.dumps([joint_moves(row) for row in rows])
            played = run_there(python, HOUSE / "tests" / "support" / "tools" / "openenv_client.py", url, games)
            assert played.stdout.endswith("openenv plays\n")
        finally:
            server.terminate()
            server.wait()


def test_openenv_finds_the_package_sound():
    python = own_environment("openenv", *VERSIONS["openenv"])
    package = HOUSE / "docs" / "integrations" / "openenv_lakewright"
    told = run_there(python.with_name("openenv"), "validate", package, "--level", "static", "--skip-build")
    assert "Verdict: PASS" in told.stdout


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_until_healthy(url: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/health", timeout=1)
            return
        time.sleep(0.1)
    raise AssertionError(f"the server does not answer: {log.read_text()}")


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]
