"""A policy behind a server is rolled out there, so that `engineer next` tries proposals beside any trainer."""

import json

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer.settings import EngineerSettings
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.trainers.source import ProblemSource, find_served_policy
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.inference import EndpointSettings
from tests.support.processes.commands import assert_refused, lakewright
from tests.support.samples.engineer_folders import ADDITION, begin_engineer, record_some
from tests.support.servers.chat_server import completion, failing, send, serving

pytestmark = pytest.mark.usefixtures("quick_endpoint")


def answer_short_sums(request, body):
    """Right where a sum is of numbers of one digit, else no number."""
    prompt = body["messages"][0]["content"]
    terms = prompt.removesuffix("=").split("+")
    text = str(sum(map(int, terms))) if max(map(len, terms)) == 1 else "?"
    send(request, completion(text))


@pytest.fixture
def begin(tmp_path):
    def begin_one(url, **changes):
        policy = EndpointSettings(url=url, model="policy", **{"max_tokens": 8, "retries": 0} | changes)
        settings = FolderSettings(rollouts=policy, trial=TrialSettings(share=0, boards=4, samples=2))
        folder = begin_engineer(tmp_path / "e", settings=settings)
        record_some(folder, ProblemSource(folder.path).take(8))
        return folder

    return begin_one


def test_proposals_are_tried_on_the_policy_of_the_server(begin, capsys):
    with serving(answer_short_sums) as server:
        folder = begin(server.url)
        assert lakewright(capsys, "engineer", "next", folder.path)[0] == 0
    (decision,) = folder.files.read_version(folder.files.newest()).decisions
    assert len(decision["trial"]["candidates"]) >= 2
    valid = {cell["cell"][0]: set(cell["valid"]) for cell in decision["trial"]["cells"]}
    assert valid == {1: {2}, 2: {0}, 3: {0}, 4: {0}}
    asked = [(body["messages"][0]["content"], body["seed"]) for body in server.seen]
    assert len(set(asked)) == len(asked), "the answers to a problem are not the same one again"
    assert {body["temperature"] for body in server.seen} == {1.0}
    assert folder.status().spent.trials == 50 * len(asked)
    assert len((folder.path / "trial-spending.jsonl").read_text().splitlines()) >= len(asked)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, r"endpoint http://.*: answers 500"),
        ({"max_cost": 0.0, "price_out": 1.0}, "rollouts: the cost cap of 0.0 dollars leaves no room for more"),
    ],
    ids=["a server that is down", "a cap"],
)
def test_a_trial_that_cannot_be_held_decides_nothing_and_loses_nothing(begin, changes, told):
    with serving(failing(500)) as server:
        folder = begin(server.url, **changes)
        with pytest.raises(InputError, match=told):
            folder.next()
    assert (folder.files.list_versions(), folder.status().pending) == ([0], 32)


def test_the_server_is_named_where_the_engineer_is_begun(tmp_path, capsys):
    begin = ("engineer", "begin", tmp_path / "e", "--environment", ADDITION)
    named = ("rollouts.url=http://localhost:8000/v1", "rollouts.model=policy", "rollouts.max_tokens=512")
    assert lakewright(capsys, *begin, *named)[0] == 0
    written = json.loads((tmp_path / "e" / "engineer.json").read_text())["settings"]
    assert written["rollouts"]["max_tokens"] == 512


def test_the_servers_of_a_folder_are_asked_with_its_temperatures(tmp_path):
    assert set(FolderSettings.__struct_fields__) - set(EngineerSettings.__struct_fields__) == {
        *("endpoint", "temperature", "rollouts", "rollout_temperature", "fewest_answers")
    }
    with serving(answer_short_sums) as server:
        models = [EndpointSettings(url=server.url, model=name, retries=0) for name in ("engineer", "policy")]
        settings = FolderSettings(endpoint=models[0], temperature=0.25, rollouts=models[1], rollout_temperature=0.5)
        folder = begin_engineer(tmp_path / "e", teacher="endpoint", settings=settings)
        record_some(folder, ProblemSource(folder.path).take(8))
        folder.next()
        assert {(body["model"], body["temperature"]) for body in server.seen} == {("engineer", 0.25)}
        roll_out = find_served_policy(settings, folder.environment, tmp_path / "spending.jsonl")
        assert roll_out
        roll_out(folder.environment.draw(folder.files.read_version(0).design, 2, 0), 1, 0)
    assert {(body["model"], body["temperature"]) for body in server.seen[1:]} >= {("policy", 0.5)}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["temperature=0.2"], "settings: temperature is 0.2, but endpoint is missing; give endpoint.url"),
        (
            ["endpoint.url=http://localhost:1/v1", "endpoint.model=m"],
            "settings: endpoint is given, but teacher rules asks",
        ),
        (
            ["rollout_temperature=0.2"],
            "settings: rollout_temperature is 0.2, but rollouts is missing; give rollouts.url",
        ),
        (["evidence.preset=v1"], "settings: evidence is for models, but teacher rules asks no model"),
        (["rollback.level=0.1"], "settings: rollback compares answers to held-out problems"),
    ],
)
def test_a_setting_that_would_have_no_effect_is_refused(tmp_path, capsys, words, line):
    begin = ("engineer", "begin", tmp_path / "e", "--environment", ADDITION, "--teacher", "rules")
    assert_refused(capsys, (*begin, *words), line)
    assert not (tmp_path / "e").exists()
