"""One attempt of a request to an OpenAI-compatible server: bounded in time and size, its reply read strictly."""

import asyncio
import dataclasses
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from lakewright.core_jax.support import Count, Natural, Positive, Weight

KEYS = ("LAKEWRIGHT_API_KEY", "OPENAI_API_KEY")  # where the environment holds the key
LONGEST_REPLY = 1 << 23  # bytes
LONGEST_WISH = 60.0  # seconds that a server may ask to wait
PASSING = (408, 409, 429)  # errors that may pass, in addition to those from 500 on
UNBILLED = (501, 503)  # of those from 500 on: the server did no work; it did none below 500 either

TEMPLATE = 64  # tokens around a message, at most


MOST_TOKENS = 1 << 40  # that a reply may claim
Tokens = Annotated[Natural, msgspec.Meta(le=MOST_TOKENS)]

Message = Mapping[str, str]  # role and content
SchemaForm = Literal["json_schema", "json_object"]
"""How a server is given a schema: as by OpenAI, or within the request for JSON, as by llama-cpp-python."""


class EndpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server and how to ask it."""

    url: str
    """The server's address, such as http://localhost:8000/v1."""
    model: str
    """The model that it is asked for."""
    max_tokens: Count = 16384
    """Most tokens of an answer."""
    concurrency: Count = 8
    """Requests at a time."""
    timeout: Positive = 600.0
    """Seconds from sending a request to the last byte of its reply, after which it has failed."""
    retries: Natural = 8
    """Attempts after the first."""
    price_in: Weight = 0.0
    """Dollars for a million tokens of prompts."""
    price_out: Weight = 0.0
    """Dollars for a million tokens of answers."""
    max_cost: Weight | None = None
    """Dollars never to exceed: a request starts, or is repeated, only where its max_tokens fit. A try that failed
    counts as the most that it may have cost, unless the server refused it or was never reached."""
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """How the server names the limit of an answer's tokens."""
    schemas: tuple[SchemaForm, ...] = ("json_schema", "json_object")
    """The forms in which the server is given a JSON schema, tried in turn until it accepts one; with none, or where it
    refuses all, the prompt describes the schema."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if any(letter.isspace() or not letter.isprintable() for letter in self.url):
            raise ValueError(f"url is {self.url!r:.60}, which holds a space; write it as http://host:port/v1")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url is {self.url!r:.60}; write it as http://host:port/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError(f"url of {parts.hostname} holds more than a place; give a key in {KEYS[0]} instead")
        if self.max_cost is not None and not (self.price_in or self.price_out):
            raise ValueError("max_cost is set, but no price; give price_in and price_out, dollars for a million tokens")


@dataclasses.dataclass(frozen=True)
class EndpointAnswer:
    """An answer of a model.

    Args:
        text: the answer.
        prompt_tokens, completion_tokens: as the server counts them; None if it does not.
        finish: why the model ended: `stop`, `length` ...
    """

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None
    finish: str | None


@dataclasses.dataclass(frozen=True)
class Question:
    """One request.

    Args:
        messages: role and content of each turn.
        temperature, seed: of the sampling; None leaves them to the server.
        schema: a JSON schema that the answer must fit.
        form: how the server is given the schema.
    """

    messages: Sequence[Message]
    temperature: float | None = None
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    form: SchemaForm = "json_schema"

    def build_body(self, settings: EndpointSettings) -> dict[str, Any]:
        """Return the JSON of the request."""
        given: dict[str, Any] = {"model": settings.model, "messages": list(self.messages)}
        given[settings.limit_field] = settings.max_tokens
        if self.temperature is not None:
            given["temperature"] = self.temperature
        if self.seed is not None:
            given["seed"] = self.seed
        if self.schema is not None:
            given["response_format"] = _build_response_format(self.schema, self.form)
        return given

    def most_tokens(self, settings: EndpointSettings) -> tuple[int, int]:
        """Return the most tokens in and out: a token has at least a byte, and a chat template a few dozen a message.

        A server may put the schema into the prompt, and bill it.
        """
        texts = [message["content"] for message in self.messages]
        if self.schema is not None:
            texts.append(json.dumps(_build_response_format(self.schema, self.form)))
        return sum(len(text.encode("utf-8", "replace")) + TEMPLATE for text in texts), settings.max_tokens


class FailedTryError(Exception):
    """A try without an answer.

    Args:
        problem: one line.
        status: the HTTP error, if any.
        billed: True if a server may charge for it.
        passing: True if another try may succeed.
        pause: seconds that the server asks to wait before it.
    """

    def __init__(
        self, problem: str, status: int | None = None, *, billed: bool = True, passing: bool = True, pause: float = 0.0
    ) -> None:
        super().__init__(problem)
        self.status, self.billed, self.passing, self.pause = status, billed, passing, pause


async def ask_once(question: Question, settings: EndpointSettings, key: str, tls: ssl.SSLContext) -> EndpointAnswer:
    """Return the answer to one request on a connection of its own.

    Args:
        question: the request.
        settings: of the server.
        key: sent to that server only.
        tls: the trusted certificates.

    Raises FailedTryError if none comes.
    """
    import httpx2

    body = bytearray()
    try:
        async with asyncio.timeout(settings.timeout):
            status, headers = await _send_request(question.build_body(settings), settings, key, tls, body)
    except TimeoutError:
        waited = f"{settings.timeout:g} s"
        raise FailedTryError(f"not whole after {waited}" if body else f"is silent for {waited}") from None
    except httpx2.ConnectError as error:
        raise FailedTryError(f"cannot be reached ({error})", billed=False) from None
    except httpx2.InvalidURL as error:
        raise FailedTryError(f"cannot be reached ({error})", billed=False, passing=False) from None
    except (httpx2.HTTPError, OSError) as error:
        raise FailedTryError(f"sends no completion ({error or type(error).__name__})") from None
    if status >= 300:
        raise _describe_refusal(status, headers, bytes(body))
    try:
        return read_completion(bytes(body))
    except ValueError as error:
        raise FailedTryError(f"sends no completion ({error})") from None


async def _send_request(
    request: Mapping[str, Any], settings: EndpointSettings, key: str, tls: ssl.SSLContext, body: bytearray
) -> tuple[int, Mapping[str, str]]:
    """Send a request and fill `body`; return status and headers.

    No redirection is followed, no compressed reply read, and no connection used twice: surplus bytes of a reply would
    otherwise be read as the next answer.

    Args:
        request: its JSON.
        settings: of the server.
        key: sent in a header.
        tls: the trusted certificates.
        body: gets the bytes of the reply.
    """
    import httpx2

    url = f"{settings.url.rstrip('/')}/chat/completions"
    headers = {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity", "Content-Type": "application/json"}
    async with (
        httpx2.AsyncClient(verify=tls, timeout=settings.timeout, follow_redirects=False) as client,
        client.stream("POST", url, content=json.dumps(request), headers=headers) as reply,
    ):
        if reply.headers.get("Content-Encoding", "identity") != "identity":
            raise FailedTryError("sends no completion (it is compressed, which was not asked for)")
        async for part in reply.aiter_raw():
            body += part
            if len(body) > LONGEST_REPLY:
                raise FailedTryError(f"sends no completion (more than {LONGEST_REPLY} bytes)")
        return reply.status_code, reply.headers


def _describe_refusal(status: int, headers: Mapping[str, str], body: bytes) -> FailedTryError:
    return FailedTryError(
        f"answers {status} ({_read_error_message(body) or 'nothing more'})",
        status,
        billed=status >= 500 and status not in UNBILLED,
        passing=status >= 500 or status in PASSING,
        pause=_read_pause(headers),
    )


def _read_error_message(body: bytes) -> str:
    """Return a server's error message: the message field if the reply has the usual form, else all of the reply."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
    said = said.get("error", said) if isinstance(said, dict) else said
    return str(said.get("message", said) if isinstance(said, dict) else said)


def _read_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait; 0 if it asks for none, or for too many."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            pause = float(headers[name]) * unit
        except (KeyError, ValueError):  # it may also be a date
            continue
        if 0 < pause <= LONGEST_WISH:
            return pause
    return 0.0


def _build_response_format(schema: Mapping[str, Any], form: SchemaForm) -> dict[str, Any]:
    if form == "json_object":
        return {"type": form, "schema": dict(schema)}
    return {"type": form, "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None


class _Completion(msgspec.Struct):
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: _Usage | None = None


def read_completion(content: bytes) -> EndpointAnswer:
    """Return the first choice of a reply. Raises ValueError if the reply is not a completion."""
    try:
        found = msgspec.convert(json.loads(content), _Completion)
    except RecursionError as error:
        raise ValueError("JSON too deep") from error
    choice, usage = found.choices[0], found.usage or _Usage()
    # A file could not hold a lone surrogate.
    text = (choice.message.content or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return EndpointAnswer(text, usage.prompt_tokens, usage.completion_tokens, choice.finish_reason)
