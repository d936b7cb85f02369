"""Rollouts: groups that teach nothing are counted, and on request left out before they cost an update."""

from types import SimpleNamespace

import numpy as np
import pytest

from lakewright.policy.codecs.tokens import ID, encode_answer, encode_prompt_tokens
from lakewright.policy.inference import Samples
from lakewright.policy.training import GrpoSettings
from lakewright.policy.training.rollouts import Rollouts
from lakewright.policy.training.settings import HostSettings
from tests.support.boards.sample_boards import as_lists
from tests.support.models.tiny_policy import HORIZON, board_play, tasks
from tests.support.refusals import refused

GROUP, END = 4, ID["<eos>"]
ASKED = list(tasks()[:24])


def informative(number: int) -> bool:
    """Which of the asked boards get answers of several rewards: every third."""
    return number % 3 == 0


def answer(prompts, *, copies, **_) -> Samples:
    """Solves every board of ASKED, but is wrong once in each informative group."""
    made = []
    for prompt in prompts:
        number = next(i for i, task in enumerate(ASKED) if encode_prompt_tokens(task.board) == prompt)
        right = encode_answer(ASKED[number].board, ASKED[number].moves)
        made += [[END] if informative(number) and copy == 1 else right for copy in range(copies)]
    return Samples(made, [[-0.5] * len(answer) for answer in made])


UNWRAPPING = SimpleNamespace(unwrap_model=lambda model: model)
TRAINER = SimpleNamespace(model=SimpleNamespace(sample=answer), accelerator=UNWRAPPING)


@pytest.fixture
def make():
    """Rollouts of ASKED."""

    def make(oversample: int, horizon: int = HORIZON, **changes) -> Rollouts:
        left = iter(ASKED)
        how = {"group": GROUP, "oversample": oversample, "temperature": 1.0, **changes}
        return Rollouts(lambda count: [next(left) for _ in range(count)], board_play(horizon), **how)

    return make


def groups(output: dict[str, list]) -> list[int]:
    """Which boards were trained on, group by group."""
    prompts = output["prompt_ids"]
    assert all(prompts[row] == prompts[row - row % GROUP] for row in range(len(prompts)))
    return [next(i for i, task in enumerate(ASKED) if encode_prompt_tokens(task.board) == p) for p in prompts[::GROUP]]


def test_without_a_filter_every_board_is_trained_on(make):
    output = make(1)(["place"] * 6 * GROUP, TRAINER)
    assert sorted(groups(output)) == list(range(6))
    assert {name: len(rows) for name, rows in output.items()} == dict.fromkeys(output, 6 * GROUP)


def test_the_filter_keeps_the_informative_groups(make):
    made = make(4)
    output = made(["place"] * 6 * GROUP, TRAINER)
    assert groups(output) == [0, 3, 6, 9, 12, 15]
    earned = np.array(output["plan_reward"]).reshape(-1, GROUP)
    assert (np.ptp(earned, axis=1) > 0).all()
    assert made.figures["sampled/groups"] == 18, "it stops sampling once there are enough"


def test_where_too_few_groups_are_informative_others_fill_the_step(make):
    assert groups(make(2)(["place"] * 6 * GROUP, TRAINER)) == [0, 3, 6, 9, 1, 2]


def test_the_figures_are_those_of_all_answers_sampled(make):
    made = make(2)
    made(["place"] * 6 * GROUP, TRAINER)
    logged: dict[str, float] = {}
    assert made.reward([0.5, 1.0], lambda name, value: logged.update({name: value}), prompts=[]) == [0.5, 1.0]
    assert logged["sampled/zero_variance"] == pytest.approx(8 / 12)
    assert logged["valid"] == pytest.approx(1 - 4 / 48)
    assert logged["failure/goal_not_reached"] == pytest.approx(4 / 48)
    assert sum(value for name, value in logged.items() if "failure" in name or name == "valid") == pytest.approx(1)


def test_a_guided_group_ends_with_the_certified_plan_at_the_reward_of_an_optimal_one(make):
    made = make(1, guided=True)
    output = made(["place"] * 6 * GROUP, TRAINER)
    assert groups(output) == [0, 3, 1, 2, 4, 5]
    for row, task in zip(range(GROUP - 1, 6 * GROUP, GROUP), map(ASKED.__getitem__, groups(output)), strict=True):
        assert output["completion_ids"][row] == encode_answer(task.board, task.moves), as_lists(task.board)
        assert output["plan_reward"][row] == 1
    assert made.figures["valid"] == pytest.approx(1 - 2 / 18), "what nobody sampled counts for nothing"
    assert made.figures["sampled/tokens"] == sum(
        len(answer) for row, answer in enumerate(output["completion_ids"]) if row % GROUP < GROUP - 1
    )


def test_a_certified_plan_that_is_longer_than_answers_may_be_earns_nothing(make):
    place = max(range(6), key=lambda place: ASKED[place].moves.shape[1])
    made = make(1, guided=True, horizon=ASKED[place].moves.shape[1] - 1)
    output = made(["place"] * 6 * GROUP, TRAINER)
    row = GROUP * groups(output).index(place) + GROUP - 1
    assert output["plan_reward"][row] == 0, as_lists(ASKED[place].board)


def test_guidance_and_chances_of_another_sampler_are_refused_together():
    with refused("guided", "host.vllm colocate", kind=ValueError):
        GrpoSettings(guided=True, host=HostSettings(vllm="colocate"))
