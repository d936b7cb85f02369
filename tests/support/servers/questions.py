"""Questions to a chat server, and the ways in which it can fail to answer."""

from lakewright.policy.inference import (
    ChatRequest,
    Endpoint,
    EndpointSettings,
)
from tests.support.servers.chat_server import (
    closed,
    completion,
    cut,
    dripping,
    dripping_headers,
    failing,
    garbage,
    no_lengths,
    saying,
    send,
    short,
    silent,
    zipped,
)

HELLO = [{"role": "user", "content": "hello"}]
EMPTY = saying(None, choices=[])
NOT_A_COMPLETION = saying(None, choices=[{"message": "hello"}])


def endpoint_of(server, **changes) -> Endpoint:
    """A client of the server, with little patience."""
    given = {"model": "m", "timeout": 0.4, "retries": 2, "max_tokens": 64}
    return Endpoint(EndpointSettings(url=server.url, **{**given, **changes}))


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
    "JSON without end": lambda request, body: send(request, b"[" * 100_000),
    "negative tokens": saying("no", usage={"prompt_tokens": -1, "completion_tokens": -1}),
    "more tokens than there are": saying("no", usage={"prompt_tokens": 1, "completion_tokens": 10**30}),
    "a drip of headers": dripping_headers,
    "a bomb": zipped,
    "half of its answer": short,
    "a length that is none": no_lengths(b"-5"),
    "two lengths": no_lengths(b"5, 6"),
    "a length beyond all memory": no_lengths(b"9" * 30),
    "no UTF-8": lambda request, body: send(request, completion("hello").replace(b"hello", b"\xff\xfe")),
    "a megabyte of headers": lambda request, body: send(request, b"{}", X_Long="x" * (1 << 20)),
}


def questions(count: int) -> list[ChatRequest]:
    return [ChatRequest([{"role": "user", "content": f"say {number}"}]) for number in range(count)]
