"""Replies of servers of other makes: sound answers of another shape are read; errors are named and priced rightly."""

import datetime
import email.utils
import math

import msgspec
import pytest

from lakewright.experiments.cli.conventions.answerers import EndpointOptions
from lakewright.policy.inference import Endpoint, EndpointError, EndpointSettings
from lakewright.policy.inference.chat_reply import FailedTryError, read_completion, read_pause
from tests.support.refusals import refused
from tests.support.servers.chat_server import echo, failing, saying, send, serving
from tests.support.servers.questions import HELLO

pytestmark = pytest.mark.usefixtures("quick_endpoint")


def reply(content=None, usage=None, **fields) -> bytes:
    """A completion in JSON."""
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return msgspec.json.encode({"choices": [choice], "usage": usage} | fields)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}], "hello"),
        (["hel", {"text": "lo"}], "hello"),
        ({"type": "text", "text": "hello"}, "hello"),
        ([{"type": "output_text", "text": "hello"}], "hello"),
        ([{"type": "text", "text": {"value": "hello"}}], "hello"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hello"}], "hello"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "image_url", "image_url": {}}], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_a_content_in_parts_is_the_text_of_its_parts(content, text):
    assert read_completion(reply(content)).text == text


def test_sound_replies_of_other_shapes_are_read():
    assert read_completion(b'{"choices": [{"text": "hello", "finish_reason": "stop"}]}').text == "hello"
    assert read_completion(reply("hello", error={"code": 0, "message": ""})).text == "hello"
    assert read_completion(reply("hello").decode().encode("utf-16")).text == "hello"


def test_an_answer_that_ends_in_an_error_is_none():
    with pytest.raises(FailedTryError, match="finish_reason: error"):
        read_completion(b'{"choices": [{"message": {"content": "hel"}, "finish_reason": "error"}]}')


def test_a_redirection_names_its_place():
    told = refused("answers 308", "https://there/v1", kind=EndpointError)
    with serving(lambda request, body: send(request, b"", 308, Location="https://there/v1")) as server, told:
        Endpoint(EndpointSettings(server.url, "m", timeout=0.4)).ask(HELLO)


@pytest.mark.parametrize("begin", [b'<?xml version="1.0"?><!DOCTYPE html>', b"<!-- of a proxy --><html>", b" <HTML>"])
def test_a_page_may_begin_in_other_ways(begin):
    with pytest.raises(FailedTryError, match="a page, 'Sign in'"):
        read_completion(begin + b"<title>Sign in</title>")
    with pytest.raises(FailedTryError, match="a page, 'Sign in'"):
        read_completion(b"<title>Sign in</title>", {"content-type": "text/html; charset=utf-8"})


def test_counts_of_tokens_may_be_whole_floats():
    found = read_completion(reply("hello", {"prompt_tokens": 10.0, "completion_tokens": 5.0, "cost": 0.01}))
    assert (found.prompt_tokens, found.completion_tokens) == (10, 5)
    assert type(found.prompt_tokens) is int
    assert read_completion(reply("hello", {"prompt_tokens": "10"})).prompt_tokens == 10
    with pytest.raises(ValueError, match="prompt_tokens"):
        read_completion(reply("hello", {"prompt_tokens": 10.5}))


ERRORS = {
    "a rate": ({"error": {"message": "Rate limit exceeded", "code": 429}}, "Rate limit exceeded", True),
    "an overload": ({"error": {"message": "busy", "type": "overloaded_error"}}, "busy", True),
    "a crash": ({"error": {"message": "lost a worker", "code": 502}}, "lost a worker", True),
    "an error as text": ({"error": "model is loading"}, "model is loading", True),
    "of vLLM": (
        {"object": "error", "message": "no model x", "type": "NotFoundError", "code": 404},
        "no model x",
        False,
    ),
    "no credit": ({"error": {"message": "Insufficient credits", "code": 402}}, "Insufficient credits", False),
    "a quota": ({"error": {"message": "spent", "code": "insufficient_quota"}}, "spent", False),
    "a key": ({"error": {"message": "wrong key", "type": "authentication_error"}}, "wrong key", False),
    "a request": ({"error": {"message": "bad", "type": "invalid_request_error", "code": 400}}, "bad", False),
    "a detail": ({"detail": "out of memory"}, "out of memory", True),
    "a message of another name": ({"code": 1113, "msg": "no balance"}, "no balance", True),
    "a list of errors": ({"errors": [{"message": "overloaded"}]}, "overloaded", True),
    "a base": ({"choices": None, "base_resp": {"status_code": 1002, "status_msg": "a rate"}}, "a rate", True),
    "of a choice": ({"choices": [{"error": {"message": "upstream died", "code": 502}}]}, "upstream died", True),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_of_status_200_has_the_servers_words_costs_nothing_and_is_tried_again_if_it_may_pass(name):
    said, words, passing = ERRORS[name]
    charges = []
    settings = {"model": "m", "timeout": 0.4, "retries": 1, "max_tokens": 64, "price_in": 1.0, "max_cost": 1.0}
    with serving(lambda request, body: send(request, msgspec.json.encode(said))) as server:
        endpoint = Endpoint(EndpointSettings(server.url, **settings), record=charges.append)
        with refused(words, kind=EndpointError):
            endpoint.ask(HELLO)
    assert len(server.seen) == 1 + passing
    assert endpoint.spent == 0


@pytest.mark.parametrize("status", [200, 403, 502, 503])
def test_a_page_has_its_title_in_one_short_line(status):
    page = b"<!DOCTYPE html><html><head><title>Sign in &amp; wait</title></head>" + b"<p>" * 5000
    with serving(lambda request, body: send(request, page, status, Content_Type="text/html")) as server:
        endpoint = Endpoint(EndpointSettings(server.url, "m", timeout=0.4, retries=1, price_in=1.0, max_cost=1.0))
        with refused("a page", "'Sign in & wait'", kind=EndpointError) as caught:
            endpoint.ask(HELLO)
    assert len(server.seen) == (1 if status < 500 else 2)
    assert (endpoint.spent > 0) == (status == 502), "a gateway may have asked the model"
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("status", "code", "tries"),
    [
        (402, "", 1),
        (429, "insufficient_quota", 1),
        (429, "rate_limit_exceeded", 2),
        (501, "", 1),
        (505, "", 1),
        (529, "", 2),
    ],
)
def test_lasting_errors_are_not_tried_again(status, code, tries):
    said = msgspec.json.encode({"error": {"message": "no", "code": code}})
    told = refused(f"answers {status}", kind=EndpointError)
    with serving(lambda request, body: send(request, said, status, retry_after_ms="5")) as server, told:
        Endpoint(EndpointSettings(server.url, "m", timeout=0.4, retries=1)).ask(HELLO)
    assert len(server.seen) == tries


def test_a_server_that_knows_another_limit_says_so_with_the_setting():
    told = refused("limit_field=max_tokens", "--limit-field", kind=EndpointError)
    with serving(failing(400, "Unrecognized argument: max_completion_tokens")) as server, told:
        Endpoint(EndpointSettings(server.url, "m", timeout=0.4)).ask(HELLO)
    assert {field.name for field in msgspec.structs.fields(EndpointSettings)} == {
        *("url", "model", "max_tokens", "schemas"),
        *EndpointOptions.__dataclass_fields__,
    }, "every endpoint has the same options; without a schema no form of it"


def test_a_pause_is_honoured_up_to_the_limit(monkeypatch):
    monkeypatch.setattr("lakewright.policy.inference.chat_reply.LONGEST_WISH", 60.0)
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30)
    assert read_pause({"retry-after": "7"}) == 7
    assert read_pause({"retry-after": "90"}) == 60
    assert read_pause({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert read_pause({"retry-after": email.utils.format_datetime(later, usegmt=True)}) == pytest.approx(30, abs=3)
    for nothing in ({}, {"retry-after": "soon"}, {"retry-after": "-5"}, {"retry-after": "nan"}):
        assert read_pause(nothing) == 0
    assert read_pause({"retry-after": "inf"}) == 60
    with pytest.raises(FailedTryError) as caught:
        read_completion(b'{"error": {"message": "x", "code": 429}}', {"retry-after": "3"})
    assert caught.value.pause == 3
    assert math.isfinite(caught.value.pause)


PROXIES = {
    "ALL_PROXY": ("socks5://user:secret@host:1080", "pip install 'httpx2[socks]'"),
    "http_proxy": ("ftp://host:1", "Unknown scheme"),
    "HTTP_PROXY": ("http://host:port", "Invalid port"),
    "https_proxy": ("socks5://host:1080", "needs a package"),
}


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_that_cannot_be_used_is_named_in_one_line(monkeypatch, name):
    for other in PROXIES:
        monkeypatch.delenv(other, raising=False)
    value, words = PROXIES[name]
    monkeypatch.setenv(name, value)
    with refused(name) as caught:
        Endpoint(EndpointSettings("http://host/v1", "m"))
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_named_in_one_line(monkeypatch, tmp_path, text):
    file = tmp_path / "bundle.pem"
    if text:
        file.write_text(text)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with refused("SSL_CERT_FILE") as caught:
        Endpoint(EndpointSettings("https://host/v1", "m"))
    assert "\n" not in str(caught.value)
    with serving(echo) as server:
        assert Endpoint(EndpointSettings(server.url, "m")).ask(HELLO).text == "hello", "http needs none"


def test_usage_that_is_no_number_is_still_refused():
    with serving(echo, [saying("no", usage={"prompt_tokens": "many"})]) as server:
        assert Endpoint(EndpointSettings(server.url, "m", timeout=0.4)).ask(HELLO).text == "hello"
    assert len(server.seen) == 2
