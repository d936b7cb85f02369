"""The policy under training behind an OpenAI-compatible server, rolled out there for trials and samplers."""

from collections.abc import Sequence
from pathlib import Path

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Environment, Group, Problem
from lakewright.engineer.evidence import token_estimate
from lakewright.engineer.trial import RollOut
from lakewright.experiments.jobs.resumable.spending import Spending
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.inference import BudgetSpentError, Endpoint, EndpointSettings, Question, price_tokens

SEEDS = 1_000_003  # apart: those of two turns differ


def find_served_policy(settings: FolderSettings, environment: Environment, spending: Path) -> RollOut | None:
    """A way to roll out the policy at the server `rollouts` of a folder's settings; None without one.

    spending: the file of charges.
    """
    if settings.rollouts is None:
        return None
    return make_served_rollouts(settings.rollouts, settings.rollout_temperature, environment, Spending(spending))


def make_served_rollouts(
    settings: EndpointSettings, temperature: float, environment: Environment, spending: Spending
) -> RollOut:
    """A way to roll out the policy that a server has at that moment.

    Args:
        settings: the server's settings.
        temperature: temperature of the answers.
        environment: judges them.
        spending: what was paid before, to which each request is added.

    What it returns raises InputError if the server does not answer, or the cost cap leaves no room.
    """

    def roll_out(problems: Sequence[Problem], samples: int, turn: int) -> tuple[list[Group], int]:
        endpoint = Endpoint(settings, price_tokens(settings, *spending.count_tokens()), spending.add)
        questions = [
            Question([{"role": "user", "content": problem.prompt}], temperature, seed=SEEDS * turn + place)
            for place, problem in enumerate(problem for problem in problems for _ in range(samples))
        ]
        texts, tokens = [[""] * samples for _ in problems], 0
        try:
            with spending:
                for place, answer in endpoint.ask_all(questions):
                    texts[place // samples][place % samples] = answer.text
                    counted = answer.completion_tokens
                    tokens += token_estimate(answer.text) if counted is None else counted
        except BudgetSpentError:
            cap = settings.max_cost
            raise InputError(f"rollouts: the cost cap of {cap} dollars leaves no room for more; raise it") from None
        return environment.groups(problems, texts), tokens

    return roll_out
