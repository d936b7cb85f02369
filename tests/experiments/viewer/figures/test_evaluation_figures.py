"""Each figure of an evaluation, in the terminal and in the viewer, worked out again from its answers and verdicts.

Where figures of an evaluation are shown: the table of `benchmark eval` (valid rates with intervals, optimal rates,
rates on boards that force a wait, means over sizes, failures, pass@k, planning with the simulator as judge, tokens),
and the viewer's page of an evaluation.
"""

import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean

import msgspec
import pytest

from lakewright.core_jax.rows import write_rows
from lakewright.experiments.boards.evaluation.answerers import AnswerRow
from lakewright.experiments.boards.evaluation.evaluator import JudgedRow
from lakewright.experiments.boards.evaluation.score_table import tabulate_summary
from lakewright.experiments.boards.evaluation.scores import Summary, score_answers
from tests.support.samples.evaluations import CertifiedAnswers, run_evaluation, write_plan
from tests.support.samples.finished_run import board
from tests.support.servers.viewer_client import client, page
from tests.support.tools.plain_figures import numbers, page_table, score_interval

SAMPLES = 3
JUDGED = msgspec.json.Decoder(JudgedRow)
SMALL = [board(f"small {place}", wait_required=place % 2 == 0) for place in range(7)]
LARGE = [
    msgspec.structs.replace(board(f"large {place}", wait_required=place == 1), size=4, grid=["...."] * 4)
    for place in range(5)
]
ROWS = [*SMALL, *LARGE]
IDS = [row.id for row in ROWS]
NEVER = {1: "agent 0: UP", 4: "No.", 8: ""}
LATE = {5, 9}  # boards that are solved a step later than need be


class Wavering(CertifiedAnswers):
    """Fails on some boards always, and on others in one sample."""

    def answers(self, asked):
        for one in asked:
            place = IDS.index(one.row.id)
            plan = ["WRR", "LWW"] if place in LATE else one.row.plan
            text = write_plan(plan) if is_right(place, one.sample) else NEVER.get(place, "No.")
            yield [AnswerRow(one.row.id, one.sample, text, None, 10, 5, "stop")]


def is_right(place: int, sample: int) -> bool:
    return place % 3 != sample and place not in NEVER


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory) -> tuple[Path, Summary]:
    """An evaluation with a greedy answer and three samples of each board."""
    base = tmp_path_factory.mktemp("figures")
    write_rows(base / "rows.jsonl", ROWS)
    summary = run_evaluation(base / "rows.jsonl", base / "out", Wavering(), samples=SAMPLES)
    return base / "out", summary


def verdicts(folder: Path) -> dict[tuple[str, int], dict]:
    found = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    return {(one["verdict"]["id"], one["sample"]): one["verdict"] for one in found}


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def by_cell() -> dict[tuple[int, int], list]:
    cells = defaultdict(list)
    for row in ROWS:
        cells[row.agents, row.size].append(row)
    return cells


def valid(found: dict, row, sample: int = 0) -> bool:
    return found[row.id, sample]["failure"] == "none"


def test_the_answers_are_judged_by_what_was_answered(evaluated):
    found = verdicts(evaluated[0])
    for place, row in enumerate(ROWS):
        for sample in range(SAMPLES + 1):
            verdict = found[row.id, sample]
            assert (verdict["failure"] == "none") == is_right(place, sample), (place, sample)
            assert bool(verdict["optimal_sum_of_costs"]) == (is_right(place, sample) and place not in LATE)


def test_the_table_counts_the_verdicts(evaluated):
    folder, summary = evaluated
    found, text = verdicts(folder), tabulate_summary(summary)
    lines = text.split("\n\n")[1].splitlines()
    for (agents, size), rows in by_cell().items():
        [line] = [line for line in lines if f"{size}x{size}" in line and line.startswith(f"{agents} agent")]
        count = sum(valid(found, row) for row in rows)
        low, high = score_interval(count, len(rows))
        assert (
            f"{len(rows)}  {percent(count / len(rows))} [{percent(low)}, {percent(high)}]".split()
            == line.split()[3 : 3 + 4]
        )
    means = {
        agents: fmean(
            fmean(valid(found, row) for row in rows) for (team, _), rows in by_cell().items() if team == agents
        )
        for agents, _ in by_cell()
    }
    for line in lines:
        if "mean over sizes" in line:
            assert f" {percent(means[int(line.split()[0])])} " in line


def test_a_size_without_answers_yet_does_not_count_as_failed(evaluated):
    """In the mean over sizes: an evaluation that was stopped has answers to some sizes only."""
    lines = (evaluated[0] / "verdicts.jsonl").read_text().splitlines()
    judged = {(one.verdict.id, one.sample): one.verdict for one in map(JUDGED.decode, lines)}
    size = ROWS[0].size
    known = {key: verdict for key, verdict in judged.items() if verdict.id in {r.id for r in ROWS if r.size == size}}
    _, teams, _ = score_answers(ROWS, known, 0, 0)
    for team in teams:
        rows = [row for row in ROWS if row.agents == team.agents and row.size == size]
        if rows and len(team.sizes) > 1:
            assert team.means["valid"] == fmean(judged[row.id, 0].valid for row in rows)


def test_pass_at_k_is_the_share_of_choices_that_have_a_right_answer(evaluated):
    folder, summary = evaluated
    found = verdicts(folder)
    [line] = [line for line in tabulate_summary(summary).splitlines() if line.startswith("valid, 3 samples")]
    shown = dict(zip((1, 2, 3), [numbers(part)[1:] for part in line.split("pass@")[1:]], strict=True))
    for k, (rate, low, high) in shown.items():
        each = [
            fmean(
                any(valid(found, row, sample) for sample in some)
                for some in itertools.combinations(range(1, SAMPLES + 1), k)
            )
            for row in ROWS
        ]
        mean = fmean(each)
        spread = sum((one - mean) ** 2 for one in each) / (len(each) - 1)
        trials = len(each) * min(SAMPLES, mean * (1 - mean) / spread)
        ends = score_interval(mean * trials, trials)
        assert [rate, low, high] == pytest.approx([100 * mean, *(100 * end for end in ends)], abs=0.051)


def test_planning_with_the_simulator_as_judge_is_right_where_any_answer_is(evaluated):
    folder, summary = evaluated
    found, text = verdicts(folder), tabulate_summary(summary)
    for agents in {agents for agents, _ in by_cell()}:
        [line] = [line for line in text.splitlines() if line.startswith(f"  {agents} agent")]
        shares = {"valid": [], "optimal_sum_of_costs": []}
        for (team, _), rows in by_cell().items():
            if team == agents:
                each = [[found[row.id, sample] for sample in range(SAMPLES + 1)] for row in rows]
                shares["valid"].append(fmean(any(one["failure"] == "none" for one in of) for of in each))
                shares["optimal_sum_of_costs"].append(
                    fmean(any(one["failure"] == "none" and one["optimal_sum_of_costs"] for one in of) for of in each)
                )
        for name, parts in shares.items():
            assert f"{name.replace('_', ' ')} {percent(fmean(parts))} %" in line


def test_tokens_and_failures_are_those_of_the_answers(evaluated):
    folder, summary = evaluated
    kept = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    text = tabulate_summary(summary)
    prompt, completion = (sum(one[name] for one in kept) for name in ("prompt_tokens", "completion_tokens"))
    assert f"tokens: {prompt:,} in, {completion:,} out" in text
    greedy = [verdicts(folder)[row.id, 0]["failure"] for row in ROWS]
    assert summary.pooled.outcomes.failures == {**dict.fromkeys(summary.pooled.outcomes.failures, 0)} | dict(
        Counter(failure for failure in greedy if failure != "none")
    )


def test_the_page_of_the_evaluation_shows_the_same(evaluated):
    folder, _ = evaluated
    found = verdicts(folder)
    rows = page_table(page(client(folder), "/evaluation/out"), "rates")
    for row in rows:
        mine = ROWS if row["agents"] == "all" else by_cell()[int(row["agents"]), int(row["size"])]
        count = sum(valid(found, one) for one in mine)
        low, high = score_interval(count, len(mine))
        assert (row["boards"], row["valid %"]) == (str(len(mine)), percent(count / len(mine)))
        assert row["95 %"] == f"{percent(low)} to {percent(high)}"
        waits = [valid(found, one) for one in mine if one.wait_required]
        assert row["valid, wait forced %"] == (percent(fmean(waits)) if waits else "")
        best = sum(bool(found[one.id, 0]["optimal_sum_of_costs"]) and valid(found, one) for one in mine)
        assert row["optimal sum of costs %"] == percent(best / len(mine))
