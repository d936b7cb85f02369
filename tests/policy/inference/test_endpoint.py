"""The client of OpenAI-compatible servers, against a server that misbehaves in every way."""

import sys
import time

import pytest

from core_jax.errors import InputError
from policy.inference import (
    BudgetSpentError,
    Endpoint,
    EndpointAnswer,
    EndpointError,
    EndpointSettings,
    Question,
    endpoint,
)
from tests.support.chat_server import (
    closed,
    completion,
    cut,
    dripping,
    echo,
    failing,
    garbage,
    saying,
    send,
    serving,
    silent,
)

KEY = "sk-very-secret-0123456789"
HELLO = [{"role": "user", "content": "hello"}]
EMPTY = saying(None, choices=[])
NOT_A_COMPLETION = saying(None, choices=[{"message": "hello"}])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No key of this machine, and short pauses."""
    for name in endpoint.KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(endpoint, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


def endpoint_of(server, **changes) -> Endpoint:
    given = {"model": "m", "timeout": 0.4, "retries": 2, "max_tokens": 64}
    return Endpoint(EndpointSettings(url=server.url, **{**given, **changes}))


def test_an_answer_comes_with_its_tokens():
    with serving(echo) as server:
        assert endpoint_of(server).ask(HELLO) == EndpointAnswer("hello", 100, 50, "stop")
    assert server.seen == [{"model": "m", "messages": HELLO, "max_completion_tokens": 64}]
    assert server.keys == {"Bearer none"}


def test_a_question_may_set_temperature_seed_and_a_schema():
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    with serving(echo) as server:
        endpoint_of(server, limit_field="max_tokens").ask(HELLO, temperature=0.0, seed=3, schema=schema)
    asked = server.seen[0]
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (0.0, 3, 64)
    assert asked["response_format"]["json_schema"]["schema"] == schema


def test_a_schema_may_be_told_in_the_form_of_other_servers():
    with serving(echo) as server:
        endpoint_of(server).ask(HELLO, schema={"type": "object"}, form="json_object")
    assert server.seen[0]["response_format"] == {"type": "json_object", "schema": {"type": "object"}}


FAULTS = {
    "too many requests": failing(429),
    "an internal error": failing(500),
    "a bad gateway": failing(502),
    "overload": failing(503),
    "silence": silent,
    "a drip": dripping,
    "half a JSON": garbage,
    "no choices": EMPTY,
    "something else": NOT_A_COMPLETION,
    "a closed connection": closed,
    "an answer cut off": cut,
    "a page of HTML": lambda request, body: send(request, b"<html>", Content_Type="text/html"),
    "JSON without end": lambda request, body: send(request, b"[" * 100_000),
    "negative tokens": saying("no", usage={"prompt_tokens": -1, "completion_tokens": -1}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_passes_is_tried_again(name):
    with serving(echo, [FAULTS[name], FAULTS[name]]) as server:
        assert endpoint_of(server).ask(HELLO).text == "hello"
    assert len(server.seen) == 3


@pytest.mark.parametrize("name", FAULTS)
def test_what_stays_is_told_in_a_line_after_so_many_tries(name):
    with serving(FAULTS[name]) as server:
        with pytest.raises(EndpointError) as refused:
            endpoint_of(server, retries=1).ask(HELLO)
        told = str(refused.value)
        assert told.startswith(f"endpoint {server.url}, model 'm': ")
        assert told.endswith("(at most 2 tries); check the server, the model's name and the key in LAKEWRIGHT_API_KEY, "
                             "then run the same command again")  # fmt: skip
        assert "\n" not in told
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_another_try_cannot_mend_is_told_at_once(status):
    with serving(failing(status, "unheard\nof")) as server, pytest.raises(EndpointError) as refused:
        endpoint_of(server).ask(HELLO)
    assert f"answers {status} (" in str(refused.value)
    assert "unheard of" in str(refused.value)
    assert len(server.seen) == 1


def test_a_server_that_is_not_there_is_told():
    with serving(echo) as server:
        pass
    with pytest.raises(EndpointError, match="cannot be reached"):
        endpoint_of(server, retries=1).ask(HELLO)


@pytest.mark.parametrize("name", endpoint.KEYS)
def test_the_key_comes_from_the_environment_and_is_in_no_error(monkeypatch, name):
    monkeypatch.setenv(name, KEY)
    with serving(failing(401, f"bad key: {KEY}")) as server, pytest.raises(EndpointError) as refused:
        endpoint_of(server).ask(HELLO)
    assert server.keys == {f"Bearer {KEY}"}
    assert KEY not in str(refused.value)
    assert "bad key: ***" in str(refused.value)


def questions(count: int) -> list[Question]:
    return [Question([{"role": "user", "content": f"say {number}"}]) for number in range(count)]


def test_questions_are_asked_side_by_side_and_each_gets_its_answer():
    def slow(request, body):
        time.sleep(0.05)
        echo(request, body)

    with serving(slow, [failing(429), garbage, failing(500), closed]) as server:
        found = dict(endpoint_of(server, concurrency=4).ask_all(questions(16)))
    assert {place: answer.text for place, answer in found.items()} == {n: f"say {n}" for n in range(16)}
    assert server.most == 4


def test_answers_on_their_way_are_kept_when_one_fails_for_good():
    def picky(request, body):
        wrong = body["messages"][0]["content"] == "say 5"
        (failing(400) if wrong else echo)(request, body)

    found = {}
    with serving(picky) as server, pytest.raises(EndpointError, match="answers 400"):
        found.update(endpoint_of(server, concurrency=3).ask_all(questions(50)))
    assert set(found) >= {0, 1, 2, 3, 4}, "asked before"
    assert set(found) <= set(range(12)), "nothing is asked after the error is known"


def test_the_cost_cap_is_never_exceeded_and_stops_cleanly():
    # An answer costs 100 x 1 + 50 x 2 = 200 millionths of a dollar, and may cost (5 + 64) + 2 x 64 = 197 at most.
    answer_cost, cap = 200e-6, 1.1e-3
    with serving(echo) as server:
        asked = endpoint_of(server, price_in=1.0, price_out=2.0, max_cost=cap, concurrency=4)
        found = {}
        with pytest.raises(BudgetSpentError):
            found.update(asked.ask_all(questions(50)))
    assert len(found) == 5 == len(server.seen)
    assert asked.spent == pytest.approx(5 * answer_cost)
    assert asked.spent <= cap


def test_what_was_spent_before_counts_for_the_cap_and_unknown_tokens_cost_the_most():
    with serving(saying("hello", usage=None)) as server:
        settings = EndpointSettings(server.url, "m", 100, price_out=1e4, max_cost=2.0)
        asked = Endpoint(settings, spent=1.0)
        assert asked.ask(HELLO) == EndpointAnswer("hello", None, None, "stop")
        assert asked.spent == pytest.approx(2.0)
        with pytest.raises(BudgetSpentError):
            asked.ask(HELLO)


def test_an_answer_without_text_is_empty_and_broken_letters_become_marks():
    broken = completion("ok?").replace(b"ok?", b"\\ud800!")
    with serving(lambda request, body: send(request, broken), [saying(None)]) as server:
        assert [endpoint_of(server).ask(HELLO).text for _ in range(2)] == ["", "\ufffd!"]


WRONG = {
    "no address": ({"url": "localhost:8000"}, "write it as http://host:port/v1"),
    "a password": ({"url": "http://me:secret@host/v1"}, "url of host holds more than a place"),
    "a key in the address": ({"url": "http://host/v1?key=secret"}, "give a key in LAKEWRIGHT_API_KEY instead"),
    "a cap without a price": ({"max_cost": 1.0}, "give price_in and price_out"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused(name):
    changes, told = WRONG[name]
    with pytest.raises(ValueError, match=told) as refused:
        EndpointSettings(**{"url": "http://host/v1", "model": "m", **changes})
    assert "secret" not in str(refused.value)


def test_without_the_library_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(InputError, match=r"pip install 'lakewright\[endpoint\]'"):
        Endpoint(EndpointSettings("http://host/v1", "m"))
