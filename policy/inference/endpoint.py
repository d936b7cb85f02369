"""Models behind an OpenAI-compatible server: concurrent requests, repeated where that may help, within a cost cap.

The key comes from the environment, LAKEWRIGHT_API_KEY or OPENAI_API_KEY, and is sent to the server only.
"""

import dataclasses
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from core_jax.errors import InputError
from core_jax.support import Count, Natural, Positive, Weight
from policy.inference.completions import EndpointAnswer, read_completion
from policy.inference.cost_cap import BudgetSpentError, CostCap

KEYS = ("LAKEWRIGHT_API_KEY", "OPENAI_API_KEY")
NO_KEY = "none"  # servers that want no key get some word
LONGEST_REPLY = 1 << 24  # bytes
LONGEST_PAUSE = 8.0  # seconds before another try
MOST_SHOWN = 200  # characters of what a server said

Message = Mapping[str, str]  # role and content
SchemaForm = Literal["json_schema", "json_object"]
"""How a server is given a schema: as by OpenAI, or beside the request for JSON, as by llama-cpp-python."""


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
    """Seconds without a byte, or from the first to the last, after which a request has failed."""
    retries: Natural = 8
    """Attempts after the first."""
    price_in: Weight = 0.0
    """Dollars for a million tokens of prompts."""
    price_out: Weight = 0.0
    """Dollars for a million tokens of answers."""
    max_cost: Weight | None = None
    """Dollars never to exceed: a request starts only where its max_tokens fit."""
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """How the server names the limit of an answer's tokens."""
    schemas: tuple[SchemaForm, ...] = ("json_schema", "json_object")
    """The forms in which the server is given a JSON schema, tried in turn until it accepts one; with none, or where it
    refuses all, the prompt describes the schema."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url is {self.url!r:.60}; write it as http://host:port/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError(f"url of {parts.hostname} holds more than a place; give a key in {KEYS[0]} instead")
        if self.max_cost is not None and not (self.price_in or self.price_out):
            raise ValueError("max_cost is set, but no price; give price_in and price_out, dollars for a million tokens")


class EndpointError(InputError):
    """A server that does not answer, or not as asked, after all tries. `status`: its HTTP error, if any."""

    status: int | None = None


class _NoCompletionError(Exception):
    """A reply that is not a completion; `retries`: how often the library had tried before it came."""

    def __init__(self, problem: str, retries: int) -> None:
        super().__init__(problem)
        self.retries = retries


@dataclasses.dataclass(frozen=True)
class Question:
    """One request. schema: a JSON schema that the answer must fit, given to the server in `form`."""

    messages: Sequence[Message]
    temperature: float | None = None
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    form: SchemaForm = "json_schema"


class Endpoint:
    """A server that answers questions. `spent`: dollars so far, those given included."""

    def __init__(self, settings: EndpointSettings, spent: float = 0.0) -> None:
        openai = _library()
        self.settings = settings
        self._key = next((os.environ[name] for name in KEYS if os.environ.get(name)), NO_KEY)
        self._client = openai.OpenAI(
            base_url=settings.url, api_key=self._key, timeout=settings.timeout, max_retries=settings.retries
        )
        self._budget = CostCap(settings.max_cost, spent)

    @property
    def spent(self) -> float:
        """Dollars so far; an answer whose tokens the server does not count costs the most it may have cost."""
        return self._budget.spent

    def ask(self, messages: Sequence[Message], **options: Any) -> EndpointAnswer:
        """The answer to `messages`; options as the other fields of `Question`.

        Raises EndpointError where there is none, BudgetSpentError where the cost cap leaves no room for it.
        """
        ((_, answer),) = self.ask_all([Question(messages, **options)])
        return answer

    def ask_all(self, questions: Iterable[Question]) -> Iterator[tuple[int, EndpointAnswer]]:
        """Asks many questions at a time; yields the index of each and its answer, as answers come.

        After an error no further question is asked; it is raised once the answers on their way have been yielded.
        """
        waiting = enumerate(questions)
        stop: Exception | None = None
        running: dict[Future[EndpointAnswer], tuple[int, float]] = {}
        with ThreadPoolExecutor(self.settings.concurrency) as pool:
            held = next(waiting, None)
            while held or running:
                while held and not stop and len(running) < self.settings.concurrency:
                    place, question = held
                    most = self._most(question)
                    if not self._budget.reserve(most):
                        if not running:
                            stop = BudgetSpentError()
                        break
                    running[pool.submit(self._answer, question)] = place, most
                    held = next(waiting, None)
                if stop and not running:
                    raise stop
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    place, most = running.pop(future)
                    try:
                        answer = future.result()
                    except EndpointError as error:
                        self._budget.settle(most, 0.0)
                        stop = stop or error
                    else:
                        self._budget.settle(most, self._cost(answer, most))
                        yield place, answer
        if stop:
            raise stop

    def _answer(self, question: Question) -> EndpointAnswer:
        """One answer. The library repeats requests that fail on the network, this those without a completion."""
        openai = _library()
        tries, problem = 0, ""
        while tries <= self.settings.retries:
            time.sleep(min(LONGEST_PAUSE, 0.25 * 2**tries) if tries else 0)
            client = self._client.with_options(max_retries=self.settings.retries - tries)
            try:
                return self._completion(client, question)
            except openai.APITimeoutError:
                raise self._error(f"is silent for {self.settings.timeout:g} s") from None
            except openai.APIConnectionError as error:
                raise self._error(f"cannot be reached ({error.__cause__ or error})") from None
            except openai.APIStatusError as error:
                raise self._error(_status(error), error.status_code) from None
            except openai.OpenAIError as error:
                raise self._error(str(error)) from None
            except _NoCompletionError as error:
                problem = f"sends no completion ({error})"
                tries += 1 + error.retries
        raise self._error(problem)

    def _completion(self, client: Any, question: Question) -> EndpointAnswer:
        """The reply to one request, which the library may have repeated.

        The library limits the silence between two bytes; here the whole reply is limited in time and size.
        """
        with client.chat.completions.with_streaming_response.create(**self._request(question)) as reply:
            begun, body = time.monotonic(), bytearray()
            try:
                for part in reply.iter_bytes():
                    body += part
                    if time.monotonic() - begun > self.settings.timeout:
                        raise ValueError(f"not whole after {self.settings.timeout:g} s")
                    if len(body) > LONGEST_REPLY:
                        raise ValueError(f"more than {LONGEST_REPLY} bytes")
                return read_completion(bytes(body))
            except Exception as error:  # those of the HTTP library have no name that every version of openai shares
                raise _NoCompletionError(str(error) or type(error).__name__, reply.retries_taken) from error

    def _request(self, question: Question) -> dict[str, Any]:
        given: dict[str, Any] = {"model": self.settings.model, "messages": list(question.messages)}
        given[self.settings.limit_field] = self.settings.max_tokens
        if question.temperature is not None:
            given["temperature"] = question.temperature
        if question.seed is not None:
            given["seed"] = question.seed
        if question.schema is not None:
            given["response_format"] = _response_format(question.schema, question.form)
        return given

    def _error(self, problem: str, status: int | None = None) -> EndpointError:
        """The error for a person: one line, without the key."""
        shown = " ".join(problem.encode(errors="backslashreplace").decode().split())
        shown = shown if self._key == NO_KEY else shown.replace(self._key, "***")
        tries = f"{self.settings.retries + 1} tries" if self.settings.retries else "one try"
        error = EndpointError(
            f"endpoint {self.settings.url}, model {self.settings.model!r:.60}: "
            f"{shown:.{MOST_SHOWN}} (at most {tries}); "
            f"check the server, the model's name and the key in {KEYS[0]}, then run the same command again"
        )
        error.status = status
        return error

    def _most(self, question: Question) -> float:
        """The most that an answer may cost: a token has at least a byte, and a chat template a few dozen a message."""
        prompt = sum(len(message["content"].encode("utf-8", "replace")) + 64 for message in question.messages)
        return dollars(self.settings, prompt, self.settings.max_tokens)

    def _cost(self, answer: EndpointAnswer, most: float) -> float:
        if answer.prompt_tokens is None or answer.completion_tokens is None:
            return most
        return dollars(self.settings, answer.prompt_tokens, answer.completion_tokens)


def dollars(settings: EndpointSettings, tokens_in: int, tokens_out: int) -> float:
    """What tokens cost."""
    return (tokens_in * settings.price_in + tokens_out * settings.price_out) / 1e6


def _response_format(schema: Mapping[str, Any], form: SchemaForm) -> dict[str, Any]:
    if form == "json_object":
        return {"type": form, "schema": dict(schema)}
    return {"type": form, "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}


def _status(error: Any) -> str:
    said = error.body.get("message", error.body) if isinstance(error.body, dict) else error.body
    return f"answers {error.status_code} ({said or 'nothing more'})"


def _library() -> Any:
    try:
        import openai
    except ImportError as error:
        raise InputError("the package openai is not installed; pip install 'lakewright[endpoint]'") from error
    return openai
