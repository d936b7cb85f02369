"""Planning with the simulator as judge: for a policy's greedy plan and its samples, the best valid one.

    planner = load_planner("pretrained", samples=8)
    planner.plan(row)        # the moves of each agent, ["RRDW", "UULL"], or None

This is what a user of a policy would run; its rates are not the policy's alone, greedy or pass@k.
"""

import dataclasses
from collections.abc import Sequence
from itertools import islice

import torch
from transformers import PreTrainedModel

from lakewright.core_jax.rows import Row, VerdictRow, board_of, find_distance, plan_of
from lakewright.policy.codecs.codec import Codec, codec_for
from lakewright.policy.inference.answers import find_answers
from lakewright.policy.judging import best_valid, judge_plans
from lakewright.policy.models.building import get_codec
from lakewright.policy.models.loading import load_model

HORIZON = 64  # steps of the longest plan
PlanStrings = list[str]  # the moves of each agent


@dataclasses.dataclass(frozen=True)
class Planner:
    """A policy, and how its plans are sampled.

    Args:
        model: the policy.
        codec: writes its prompts and reads its answers.
        samples: plans beside the greedy one; with 0 the greedy plan alone is judged.
        temperature: sampling temperature.
        first_valid: accept a valid greedy plan whatever it costs.
        horizon: steps of the longest plan.
        seed: the same seed gives the same plans for the same boards.
    """

    model: PreTrainedModel
    codec: Codec
    samples: int = 8
    temperature: float = 1.0
    first_valid: bool = False
    horizon: int = HORIZON
    seed: int = 0

    def plan(self, row: Row) -> PlanStrings | None:
        """Return the plan for one board, as `plans`."""
        return self.plans([row])[0]

    def plans(self, rows: Sequence[Row]) -> list[PlanStrings | None]:
        """Return for each board the valid plan with the least sum of costs, None if no plan is valid.

        Of two plans of equal cost the greedy one is taken. A board is sampled only if that can help: if its greedy plan
        fails or, without `first_valid`, costs more than the shortest paths of its agents. Raises InputError on a board
        that the codec cannot describe.
        """
        if not rows:
            return []
        greedy = _judge_each(rows, self._sample_plans(rows, 1, 0.0))
        left = [place for place, row in enumerate(rows) if self.samples and self._may_improve(row, greedy[place])]
        some = [rows[place] for place in left]
        torch.manual_seed(self.seed)
        sampled = dict(
            zip(left, _judge_each(some, self._sample_plans(some, self.samples, self.temperature)), strict=True)
        )
        return [_choose_cheaper(one, sampled.get(place)) for place, one in enumerate(greedy)]

    def _may_improve(self, row: Row, greedy: "_Judged | None") -> bool:
        if greedy is None:
            return True
        return not self.first_valid and greedy.sum_of_costs > sum_shortest_paths(row)

    def _sample_plans(self, rows: Sequence[Row], copies: int, temperature: float) -> list[list[PlanStrings | None]]:
        """Return `copies` answers to each board, None for an answer that cannot be read."""
        if not rows:
            return []
        boards = [board_of(row) for row in rows]
        made = find_answers(self.model, self.codec.tokenizer, self.codec.batch).sample(
            [self.codec.encode_prompt(board) for board in boards],
            copies=copies,
            max_new_tokens=max(self.codec.answer_length(self.horizon, row.agents) for row in rows),
            temperature=temperature,
            scored=self.codec.name == "tokens",
        )
        read = [
            self.codec.decode_answer(answer, boards[place // copies], self.horizon)
            for place, answer in enumerate(made.answers)
        ]
        plans = [None if moves is None else plan_of(moves) for moves in read]
        return [plans[begin : begin + copies] for begin in range(0, len(plans), copies)]


def load_planner(
    name: str, *, samples: int = 8, temperature: float = 1.0, first_valid: bool = False, device: str = "auto"
) -> Planner:
    """Return a planner that asks the model `name`.

    Args:
        name: a checkpoint folder, a name on the hub, or `pretrained`.
        samples, temperature, first_valid: see `Planner`.
        device: see `load_model`.

    Raises InputError as `load_model`.
    """
    model, tokenizer = load_model(name, device=device)
    return Planner(model, codec_for(get_codec(model), tokenizer), samples, temperature, first_valid)


@dataclasses.dataclass(frozen=True)
class _Judged:
    plan: PlanStrings
    sum_of_costs: int


def _judge_each(rows: Sequence[Row], plans: Sequence[Sequence[PlanStrings | None]]) -> list[_Judged | None]:
    """Return the best valid plan of those for each board; all are judged together."""
    readable = [[plan for plan in of_row if plan is not None] for of_row in plans]
    repeated = [row for row, of_row in zip(rows, readable, strict=True) for _ in of_row]
    verdicts = iter(judge_plans(repeated, [plan for of_row in readable for plan in of_row]))
    return [_choose_best(of_row, list(islice(verdicts, len(of_row)))) for of_row in readable]


def _choose_best(plans: Sequence[PlanStrings], verdicts: Sequence[VerdictRow]) -> _Judged | None:
    place = best_valid(verdicts)
    if place is None:
        return None
    cost = verdicts[place].sum_of_costs
    assert cost is not None, "a valid plan has costs"
    return _Judged(plans[place], cost)


def _choose_cheaper(greedy: _Judged | None, sampled: _Judged | None) -> PlanStrings | None:
    both = [one for one in (greedy, sampled) if one]
    return min(both, key=lambda one: one.sum_of_costs).plan if both else None


def sum_shortest_paths(row: Row) -> float:
    """Return the sum of the agents' shortest paths, the others ignored: no plan costs less. Infinite without a path."""
    distances = [find_distance(row, agent) for agent in range(row.agents)]
    return sum(float("inf") if steps is None else steps for steps in distances)
