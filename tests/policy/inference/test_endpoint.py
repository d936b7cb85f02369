"""The client of OpenAI-compatible servers, against a server that misbehaves in every way."""

import multiprocessing
import threading
import time
import tracemalloc

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.policy.inference import (
    Endpoint,
    EndpointAnswer,
    EndpointError,
    EndpointSettings,
    chat_request,
    endpoint,
)
from tests.support.refusals import refused
from tests.support.servers.chat_server import (
    KEY,
    LONG,
    closed,
    completion,
    dripping_headers,
    echo,
    failing,
    flooding,
    garbage,
    redirecting,
    saying,
    send,
    serving,
    silent,
    twice,
)
from tests.support.servers.questions import FAULTS, HELLO, endpoint_of, questions

pytestmark = pytest.mark.usefixtures("quick_endpoint")


def test_an_answer_comes_with_its_tokens():
    with serving(echo) as server:
        assert endpoint_of(server).ask(HELLO) == EndpointAnswer("hello", 100, 50, "stop")
    assert server.seen == [{"model": "m", "messages": HELLO, "max_completion_tokens": 64}]
    assert server.keys == {"Bearer none"}


@pytest.mark.filterwarnings("ignore:os.fork\\(\\) was called", "ignore:.*multi-threaded, use of fork")
def test_a_forked_process_asks_by_itself_and_leaves_what_was_asked_before():
    context, go_on = multiprocessing.get_context("fork"), threading.Event()

    def wait_and_echo(request, body):
        go_on.wait(LONG)
        echo(request, body)

    with serving(echo, [echo, wait_and_echo, wait_and_echo]) as server:
        asking = endpoint_of(server)
        answers = asking.ask_all(questions(3))
        next(answers)
        told = context.SimpleQueue()

        def work() -> None:
            try:
                next(answers)  # whose event loop is in the process that forked
            except InputError as error:
                told.put(str(error))
            told.put(asking.ask(HELLO).text)

        process = context.Process(target=work, daemon=True)
        process.start()
        process.join(20)
        hangs = process.is_alive()
        process.kill()
        assert not hangs
        assert "not its fork; ask again" in told.get()
        assert told.get() == "hello"
        go_on.set()
        assert len(list(answers)) == 2


def test_a_question_may_set_temperature_seed_and_a_schema():
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    with serving(echo) as server:
        endpoint_of(server, limit_field="max_tokens").ask(HELLO, temperature=0.0, seed=3, schema=schema)
    asked = server.seen[0]
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (0.0, 3, 64)
    assert asked["response_format"]["json_schema"]["schema"] == schema


def test_a_schema_may_be_sent_in_the_form_of_other_servers():
    with serving(echo) as server:
        endpoint_of(server).ask(HELLO, schema={"type": "object"}, form="json_object")
    assert server.seen[0]["response_format"] == {"type": "json_object", "schema": {"type": "object"}}


@pytest.mark.parametrize("name", FAULTS)
def test_what_passes_is_tried_again(name):
    with serving(echo, [FAULTS[name], FAULTS[name]]) as server:
        assert endpoint_of(server).ask(HELLO).text == "hello"
    assert len(server.seen) == 3


@pytest.mark.parametrize("name", FAULTS)
def test_a_lasting_fault_is_reported_in_a_line_after_so_many_tries(name):
    with serving(FAULTS[name]) as server:
        with pytest.raises(EndpointError) as caught:
            endpoint_of(server, retries=1).ask(HELLO)
        problem = str(caught.value)
        assert problem.startswith(f"endpoint {server.url}, model 'm': ")
        remedy = "check the server, the model's name and the key in LAKEWRIGHT_API_KEY, then run the same command again"
        assert problem.endswith(f"(at most 2 tries); {remedy}")
        assert "\n" not in problem
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_another_try_cannot_mend_is_reported_at_once(status):
    with serving(failing(status, "unheard\nof")) as server, pytest.raises(EndpointError) as caught:
        endpoint_of(server).ask(HELLO)
    assert f"answers {status} (" in str(caught.value)
    assert "unheard of" in str(caught.value)
    assert len(server.seen) == 1


def test_a_server_that_is_not_there_is_reported():
    with serving(echo) as server:
        pass
    with refused("cannot be reached", kind=EndpointError):
        endpoint_of(server, retries=1).ask(HELLO)


@pytest.mark.parametrize("name", endpoint.KEYS)
def test_the_key_comes_from_the_environment_and_is_in_no_error(monkeypatch, name):
    monkeypatch.setenv(name, KEY)
    with serving(failing(401, f"bad key: {KEY}")) as server, pytest.raises(EndpointError) as caught:
        endpoint_of(server).ask(HELLO)
    assert server.keys == {f"Bearer {KEY}"}
    assert KEY not in str(caught.value)
    assert "bad key: ***" in str(caught.value)


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
    with serving(picky) as server, refused("answers 400", kind=EndpointError):
        found.update(endpoint_of(server, concurrency=3).ask_all(questions(50)))
    assert set(found) >= {0, 1, 2, 3, 4}, "asked before"
    assert set(found) <= set(range(12)), "nothing is asked after the error is known"


def test_a_flood_is_cut_off_with_little_memory_and_time(monkeypatch):
    monkeypatch.setattr(chat_request, "LONGEST_REPLY", 1 << 22)
    with serving(flooding) as server:
        tracemalloc.start()
        with refused("4194304 bytes", kind=EndpointError):
            endpoint_of(server, retries=0, timeout=30).ask(HELLO)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 64 << 20, f"{most >> 20} MiB"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_neither_key_nor_question_follows_a_redirection(monkeypatch, status):
    monkeypatch.setenv(endpoint.KEYS[0], KEY)
    problem = refused(f"answers {status}", kind=EndpointError)
    with serving(echo) as other, serving(redirecting(other.url, status)) as server, problem:
        endpoint_of(server).ask(HELLO)
    assert (len(server.seen), len(other.seen), other.keys) == (1, 0, set())


def test_what_a_server_sends_too_much_is_no_answer_to_another_question():
    with serving(twice) as server:
        found = dict(endpoint_of(server, concurrency=1).ask_all(questions(4)))
    assert {place: answer.text for place, answer in found.items()} == {n: f"say {n}" for n in range(4)}


def test_a_slow_server_gets_its_time_once_a_try_and_no_more():
    begun = time.monotonic()
    with serving(dripping_headers) as server, pytest.raises(EndpointError):
        endpoint_of(server, retries=1, timeout=0.3).ask(HELLO)
    assert time.monotonic() - begun < LONG / 2


@pytest.mark.parametrize("key", ["two\nlines", "k\u00e9y"])
def test_a_key_that_no_header_can_hold_is_reported_without_it(monkeypatch, key):
    monkeypatch.setenv(endpoint.KEYS[0], key)
    with refused("LAKEWRIGHT_API_KEY") as caught:
        Endpoint(EndpointSettings("http://host/v1", "m"))
    assert key not in str(caught.value)


def test_a_server_says_how_long_to_wait():
    with serving(
        echo, [failing(429, retry_after_ms="300"), failing(503, retry_after_ms="no", retry_after="1e9")]
    ) as server:
        begun = time.monotonic()
        assert endpoint_of(server).ask(HELLO).text == "hello"
        assert 0.3 < time.monotonic() - begun < 20


def test_who_asks_no_further_waits_for_no_answer():
    begun = time.monotonic()
    with serving(silent, [echo]) as server:
        answers = endpoint_of(server, concurrency=4, timeout=60).ask_all(questions(8))
        next(answers)
        answers.close()
        assert time.monotonic() - begun < LONG / 2, "as long as the server is silent"


def test_an_answer_without_text_is_empty_and_broken_letters_become_marks():
    broken = completion("ok?").replace(b"ok?", b"\\ud800!")
    with serving(lambda request, body: send(request, broken), [saying(None)]) as server:
        assert [endpoint_of(server).ask(HELLO).text for _ in range(2)] == ["", "\ufffd!"]


WRONG = {
    "no address": ({"url": "localhost:8000"}, ["url", "'localhost:8000'", "http://host:port/v1"]),
    "a space": ({"url": "http://a b"}, ["url", "space", "http://host:port/v1"]),
    "a line break": ({"url": "http://host\n/v1"}, ["url", "space", "http://host:port/v1"]),
    "a password": ({"url": "http://me:secret@host/v1"}, ["url of host"]),
    "a key in the address": ({"url": "http://host/v1?key=secret"}, ["url of host", "LAKEWRIGHT_API_KEY"]),
    "a cap without a price": ({"max_cost": 1.0}, ["max_cost", "price_in and price_out"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_settings_are_refused(name):
    changes, problem = WRONG[name]
    with refused(*problem, kind=ValueError) as caught:
        EndpointSettings(**{"url": "http://host/v1", "model": "m", **changes})
    assert "secret" not in str(caught.value)
