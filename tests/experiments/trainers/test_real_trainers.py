"""The adapters against the packages they are for, in environments of their own, and their examples."""

import json
from pathlib import Path

import pytest

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.traces import Copied, record_traces
from tests.support.processes.commands import HOUSE
from tests.support.samples.engineer_folders import begin_engineer, read_groups
from tests.support.servers.chat_server import serving
from tests.support.servers.scripted_model import prompt_of, stream
from tests.support.tools.own_environments import run_there
from tests.support.tools.trainer_environments import make_python

pytestmark = pytest.mark.deep
EXAMPLES, TOOLS = HOUSE / "docs" / "examples", HOUSE / "tests" / "support" / "tools"


def assert_example_redesigned(folder: Path, groups: int) -> None:
    assert EngineerFolder(folder).status().version >= 2
    found = read_groups(folder)
    assert (len(found), {len(lines) for lines in found.values()}) == (groups, {4})
    assert all(len({(line.version, line.key) for line in lines}) == 1 for lines in found.values())
    assert len({lines[0].version for lines in found.values()}) == 3


def test_the_taskset_of_verifiers(tmp_path):
    begin_engineer(tmp_path / "e", held_out=3)
    told = run_there(make_python("verifiers"), TOOLS / "taskset_client.py", tmp_path / "e")
    assert told.stdout.endswith("the taskset is sound\n")


def test_the_traces_of_vf_eval(tmp_path):
    begin_engineer(tmp_path / "e")
    answers = {problem.prompt: problem.answer for problem in ProblemSource(tmp_path / "e").take(3)}
    answers[list(answers)[1]] = "I do not know."
    with serving(lambda request, body: stream(request, answers[prompt_of(body)])) as server:
        run_there(
            make_python("verifiers").with_name("vf-eval"),
            "verifiers-engineer",
            *("--env.taskset.folder", tmp_path / "e", "-n", "3", "-r", "2", "-c", "2"),
            *("--model", "scripted", "--client.base-url", server.url, "--env.agent.harness.id", "null"),
            *("--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich"),
            *("-o", tmp_path, "--run.dir", "run"),
        )
    for copied in (Copied(6, 0, {}), Copied(0, 6, {})):
        assert record_traces(tmp_path / "e", tmp_path / "run") == copied
    groups = read_groups(tmp_path / "e").values()
    assert [len(lines) for lines in groups] == [2] * 3
    lines = [line for group in groups for line in group]
    assert sorted((line.valid, line.reward, line.failure) for line in lines) == [
        *[(False, 0.0, "no_number")] * 2,
        *[(True, 1.0, "")] * 4,
    ]


def test_episodes_of_several_turns_in_vf_eval(tmp_path):
    """A scripted model halves by calls of the tool; where it would learn a distance it says a text alone."""
    EngineerFolder.begin(tmp_path / "e", f"{EXAMPLES / 'hunt.py'}:Hunt", "random")

    def answer(request, body):
        if "how far away" in json.dumps(body["messages"][0]):
            return stream(request, "I stop.")
        calls = [call for message in body["messages"] for call in message.get("tool_calls") or []]
        guesses = [json.loads(call["function"]["arguments"])["number"] for call in calls]
        told = [json.dumps(message) for message in body["messages"] if message["role"] == "tool"]
        if told and "Found" in told[-1]:
            return stream(request, "It is done.")
        low = max([1, *(guess + 1 for guess, text in zip(guesses, told, strict=True) if "higher" in text)])
        high = min([32, *(guess - 1 for guess, text in zip(guesses, told, strict=True) if "lower" in text)])
        return stream(request, "guess", number=(low + high) // 2)

    with serving(answer) as server:
        run_there(
            make_python("verifiers").with_name("vf-eval"),
            "verifiers-engineer",
            *("--env.taskset.folder", tmp_path / "e", "-n", "4", "-r", "2", "-c", "2"),
            *("--model", "scripted", "--client.base-url", server.url, "--env.agent.harness.id", "null"),
            *("--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich"),
            *("-o", tmp_path, "--run.dir", "run"),
        )
    assert record_traces(tmp_path / "e", tmp_path / "run") == Copied(8, 0, {})
    lines = [line for group in read_groups(tmp_path / "e").values() for line in group]
    assert sorted((line.stratum, line.valid, line.failure) for line in lines) == [
        *[("distance", False, "no_guess")] * 4,
        *[("way", True, "")] * 4,
    ]


def test_the_example_of_verifiers(tmp_path):
    run_there(make_python("verifiers"), EXAMPLES / "taskset_engineer.py", tmp_path)
    assert_example_redesigned(tmp_path / "engineer", 48)
    assert record_traces(tmp_path / "engineer", tmp_path / "run") == Copied(0, 192, {})
    traces = tmp_path / "run" / "rollouts" / "step_1" / "train" / "all" / "traces.jsonl"
    assert json.loads(traces.read_text().splitlines()[0])["traces"][0]["verifiers"]["version"] == "0.4.0"


def test_the_data_set_and_rewards_of_verl(tmp_path):
    begin_engineer(tmp_path / "e", held_out=3)
    told = run_there(make_python("verl"), TOOLS / "verl_client.py", tmp_path / "e")
    assert told.stdout.endswith("verl is served\n")


def test_the_replay_buffers_of_verl():
    told = run_there(make_python("verl"), TOOLS / "verl_groups_client.py")
    assert told.stdout.endswith("groups are measured\n")


def test_the_example_of_verl(tmp_path):
    run_there(make_python("verl"), EXAMPLES / "verl_engineer.py", tmp_path / "e")
    assert_example_redesigned(tmp_path / "e", 48)


def test_the_example_of_openenv(tmp_path):
    run_there(make_python("openenv"), EXAMPLES / "openenv_engineer.py", tmp_path / "e")
    assert_example_redesigned(tmp_path / "e", 48)


def test_asynchronous_clients_of_openenv(tmp_path):
    begin_engineer(tmp_path / "e")
    told = run_there(
        make_python("openenv"), TOOLS / "openenv_engineer_client.py", tmp_path / "e", PYTHONPATH=str(EXAMPLES)
    )
    assert told.stdout.endswith("all have played\n")
    groups = read_groups(tmp_path / "e")
    assert (len(groups), {len(lines) for lines in groups.values()}) == (8, {4})
    assert all(line.valid for lines in groups.values() for line in lines)
