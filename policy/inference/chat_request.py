"""One attempt of a request to an OpenAI-compatible server: bounded in time and size, its reply read strictly."""

import asyncio
import dataclasses
import json
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from lakewright.core_jax.support import Count, Natural, Positive, Weight
from lakewright.policy.inference.chat_reply import EndpointAnswer, FailedTryError, describe_refusal, read_completion

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # where the environment names trusted certificates
KEYS = ("LAKEWRIGHT_API_KEY", "OPENAI_API_KEY")  # where the environment holds the key
LONGEST_REPLY = 1 << 23  # bytes
TEMPLATE = 64  # tokens around a message, at most


ChatMessage = Mapping[str, str]  # role and content
SchemaForm = Literal["json_schema", "json_object"]
"""How a server is given a schema: as by OpenAI, or within the request for JSON, as by llama-cpp-python."""


class EndpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server and how to ask it."""

    url: str
    """The server's address, such as http://localhost:8000/v1."""
    model: str
    """The name of the model there."""
    max_tokens: Count = 16384
    """Most tokens of an answer."""
    concurrency: Count = 8
    """Concurrent requests."""
    timeout: Positive = 600.0
    """Seconds from sending a request to the last byte of its reply; after that, it has failed."""
    retries: Natural = 8
    """Attempts after the first."""
    price_in: Weight = 0.0
    """Dollars per million tokens of prompts."""
    price_out: Weight = 0.0
    """Dollars per million tokens of answers."""
    max_cost: Weight | None = None
    """A limit in dollars: a request starts, or is repeated, only if its max_tokens fit. A failed try counts with its
    maximum cost, unless the server refused it or was never reached."""
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The server's name for the limit of an answer's tokens."""
    schemas: tuple[SchemaForm, ...] = ("json_schema", "json_object")
    """The forms of a JSON schema in requests, tried in turn until the server accepts one. If it accepts no form, the
    prompt describes the schema."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if any(letter.isspace() or not letter.isprintable() for letter in self.url):
            raise ValueError(f"url is {self.url!r:.60}, which holds a space; write it as http://host:port/v1")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url is {self.url!r:.60}; write it as http://host:port/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError(f"url of {parts.hostname} contains credentials; give a key in {KEYS[0]} instead")
        if self.max_cost is not None and not (self.price_in or self.price_out):
            raise ValueError("max_cost is set, but no price; give price_in and price_out, dollars for a million tokens")


@dataclasses.dataclass(frozen=True)
class ChatRequest:
    """One request.

    Args:
        messages: role and content of each turn.
        temperature, seed: sampling temperature and seed; None leaves them to the server.
        schema: a JSON schema that the answer must fit.
        form: how the server is given the schema.
    """

    messages: Sequence[ChatMessage]
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


async def ask_once(question: ChatRequest, settings: EndpointSettings, key: str, tls: ssl.SSLContext) -> EndpointAnswer:
    """Return the answer to one request on a connection of its own.

    Args:
        question: the request.
        settings: the server's settings.
        key: sent to that server only.
        tls: the trusted certificates.

    Raises FailedTryError if it fails.
    """
    import httpx2

    body = bytearray()
    try:
        async with asyncio.timeout(settings.timeout):
            status, headers = await _send_request(question.build_body(settings), settings, key, tls, body)
    except TimeoutError:
        waited = f"{settings.timeout:g} s"
        raise FailedTryError(f"not whole after {waited}" if body else f"is silent for {waited}") from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise _describe_unreached(error) from None
    except httpx2.ProxyError as error:
        name = find_proxy(settings.url)[0] or "the proxy"
        raise FailedTryError(
            f"cannot be reached: {name} refuses ({error}); correct or unset it", billed=False
        ) from None
    except httpx2.InvalidURL as error:
        raise FailedTryError(f"cannot be reached ({error})", billed=False, passing=False) from None
    except (httpx2.HTTPError, OSError) as error:
        raise FailedTryError(f"sends no completion ({error or type(error).__name__})") from None
    if status >= 300:
        raise describe_refusal(status, headers, bytes(body))
    try:
        return read_completion(bytes(body), headers)
    except ValueError as error:
        raise FailedTryError(f"sends no completion ({error})") from None


def _describe_unreached(error: Exception) -> FailedTryError:
    """Return the error of a server that was not reached; a certificate that nobody trusts stays untrusted."""
    if "CERTIFICATE_VERIFY_FAILED" not in str(error):
        return FailedTryError(f"cannot be reached ({error or type(error).__name__})", billed=False)
    remedy = f"name a file with its authority in {CERTIFICATES[0]}"
    return FailedTryError(f"has a certificate that is not trusted ({error}); {remedy}", billed=False, passing=False)


def find_proxy(url: str) -> tuple[str, str]:
    """Return the environment variable of the proxy to a URL, and its value without a password; empty without one."""
    for name in (f"{urlsplit(url).scheme}_proxy", "all_proxy"):
        for written in (name, name.upper()):
            if value := os.environ.get(written):
                return written, re.sub(r"//[^/@]*@", "//***@", value)
    return "", ""


async def _send_request(
    request: Mapping[str, Any], settings: EndpointSettings, key: str, tls: ssl.SSLContext, body: bytearray
) -> tuple[int, Mapping[str, str]]:
    """Send a request and fill `body`; return status and headers.

    No redirection is followed, no compressed reply read, and no connection used twice: surplus bytes of a reply would
    otherwise be read as the next answer.

    Args:
        request: its JSON.
        settings: the server's settings.
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


def _build_response_format(schema: Mapping[str, Any], form: SchemaForm) -> dict[str, Any]:
    if form == "json_object":
        return {"type": form, "schema": dict(schema)}
    return {"type": form, "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}
