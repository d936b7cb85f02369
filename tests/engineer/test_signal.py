"""Groups that teach something are told from others, and a grader that may be broken from a task that is hard."""

import pytest

from lakewright.engineer import DesignSpace, Verdict
from lakewright.engineer.signal import (
    OpenGroup,
    StratumCount,
    add_group,
    describe_suspect,
    find_suspect_graders,
    list_metrics,
    measure_signal,
)
from lakewright.engineer.tally import Tally

RANKED = DesignSpace([1, 2, 3], [], failures=("no_number", "wrong"), ranked=True)
TASKS = DesignSpace(["sort", "reverse", "count"], [], failures=("no_number", "wrong"), ranked=False)


def right(reward=1.0):
    return Verdict(True, reward)


def wrong(reward=0.0):
    return Verdict(False, reward, "wrong")


def tally(valid, **failures):
    return Tally(valid + sum(failures.values()), valid, failures)


def test_groups_are_solved_learnable_or_out_of_reach_and_their_tokens_counted():
    count = StratumCount(answers=10, valid=5)
    for low, high, valid, answers, tokens in (
        (1, 1, 2, 2, 10),
        (0, 1, 1, 2, 30),
        (0, 0, 0, 2, 20),
        (0.1, 0.2, 0, 2, 40),
    ):
        add_group(count, OpenGroup(0, "2", low, high, answers, valid, tokens))
    add_group(count, OpenGroup(0, "2", 1, 1, 1, 1, 99))  # a single answer is no group
    found = measure_signal(count)
    assert (found.groups, found.valid, found.signal, found.learnable) == (4, 0.5, 0.5, 0.5)
    assert (found.solved, found.out_of_reach, found.wasted) == (0.25, 0.25, 0.3)
    assert measure_signal(StratumCount()).signal == 0


def test_metrics_of_groups_are_named_by_stratum():
    found = list_metrics(
        [
            (2, [right(), wrong()], [3, 3]),
            (2, [right(), right()], [4, 4]),
            (5, [wrong(), wrong()], [7, 7]),
            (7, [right()], [1]),
        ]
    )
    assert found == {
        "engineer/2/valid": 0.75,
        "engineer/2/signal": 0.5,
        "engineer/2/solved": 0.5,
        "engineer/2/out_of_reach": 0,
        "engineer/2/tokens_without_signal": 8 / 14,
        "engineer/5/valid": 0.0,
        "engineer/5/signal": 0.0,
        "engineer/5/solved": 0.0,
        "engineer/5/out_of_reach": 1,
        "engineer/5/tokens_without_signal": 1,
        "engineer/7/valid": 1.0,
        "engineer/signal": 1 / 3,
        "engineer/tokens_without_signal": 22 / 28,
    }
    assert list_metrics([]) == {}


@pytest.mark.parametrize(
    ("space", "tallies", "suspects"),
    [
        (RANKED, {1: tally(30, wrong=10), 2: tally(0, no_number=40)}, {2: "all 40 answers fail as no_number"}),
        (
            RANKED,
            {1: tally(0, no_number=20, wrong=20), 2: tally(30, wrong=10)},
            {1: "while harder ones succeed: 2 75%"},
        ),
        (RANKED, {1: tally(30, wrong=10), 2: tally(0, no_number=20, wrong=20)}, {}),
        (RANKED, {1: tally(30, wrong=10), 2: tally(0, no_number=20)}, {}),
        (RANKED, {1: tally(1, wrong=60), 2: tally(30, wrong=10)}, {}),
        (TASKS, {"sort": tally(0, no_number=20, wrong=20), "reverse": tally(20, wrong=20)}, {"sort": "others succeed"}),
        (
            TASKS,
            {"sort": tally(0, no_number=9, wrong=30), "reverse": tally(1, wrong=40), "count": tally(0, wrong=3)},
            {},
        ),
    ],
)
def test_a_stratum_without_success_is_suspect_where_hardness_does_not_explain_it(space, tallies, suspects):
    found = find_suspect_graders(tallies, space)
    assert list(found) == list(suspects)
    for stratum, reason in suspects.items():
        assert reason in found[stratum]
        assert describe_suspect("stratum", stratum, found[stratum]).startswith(
            f"stratum {stratum}: {found[stratum]}; a broken"
        )
