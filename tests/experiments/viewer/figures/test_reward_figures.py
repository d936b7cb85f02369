"""What a trained engineer's proposals earn, worked out again from their designs and the difficulty model's forecast.

Where it is shown: the page of a run (reward of proposals; different, refused and held back ones), and trackers. A
proposal earns scale x (what the model expects of its design beyond the current one), less what was held back and what
its siblings proposed too; a refused one earns -1.
"""

import html
import itertools
import json
import re
from statistics import fmean, pstdev

import pytest

from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import EngineerTraining, write_record
from lakewright.experiments.loop.redesign.engineer_training import _judge_group
from lakewright.experiments.loop.trackers import points_of
from lakewright.experiments.loop.training.trainee import make_trainee
from tests.support.samples.recorded_run import begin
from tests.support.servers.viewer_client import client, page
from tests.support.tools.raw_run import record, shares_of, tokens_until

START = {2: {"share": 0.5, "terms": 2, "carry": 0.5}, 3: {"share": 0.5, "terms": 2, "carry": 0.5}}
NO_EDIT = {"reason": "too easy", "share": 0, "terms": 0, "carry": 0}
LONGER = {**START, 2: {"share": 0.5, "terms": 3, "carry": 0.5}}
# What is proposed, and the design that the guard makes of it; None where it refuses.
PROPOSALS = [
    ({"2": {"terms": 1}}, LONGER),
    ({"2": {"terms": 1, "carry": 0.01}}, {**LONGER, 2: LONGER[2] | {"carry": 0.51}}),
    (
        {"2": {"share": 0.1}, "3": {"share": -0.1}},
        {2: START[2] | {"share": 0.6}, 3: START[3] | {"share": 0.4}},
    ),
    ({"2": {"share": 0.1}}, {2: START[2] | {"share": 0.6 / 1.1}, 3: START[3] | {"share": 0.5 / 1.1}}),
    ({"3": {"terms": 3}}, None),
]
GROUPS = [[0, 1, 2, 3, 4], [0, 0, 2, 2, 3]]  # of proposals, before the training and after it
HELD_BACK = {3}
SCALE, LOST, IDENTICAL, NEAR = 50, 0.1, 0.5, 0.02
DRAWS = 512  # of the model's posterior, by which the loop averages


class Letters:
    """Speech in which each letter is a token."""

    def decode_answers(self, answers):
        """The texts."""
        return ["".join(answer) for answer in answers]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    """A run whose engineer was trained after its first stage."""
    run = begin(tmp_path_factory.mktemp("figures") / "run")
    trainee, texts = make_trainee(run.settings()), [write_answer(edits) for edits, _ in PROPOSALS]
    groups = [_judge_group(trainee, run, 0, Letters(), [list(texts[place]) for place in group]) for group in GROUPS]
    write_record(run.stage(0).engineer, EngineerTraining([], groups))
    return run


def write_answer(edits: dict) -> str:
    return json.dumps({"edits": {stratum: NO_EDIT | edit for stratum, edit in edits.items()}})


def expected_score(run: RunFolder, design: dict) -> float:
    """E[p (1 - p)] = E[p] - E[p]^2 - Var[p] of the model's p, over the kinds of sums, beyond that of the start."""
    grid = {json.dumps(cell["cell"]): cell for cell in record(run, "stage_00", "difficulty")["grid"]}

    def mean(rows: dict) -> float:
        shares = shares_of({"strata": rows})
        kinds = [(share, grid[name]) for name, share in shares.items()]
        return sum(share * (kind["p"] - kind["p"] ** 2 - kind["deviation"] ** 2) for share, kind in kinds)

    return mean(design) - mean(START)


def is_near(one: dict, other: dict) -> bool:
    """All values within 0.02, or of the number of terms, which has a range of two, within 0.04."""
    spans = {"share": 1, "terms": 2, "carry": 1}
    return all(abs(one[s][name] - other[s][name]) <= NEAR * span + 1e-12 for s in one for name, span in spans.items())


def siblings_of(group: list[int]) -> list[float]:
    """The share of the other proposals of a group that lead to much the same design; refused ones leave it as it is."""
    designs = [PROPOSALS[place][1] or START for place in group]
    return [
        fmean(is_near(one, other) for place, other in enumerate(designs) if place != mine)
        for mine, one in enumerate(designs)
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_a_proposal_earns_what_the_model_expects_of_its_design_less_what_it_loses(run, number):
    group = record(run, "stage_00", "engineer")["groups"][number]
    for place, alike, earned in zip(GROUPS[number], siblings_of(GROUPS[number]), group["earned"], strict=True):
        design = PROPOSALS[place][1]
        status = "refused" if design is None else "projected" if place in HELD_BACK else "accepted"
        assert (earned["status"], earned["siblings"]) == (status, pytest.approx(alike))
        if design is None:
            assert earned["reward"] == -1
            continue
        assert earned["score"] == pytest.approx(expected_score(run, design), abs=4 * 0.1 / DRAWS**0.5)
        reward = SCALE * earned["score"] - LOST * (place in HELD_BACK) - IDENTICAL * alike
        assert earned["reward"] == pytest.approx(reward)
    rewards = [earned["reward"] for earned in group["earned"]]
    for earned in group["earned"]:
        assert earned["advantage"] == pytest.approx((earned["reward"] - fmean(rewards)) / pstdev(rewards))


def shown_points(run: RunFolder) -> dict[str, list[float]]:
    """The points of the charts of the engineer's training, by the name of their series."""
    found = re.findall(r"<title>([^:<]*): ([-+.e\d]+)</title>", html.unescape(page(client(run.folder), "/run/run")))
    names = ("mean reward", "different answers", "refused", "clipped")
    return {name: [float(value) for title, value in found if title == name][-len(GROUPS) :] for name in names}


def test_the_page_and_trackers_show_the_means_of_each_group(run):
    groups = record(run, "stage_00", "engineer")["groups"]
    rewards = [fmean(earned["reward"] for earned in group["earned"]) for group in groups]
    distinct = [len(set(group)) / len(group) for group in GROUPS]
    refused = [sum(PROPOSALS[place][1] is None for place in group) / len(group) for group in GROUPS]
    held_back = [sum(place in HELD_BACK for place in group) / len(group) for group in GROUPS]
    shown = shown_points(run)
    assert shown["mean reward"] == pytest.approx(rewards, rel=1e-3)
    for name, shares in {"different answers": distinct, "refused": refused, "clipped": held_back}.items():
        assert shown[name] == pytest.approx([100 * share for share in shares], rel=1e-3)
    *_, last = points_of(run, 1)
    figures = {
        name: last.figures[f"train/engineer/{name}"] for name in ("reward_before", "reward", "distinct", "refused")
    }
    assert list(figures.values()) == pytest.approx([*rewards, distinct[-1], refused[-1]])


def test_the_engineer_is_charged_for_the_answers_after_the_first_group(run):
    """Those of the first are charged to the proposal."""
    tokens = sum(len(write_answer(PROPOSALS[place][0])) for place in itertools.chain(*GROUPS[1:]))
    *_, row = re.findall(r'data-table="results"><table>(.*?)</table>', page(client(run.folder), "/run/run"), re.DOTALL)
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
    assert str(tokens + tokens_until(run, "stage_00")) in [cell.replace(" ", "").strip() for cell in cells]
