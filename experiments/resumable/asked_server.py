"""An engineer behind a server, within a cost cap; the possible cost is saved before each try."""

from lakewright.engineer.evidence import token_estimate
from lakewright.engineer.teachers import Ask, Message, Reply, UnansweredError
from lakewright.experiments.resumable.spending import Spending
from lakewright.policy.inference import (
    BudgetSpentError,
    Endpoint,
    EndpointAnswer,
    EndpointError,
    EndpointSettings,
    price_tokens,
)

REFUSING = (400, 404, 415, 422, 501)  # statuses by which servers refuse structured output


def ask_server(settings: EndpointSettings, temperature: float, spending: Spending, *, recorded: bool) -> Ask:
    """Asks for JSON under the schema; a server that refuses every form of a schema is asked without one.

    settings: of the server. temperature: of the answers. spending: the charges so far. recorded: whether new charges
    are added to it.
    """
    paid, forms = price_tokens(settings, *spending.count_tokens()), list(settings.schemas)
    endpoint = Endpoint(settings, paid, spending.add) if recorded else Endpoint(settings, paid)

    def answer(messages: list[Message], schema: dict, seed: int) -> EndpointAnswer:
        how = {"temperature": temperature, "seed": seed}
        while forms:
            try:
                return endpoint.ask(messages, schema=schema, form=forms[0], **how)
            except EndpointError as error:
                if error.status not in REFUSING:
                    raise
                del forms[0]
        return endpoint.ask(messages, **how)

    def ask(messages: list[Message], schema: dict, seed: int) -> Reply:
        before = endpoint.spent
        try:
            found = answer(messages, schema, seed)
        except BudgetSpentError:
            cap = settings.max_cost
            raise UnansweredError(f"the cost cap of {cap} dollars leaves no room for a question") from None
        except EndpointError as error:
            raise UnansweredError(str(error)) from error
        # A server that does not count is charged by the length of its answer.
        counted = token_estimate(found.text) if found.completion_tokens is None else found.completion_tokens
        return Reply(found.text, min(counted, settings.max_tokens), endpoint.spent - before)

    return ask
