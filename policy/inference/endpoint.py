"""Models behind an OpenAI-compatible server: concurrent requests, retries of passing errors, and a cap on their cost.

The key comes from the environment, LAKEWRIGHT_API_KEY or OPENAI_API_KEY, and is sent to the server only.
"""

import asyncio
import contextlib
import os
import random
import secrets
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Natural, naming_extra
from lakewright.policy.inference.chat_reply import EndpointAnswer, FailedTryError
from lakewright.policy.inference.chat_request import (
    CERTIFICATES,
    KEYS,
    ChatMessage,
    ChatRequest,
    EndpointSettings,
    ask_once,
    find_proxy,
)

NO_KEY = "none"  # sent to servers that need no key
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before another try
OTHER_LIMIT = "max_completion_tokens"  # in the words of a server that does not know this field
MOST_SHOWN = 200  # characters of what a server said


class BudgetSpentError(Exception):
    """The next request might exceed the cost cap."""


class EndpointError(InputError):
    """A server without a usable answer after all tries. `status`: its HTTP error, if any."""

    status: int | None = None


class Charge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens that a server may bill for one try of a request: the most before it is sent, later what it took."""

    attempt: str
    tokens_in: Natural
    tokens_out: Natural


class Endpoint:
    """A server that answers questions.

    Args:
        settings: the server's settings.
        spent: dollars for earlier questions.
        record: gets the largest possible cost of each try before it is sent, and the actual cost after it.
    """

    def __init__(
        self, settings: EndpointSettings, spent: float = 0.0, record: Callable[[Charge], object] = lambda charge: None
    ) -> None:
        self.settings = settings
        self._key = _read_key()
        self._tls = _create_tls_context(settings.url)
        self._cap = CostCap(settings.max_cost, partial(price_tokens, settings), spent, record)

    @property
    def spent(self) -> float:
        """Dollars so far; tokens that the server does not count are priced at their maximum."""
        return self._cap.spent

    def ask(self, messages: Sequence[ChatMessage], **options: Any) -> EndpointAnswer:
        """Return the answer to `messages`; options as the other fields of `ChatRequest`.

        Raises EndpointError without an answer, BudgetSpentError if the cost cap leaves no room for it.
        """
        ((_, answer),) = self.ask_all([ChatRequest(messages, **options)])
        return answer

    def ask_all(self, questions: Iterable[ChatRequest]) -> Iterator[tuple[int, EndpointAnswer]]:
        """Ask many questions at a time; yield the index of each and its answer, as answers come.

        After an error no further question is asked; it is raised once the pending answers have been yielded.
        """
        waiting, process = enumerate(questions), os.getpid()
        stop: Exception | None = None
        running: dict[Future[EndpointAnswer], int] = {}
        with _run_event_loop() as loop:
            held = next(waiting, None)
            while held or running:
                if os.getpid() != process:
                    raise InputError(
                        f"endpoint: process {process} waits for these answers, not its fork; ask again in this process"
                    )
                while held and not stop and len(running) < self.settings.concurrency:
                    place, question = held
                    charge = self._reserve_budget(question)
                    if charge is None:
                        stop = None if running else BudgetSpentError()
                        break
                    running[asyncio.run_coroutine_threadsafe(self._answer_question(question, charge), loop)] = place
                    held = next(waiting, None)
                if stop and not running:
                    raise stop
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    place = running.pop(future)
                    try:
                        answer = future.result()
                    except (EndpointError, BudgetSpentError) as error:
                        stop = stop or error
                    else:
                        yield place, answer
        if stop:
            raise stop

    def _reserve_budget(self, question: ChatRequest) -> Charge | None:
        return self._cap.reserve_tokens(*question.most_tokens(self.settings))

    async def _answer_question(self, question: ChatRequest, charge: Charge) -> EndpointAnswer:
        """Return one answer, after some tries, the first of which is `charge`."""
        for tried in range(self.settings.retries + 1):
            try:
                answer = await ask_once(question, self.settings, self._key, self._tls)
            except FailedTryError as error:
                failed = error
                if not failed.billed:
                    self._cap.settle_charge(charge, 0, 0)
                else:
                    self._cap.settle_charge(charge, charge.tokens_in, charge.tokens_out)
            else:
                self._cap.settle_charge(charge, *_count_taken_tokens(answer, charge))
                return answer
            if not failed.passing or tried == self.settings.retries:
                break
            await asyncio.sleep(failed.pause or _choose_pause(tried))
            again = self._reserve_budget(question)
            if again is None:
                raise BudgetSpentError
            charge = again
        raise self._describe_failure(failed)

    def _describe_failure(self, failed: FailedTryError) -> EndpointError:
        """Return the error for a person: one line, without the key."""
        shown = " ".join(str(failed).encode(errors="backslashreplace").decode().split())
        shown = shown if self._key == NO_KEY else shown.replace(self._key, "***")
        tries = f"at most {self.settings.retries + 1} tries" if self.settings.retries else "at most one try"
        tries = tries if failed.passing else "not tried again"
        limit = "; set limit_field=max_tokens (--limit-field)" * (OTHER_LIMIT in shown and failed.status in (400, 422))
        error = EndpointError(
            f"endpoint {self.settings.url}, model {self.settings.model!r:.60}: "
            f"{shown:.{MOST_SHOWN}}{limit} ({tries}); "
            f"check the server, the model's name and the key in {KEYS[0]}, then run the same command again"
        )
        error.status = failed.status
        return error


def sum_charges(charges: Iterable[Charge]) -> tuple[int, int]:
    """Return the tokens in and out of all tries; of each the last charge counts."""
    last = {charge.attempt: charge for charge in charges}.values()
    return sum(charge.tokens_in for charge in last), sum(charge.tokens_out for charge in last)


def price_tokens(settings: EndpointSettings, tokens_in: int, tokens_out: int) -> float:
    """Return the dollars that tokens cost."""
    return (tokens_in * settings.price_in + tokens_out * settings.price_out) / 1e6


def _read_key() -> str:
    """Return the key of the environment. Raises InputError if it cannot be sent."""
    name = next((name for name in KEYS if os.environ.get(name)), None)
    key = os.environ[name] if name else NO_KEY
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"{name} contains an invalid character, perhaps a newline; set it again")
    return key


def _create_tls_context(url: str) -> ssl.SSLContext:
    """Return the trusted certificates, which http does not need: reading them takes a while.

    Raises InputError, which names the environment's variable, if certificates or a proxy cannot be used.
    """
    with naming_extra("a model behind a server", "endpoint"):
        import httpx2

    try:
        context = httpx2.create_ssl_context() if url.startswith("https") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    except OSError as error:  # ssl.SSLError is one, too
        name = next((name for name in CERTIFICATES if os.environ.get(name)), None)
        where = f"{name} is {os.environ[name]!r:.80}: its" if name else "the trusted"
        remedy = "name a file of certificates, or unset it" if name else f"name a file of them in {CERTIFICATES[0]}"
        raise InputError(f"{where} certificates cannot be read ({error}); {remedy}") from error
    try:
        httpx2.AsyncClient(verify=context)  # which opens nothing yet
    except (ImportError, ValueError, OSError, httpx2.InvalidURL) as error:
        raise _describe_proxy(url, error) from error
    return context


def _describe_proxy(url: str, error: Exception) -> InputError:
    """Return the error of a proxy that cannot be used: one line with the environment's variable."""
    name, value = find_proxy(url)
    if isinstance(error, ImportError):
        names = [other for other in os.environ if other.lower().endswith("_proxy") and "socks" in os.environ[other]]
        name = name if "socks" in value else (names or [name])[0]
        value = value if "socks" in value else "a socks proxy"
        return InputError(f"{name} is {value:.80}, which needs a package; pip install 'httpx2[socks]', or unset it")
    others = [other for other in os.environ if other.lower().endswith("_proxy")]
    said = f"{name} is {value:.80}" if name else f"{' or '.join(others) or 'a proxy'} cannot be used"
    return InputError(f"{said}: {error!s:.120}; write it as http://host:port, or unset it")


def _count_taken_tokens(answer: EndpointAnswer, charge: Charge) -> tuple[int, int]:
    """Return the tokens of an answer as the server counts them, or their maximum if it does not."""
    if answer.prompt_tokens is None or answer.completion_tokens is None:
        return charge.tokens_in, charge.tokens_out
    return answer.prompt_tokens, answer.completion_tokens


def _choose_pause(tried: int) -> float:
    """Return the seconds before the next try: longer each time, and not the same for all clients."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2**tried) * random.uniform(0.75, 1.0)


@contextlib.contextmanager
def _run_event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield a loop in a thread of its own; at the end of the block all pending tasks are cancelled."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="endpoint", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        if thread.is_alive():  # as it is not in a process that was forked in the block
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class CostCap:
    """Dollars spent, and reserved for pending tries, which together never exceed the cap.

    Args:
        cap: dollars; None for no limit.
        price: dollars of tokens in and out.
        spent: dollars at first.
        record: gets every charge before it counts, so that a killed process loses no charge.
    """

    def __init__(
        self, cap: float | None, price: Callable[[int, int], float], spent: float, record: Callable[[Charge], object]
    ) -> None:
        self.spent, self._held = spent, 0.0
        self._cap, self._price, self._record = cap, price, record
        self._lock = threading.Lock()

    def reserve_tokens(self, tokens_in: int, tokens_out: int) -> Charge | None:
        """Reserve the most that a try may cost; return None if that would exceed the cap."""
        most = self._price(tokens_in, tokens_out)
        with self._lock:
            if self._cap is not None and self.spent + self._held + most > self._cap:
                return None
            charge = Charge(secrets.token_hex(8), tokens_in, tokens_out)
            self._record(charge)
            self._held += most
            return charge

    def settle_charge(self, charge: Charge, tokens_in: int, tokens_out: int) -> None:
        """Replace a reservation by the tokens that the try took."""
        taken = Charge(charge.attempt, tokens_in, tokens_out)
        with self._lock:
            if taken != charge:
                self._record(taken)
            self._held -= self._price(charge.tokens_in, charge.tokens_out)
            self.spent += self._price(tokens_in, tokens_out)
