"""Engineers behind a server: forms of asking, refusals, costs, and runs whose server fails."""

import json
import shutil

import pytest

from lakewright.engineer.evidence import token_estimate
from lakewright.engineer.teachers import answer_schema
from lakewright.experiments.environments.lake import design_of
from lakewright.experiments.jobs.resumable.spending import Spending
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.token_budget import count_stage_tokens
from lakewright.experiments.loop.settings.run_settings import QuestionSettings
from lakewright.policy.inference import EndpointSettings
from tests.support.models.tiny_policy import ENV, boards_as_settings, tiny_run
from tests.support.refusals import refused
from tests.support.samples.evidence import GOOD, SPACE
from tests.support.samples.tiny_runs import before_the_first_decision, decision, redesign_again, run_loop
from tests.support.servers.chat_server import KEY, closed, completion, dripping, failing, saying, send, serving, silent

pytestmark = pytest.mark.usefixtures("quick_endpoint")


def asked(run: RunFolder, server, **changes):
    """The decision of an engineer behind a server."""
    given = {"url": server.url, "model": "m", "timeout": 0.4, "retries": 1, **changes}
    engineer = QuestionSettings(endpoint=EndpointSettings(**given), key=False)
    return redesign_again(tiny_run(teacher="endpoint", engineer=engineer), run, 0)


@pytest.fixture
def run(tmp_path):
    """A run that waits for its first decision."""
    return before_the_first_decision(RunFolder(tmp_path / "run"))


def test_a_server_is_asked_for_json_under_the_schema(run):
    with serving(saying(json.dumps(GOOD))) as server:
        found = asked(run, server)
    schema = answer_schema(list(ENV.sizes), SPACE, inline=True, summary=False)
    assert server.seen[0]["response_format"]["json_schema"]["schema"] == schema
    assert found.verdict.status == "projected", "data ratios have to sum to one"
    assert found.proposal.tokens == 50


FORMS = ["json_schema", "json_object", None]


@pytest.mark.parametrize("known", FORMS)
def test_a_server_is_asked_in_the_best_form_that_it_knows_and_in_words_if_in_none(run, known):
    def old(request, body):
        form = body.get("response_format", {}).get("type")
        if form != known:
            return failing(422, f"response_format {form} is not supported")(request, body)
        return saying(json.dumps(GOOD) if form else f"Well.\nANSWER:\n{json.dumps(GOOD)}")(request, body)

    with serving(old) as server:
        found = asked(run, server)
    assert found.proposal.delta.edits.keys() == {3, 5}
    asked_in = [body.get("response_format", {}).get("type") for body in server.seen]
    assert asked_in == FORMS[: FORMS.index(known) + 1]


def test_a_server_may_be_asked_in_words_from_the_first(run):
    with serving(saying(f"ANSWER:{json.dumps(GOOD)}")) as server:
        asked(run, server, schemas=())
    assert ["response_format" in body for body in server.seen] == [False]


def test_what_a_server_takes_is_recorded_and_capped_over_the_stages_and_failures_of_a_run(run):
    prices = {"price_in": 10, "price_out": 20, "max_tokens": 60, "retries": 0}
    taken = (100 * 10 + 50 * 20) / 1e6
    with serving(saying(json.dumps(GOOD))) as server:
        assert asked(run, server, **prices, max_cost=0.1).proposal.dollars == pytest.approx(taken)
        assert Spending(run.spending).count_tokens() == (100, 50)
        server.plan.append(closed)
        assert "sends no completion" in asked(run, server, **prices, max_cost=0.2).verdict.reasons[0]
        tokens_in, tokens_out = Spending(run.spending).count_tokens()
        assert tokens_out == 50 + 60, "what failed may have cost its most"
        before, spent = len(server.seen), (tokens_in * 10 + tokens_out * 20) / 1e6
        refused = asked(run, server, **prices, max_cost=spent + taken)
        assert len(server.seen) == before, "asked beyond the cap"
    assert "leaves no room" in refused.verdict.reasons[0]


def test_a_server_that_does_not_count_is_charged_by_the_length_of_its_answer(run):
    said = json.dumps(GOOD)
    with serving(saying(said, usage=None)) as server:
        assert asked(run, server).proposal.tokens == token_estimate(said)
    with serving(saying(said, usage={"prompt_tokens": 1, "completion_tokens": 10**9})) as server:
        assert asked(run, server, max_tokens=60).proposal.tokens == 60


def test_a_refusal_goes_back_to_the_model_which_may_do_better(run):
    with serving(saying(json.dumps(GOOD)), [saying("no idea")]) as server:
        found = asked(run, server)
    assert [attempt.verdict.status for attempt in found.refused] == ["refused"]
    assert found.proposal.delta.edits.keys() == {3, 5}
    assert "were refused" in server.seen[1]["messages"][-1]["content"]


ANSWERS = {
    "slow": (silent, "is silent"),
    "broken": (failing(500), "answers 500"),
    "empty": (saying(None), "answer: not JSON"),
    "malicious": (saying("</think>{}\x1b[2J<script>alert(1)</script>" * 1000), "answer: "),
    "endless": (lambda request, body: send(request, completion("[" * 1_000_000)), "answer: "),
    "dripping": (dripping, "not whole after"),
    "half a surrogate pair": (saying('{"edits": {"\\ud800": {"reason": "x"}}}'), "half a surrogate pair"),
    "half a surrogate pair in an error": (failing(500, "\ud800"), "answers 500"),
    "a wrong key": (failing(401, f"bad key {KEY}"), "answers 401"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stage_with_a_failing_engineer_keeps_its_config_and_says_so(run, name):
    reply, reason = ANSWERS[name]
    with serving(reply) as server:
        found = asked(run, server, retries=0)
    assert (found.verdict.status, found.verdict.design) == ("refused", design_of(ENV))
    assert reason in found.verdict.reasons[0]
    assert len(found.refused) == tiny_run().guard.tries - 1


def test_a_run_with_a_server_that_is_down_still_ends(run):
    with serving(failing(503)) as server:
        pass
    engineer = QuestionSettings(endpoint=EndpointSettings(url=server.url, model="m", retries=0), key=False)
    shutil.rmtree(run.folder)
    run_loop(tiny_run(teacher="endpoint", engineer=engineer), run)
    for number in (0, 1):
        assert "cannot be reached" in decision(run, number).verdict.reasons[0]
        assert run.stage(number).design() == design_of(ENV)
        assert count_stage_tokens(run.stage(number)).engineer == 0


def test_an_endpoint_without_a_key_or_a_server_is_reported_before_anything_is_done(tmp_path):
    run = RunFolder(tmp_path / "run")
    engineer = QuestionSettings(endpoint=EndpointSettings(url="http://127.0.0.1:9/v1", model="m"))
    with refused("teacher endpoint: no key", "LAKEWRIGHT_API_KEY", "engineer.key=false"):
        run_loop(tiny_run(teacher="endpoint", engineer=engineer), run)
    assert not run.folder.exists()
    with refused("teacher endpoint", "engineer.endpoint.url", kind=ValueError):
        type(tiny_run())(**boards_as_settings(ENV), teacher="endpoint")
