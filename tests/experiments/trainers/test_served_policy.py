"""A policy behind a server is rolled out there, so that `engineer next` tries proposals beside any trainer."""

import json

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.inference import EndpointSettings
from tests.support.processes.commands import lakewright
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
        settings = FolderSettings(rollouts=policy, trial=TrialSettings(boards=4, samples=2))
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
        ({"max_cost": 0.0, "price_out": 1.0}, "rollouts: the cost cap of 0.0 dollars leaves no room for a trial"),
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
