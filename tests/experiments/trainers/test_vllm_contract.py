"""The server of TRL 1.16 and prime-rl is vLLM's own: what samples for the trainer may be the engineer, too.

The server here has the requests and replies of theirs; TRL's own client and the engineer ask it side by side.
"""

import json
import re

import pytest
from trl.generation import vllm_client
from trl.scripts.vllm_serve import ScriptArguments, build_command

from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.inference import EndpointSettings
from tests.support.samples.engineer_folders import begin_engineer, record_some
from tests.support.servers.trl_server import LONGEST, MODEL, serving_as_trl

ANSWER = json.dumps({"edits": {"2": {"share": 0.05, "terms": -1, "carry": 0, "reason": "too hard"}}})


def say(messages):
    return ANSWER if messages[0]["role"] == "system" else "57"


@pytest.fixture
def begin(tmp_path, quick_endpoint):
    def begin_one(url, model=MODEL, **changes):
        endpoint = EndpointSettings(url=f"{url}/v1", model=model, retries=0, **{"max_tokens": 1024} | changes)
        folder = begin_engineer(tmp_path / "e", teacher="endpoint", settings=FolderSettings(endpoint=endpoint))
        record_some(folder, ProblemSource(folder.path).take(8))
        return folder

    return begin_one


def test_what_trl_starts_is_the_server_of_vllm():
    command = build_command(ScriptArguments(model=MODEL, port=8001))
    assert command[1:5] == ["-m", "vllm.entrypoints.cli.main", "serve", MODEL]


def test_the_checkpoint_that_trl_samples_from_is_the_engineer(begin, monkeypatch):
    monkeypatch.setattr(vllm_client, "is_vllm_available", lambda **_: True)
    with serving_as_trl(say) as server:
        client = vllm_client.VLLMClient(base_url=server.url)
        sampled = client.chat([[{"role": "user", "content": "12+45="}]], max_tokens=8)
        folder = begin(client.base_url, client.model)
        report = folder.next()
    assert bytes(sampled["completion_ids"][0]) == b"57"
    assert report.line.startswith("2 share +0.05, terms -1 (too hard)")
    assert report.spent.engineer == len(ANSWER)
    of_trl, ours = server.seen
    assert of_trl["model"] == ours["model"]
    assert ours["response_format"]["type"] == "json_schema"
    assert set(ours) == {"model", "messages", "max_completion_tokens", "temperature", "seed", "response_format"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"max_tokens": LONGEST}, rf"answers 400 \('max_tokens' or 'max_completion_tokens' is too large: {LONGEST}"),
        ({"model": "policy"}, r"answers 404 \(The model `policy` does not exist"),
    ],
    ids=["more tokens than the model reads", "another model"],
)
def test_what_the_server_refuses_is_said_in_a_line_and_the_design_stays(begin, changes, told):
    with serving_as_trl(say) as server:
        report = begin(server.url, **changes).next()
    assert not report.new
    assert re.search(told, report.line)
