"""What asking a server costs: the cap is never exceeded, and every try that may be billed counts."""

import json

import pytest

from lakewright.policy.inference import (
    BudgetSpentError,
    Charge,
    Endpoint,
    EndpointAnswer,
    EndpointError,
    EndpointSettings,
    sum_charges,
)
from tests.support.servers.chat_server import (
    echo,
    failing,
    saying,
    serving,
)
from tests.support.servers.questions import FAULTS, HELLO, questions

MOST = (5 + 64, 64)  # tokens in and out that a question of five letters may cost; it does cost (100, 50)


def capped(server, cap: float, charges: list[Charge], **changes) -> Endpoint:
    """An endpoint at a dollar and two dollars for a million tokens, whose charges are kept."""
    given = {"model": "m", "timeout": 0.4, "retries": 2, "max_tokens": 64, "price_in": 1.0, "price_out": 2.0}
    return Endpoint(EndpointSettings(server.url, max_cost=cap, **given | changes), record=charges.append)


def cost(tokens: tuple[int, int]) -> float:
    return (tokens[0] + 2 * tokens[1]) / 1e6


def test_the_cost_cap_is_never_exceeded_and_stops_cleanly():
    cap, charges = 1.1e-3, []
    with serving(echo) as server:
        asked = capped(server, cap, charges, concurrency=4)
        found = {}
        with pytest.raises(BudgetSpentError):
            found.update(asked.ask_all(questions(50)))
    assert len(found) == 5 == len(server.seen)
    assert asked.spent == pytest.approx(5 * cost((100, 50))) == pytest.approx(cost(sum_charges(charges)))
    assert asked.spent <= cap


BILLED = (
    "an internal error",
    "a bad gateway",
    "silence",
    "a drip",
    "half a JSON",
    "a closed connection",
    "an answer cut off",
)

pytestmark = pytest.mark.usefixtures("quick_endpoint")


@pytest.mark.parametrize("name", BILLED)
def test_every_try_that_may_be_billed_counts_as_the_most_and_none_goes_beyond_the_cap(name):
    charges = []
    with serving(FAULTS[name]) as server:
        asked = capped(server, 2.5 * cost(MOST), charges, retries=8)
        with pytest.raises(BudgetSpentError):
            asked.ask([{"role": "user", "content": "hello"}])
    assert len(server.seen) == 2, "a third try might exceed the cap"
    assert asked.spent == pytest.approx(2 * cost(MOST)) == pytest.approx(cost(sum_charges(charges)))


@pytest.mark.parametrize("status", [400, 401, 429, 503])
def test_what_a_server_refuses_costs_nothing(status):
    charges = []
    with serving(echo, [failing(status)]) as server:
        asked = capped(server, 1.5 * cost(MOST), charges)
        if status in (400, 401):
            with pytest.raises(EndpointError):
                asked.ask(HELLO)
        else:
            asked.ask(HELLO)
    assert asked.spent == pytest.approx(0 if status in (400, 401) else cost((100, 50)))
    assert cost(sum_charges(charges)) == pytest.approx(asked.spent)


def test_a_server_that_is_never_reached_costs_nothing():
    with serving(echo) as server:
        pass
    charges = []
    asked = capped(server, 1.5 * cost(MOST), charges)
    with pytest.raises(EndpointError):
        asked.ask(HELLO)
    assert asked.spent == 0 == cost(sum_charges(charges))


def test_a_try_is_charged_before_it_is_sent_so_that_a_kill_forgets_none():
    charges, sent = [], []

    def watching(request, body):
        sent.append(list(charges))
        echo(request, body)

    with serving(watching) as server:
        capped(server, 1.0, charges).ask(HELLO)
    assert [sum_charges(before) for before in sent] == [MOST]
    assert sum_charges(charges) == (100, 50)


@pytest.mark.parametrize("form", ["json_schema", "json_object"])
def test_a_schema_may_be_billed_as_a_part_of_the_prompt(form):
    charges, schema = [], {"type": "object", "description": "é" * 500}
    with serving(FAULTS["an internal error"]) as server:
        asked = capped(server, 1.0, charges, retries=0)
        with pytest.raises(EndpointError):
            asked.ask([{"role": "user", "content": "hello"}], schema=schema, form=form)
    tokens_in, tokens_out = sum_charges(charges)
    assert tokens_in >= MOST[0] + len(json.dumps(schema).encode())
    assert tokens_out == MOST[1]


def test_what_was_spent_before_counts_for_the_cap_and_unknown_tokens_cost_the_most():
    with serving(saying("hello", usage=None)) as server:
        settings = EndpointSettings(server.url, "m", 100, price_out=1e4, max_cost=2.0)
        asked = Endpoint(settings, spent=1.0)
        assert asked.ask(HELLO) == EndpointAnswer("hello", None, None, "stop")
        assert asked.spent == pytest.approx(2.0)
        with pytest.raises(BudgetSpentError):
            asked.ask(HELLO)
