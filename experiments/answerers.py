"""Who answers an evaluation: a planner, or a model behind an endpoint."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec

from core_jax.formats import Row
from core_jax.ranges import Natural
from experiments.planners import PLANNERS
from policy.endpoint import Endpoint, EndpointSettings, Question

PLANS_AT_ONCE = 128  # kept together


class AnswerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An answer as it is kept. sample: 0 is greedy, from 1 on they are drawn.

    Either text, of a model that answers in words, or plan, null where there is none that could be read. finish: why the
    model ended, `length` where it was cut off.
    """

    id: str
    sample: Natural
    text: str | None = None
    plan: list[str] | None = None
    prompt_tokens: Natural | None = None
    completion_tokens: Natural | None = None
    finish: str | None = None


@dataclasses.dataclass(frozen=True)
class Asked:
    """One answer that is wanted."""

    row: Row
    prompt: str
    sample: int
    temperature: float


class Answerer(Protocol):
    """`identity`: all that the answers depend on, apart from what is asked. `name`: for people."""

    name: str
    identity: dict[str, Any]

    def answers(self, asked: Sequence[Asked]) -> Iterator[list[AnswerRow]]:
        """The answers as they come, in any order."""
        ...


class PlannerAnswerer:
    """A planner of `experiments.planners`, which reads no prompt."""

    def __init__(self, solver: str, seed: int) -> None:
        self.name = f"solver {solver}"
        self.identity = {"solver": solver, "seed": seed}
        self._plan, self._seed = PLANNERS[solver], seed

    def answers(self, asked: Sequence[Asked]) -> Iterator[list[AnswerRow]]:
        """In order."""
        for some in _batched(asked, PLANS_AT_ONCE):
            yield [AnswerRow(one.row.id, one.sample, plan=self._plan(one.row, self._seed + one.sample)) for one in some]


class EndpointAnswerer:
    """A model behind an endpoint. spent: dollars of answers that are there already."""

    def __init__(self, settings: EndpointSettings, spent: float) -> None:
        self.name = settings.model
        self.identity = {"endpoint": settings.url, "model": settings.model, "max_tokens": settings.max_tokens}
        self._settings, self._spent = settings, spent

    def answers(self, asked: Sequence[Asked]) -> Iterator[list[AnswerRow]]:
        """As they come. Raises EndpointError or BudgetSpentError once all that were asked for have come."""
        endpoint = Endpoint(self._settings, self._spent)
        questions = (Question([{"role": "user", "content": one.prompt}], one.temperature) for one in asked)
        for place, said in endpoint.ask_all(questions):
            row, sample = asked[place].row, asked[place].sample
            tokens = (said.prompt_tokens, said.completion_tokens)
            yield [AnswerRow(row.id, sample, said.text, None, *tokens, said.finish)]


def _batched(asked: Sequence[Asked], size: int) -> Iterator[Sequence[Asked]]:
    return (asked[begin : begin + size] for begin in range(0, len(asked), size))
