"""Possible costs of requests to a server, in a file that survives a kill between a request and its answer.

An engineer behind a server is asked within a cost cap; the possible cost is saved before each try. The file is a
journal, so that a changed charge is noticed, and listed in SHA256SUMS while nobody is asked, so that a lost one is too.
"""

import contextlib
from pathlib import Path

from lakewright.core_jax.support import check_digest, unlisted
from lakewright.engineer.evidence import token_estimate
from lakewright.engineer.teachers import Ask, Message, Reply, UnansweredError
from lakewright.experiments.jobs.resumable.journal import LineJournal
from lakewright.policy.inference import (
    BudgetSpentError,
    Charge,
    Endpoint,
    EndpointAnswer,
    EndpointError,
    EndpointSettings,
    price_tokens,
    sum_charges,
)

REFUSING = (400, 404, 415, 422, 501)  # statuses by which servers refuse structured output


class Spending:
    """The charges of all tries so far, to which a `with` block may add; the file is made by the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal: LineJournal[Charge] | None = None
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> "Spending":
        return self

    def __exit__(self, *_: object) -> None:
        self._journal = None
        self._opened.close()  # also after an error: every charge is whole

    def count_tokens(self) -> tuple[int, int]:
        """The tokens in and out that may have been billed. Raises InputError if the file is damaged."""
        if not self._path.exists():
            return 0, 0
        check_digest(self._path)
        with LineJournal(self._path, Charge) as journal:
            return sum_charges(journal)

    def add(self, charge: Charge) -> None:
        """Saves a charge, whole or not at all; once this returns it survives a kill."""
        if self._journal is None:
            self._opened.enter_context(unlisted(self._path))
            self._journal = self._opened.enter_context(LineJournal(self._path, Charge))
        self._journal.add(charge)


def ask_server(settings: EndpointSettings, temperature: float, spending: Spending, *, recorded: bool) -> Ask:
    """Asks for JSON under the schema; a server that refuses every form of a schema is asked without one.

    Args:
        settings: the server's settings.
        temperature: temperature of the answers.
        spending: the charges so far.
        recorded: whether new charges are added to it.
    """
    paid, forms = price_tokens(settings, *spending.count_tokens()), list(settings.schemas)
    endpoint = Endpoint(settings, paid, spending.add) if recorded else Endpoint(settings, paid)

    def answer(messages: list[Message], schema: dict, seed: int) -> EndpointAnswer:
        while forms:
            try:
                return endpoint.ask(messages, schema=schema, form=forms[0], temperature=temperature, seed=seed)
            except EndpointError as error:
                if error.status not in REFUSING:
                    raise
                del forms[0]
        return endpoint.ask(messages, temperature=temperature, seed=seed)

    def ask(messages: list[Message], schema: dict, seed: int) -> Reply:
        before = endpoint.spent
        try:
            with spending:
                reply = answer(messages, schema, seed)
        except BudgetSpentError:
            cap = settings.max_cost
            raise UnansweredError(f"the cost cap of {cap} dollars leaves no room for a question") from None
        except EndpointError as error:
            raise UnansweredError(str(error)) from error
        # A server that does not count is charged by the length of its answer.
        counted = token_estimate(reply.text) if reply.completion_tokens is None else reply.completion_tokens
        return Reply(reply.text, min(counted, settings.max_tokens), endpoint.spent - before)

    return ask
