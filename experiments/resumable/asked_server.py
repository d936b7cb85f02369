"""An engineer behind a server: asked within a cost cap, what it costs being noted before each try."""

from lakewright.engineer.evidence import token_estimate
from lakewright.engineer.teachers import Ask, Message, Reply, UnansweredError
from lakewright.experiments.resumable.spending import Spending
from lakewright.policy.inference import (
    BudgetSpentError,
    Endpoint,
    EndpointAnswer,
    EndpointError,
    EndpointSettings,
    dollars,
)

REFUSING = (400, 404, 415, 422, 501)  # how servers say that they know no structured output


def ask_server(settings: EndpointSettings, temperature: float, spending: Spending, *, recorded: bool) -> Ask:
    """Asks for JSON under the schema; a server that refuses every form of that is asked in words, to be validated.

    settings: of the server. temperature: of the answers. spending: what was paid before. recorded: whether what is
    asked now is added to it.
    """
    paid, forms = dollars(settings, *spending.count_tokens()), list(settings.schemas)
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
        # A server that does not count is charged by the length of what it said.
        counted = token_estimate(found.text) if found.completion_tokens is None else found.completion_tokens
        return Reply(found.text, min(counted, settings.max_tokens), endpoint.spent - before)

    return ask
