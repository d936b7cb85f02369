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

import pytest

from lakewright.core_jax.rows import write_rows
from lakewright.experiments.evaluation.scores import Summary
from lakewright.experiments.evaluation.table import as_table
from tests.support.samples.evaluations import ROWS, CertifiedAnswers, run_evaluation
from tests.support.servers.viewer_client import client, page
from tests.support.tools.plain_figures import numbers, page_table, score_interval

SAMPLES = 3
WORSE = {1: "agent 0: UP", 4: "No.", 7: "", 9: "agent 0: STAY STAY"}


class Wavering(CertifiedAnswers):
    """Fails on some boards always, and on others in one sample."""

    def answers(self, asked):
        for one, [answer] in zip(asked, super().answers(asked), strict=True):
            place = next(number for number, row in enumerate(ROWS) if row.id == one.row.id)
            text = "No." if place % 3 == one.sample else answer.text
            yield [type(answer)(answer.id, one.sample, text, None, 10, 5, "stop")]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory) -> tuple[Path, Summary]:
    """An evaluation with a greedy answer and three samples of each board."""
    base = tmp_path_factory.mktemp("figures")
    write_rows(base / "rows.jsonl", ROWS)
    summary = run_evaluation(base / "rows.jsonl", base / "out", Wavering(WORSE), samples=SAMPLES)
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
            certified = place % 3 != sample and place not in WORSE
            assert valid(found, row, sample) == certified, (place, sample)


def test_the_table_counts_the_verdicts(evaluated):
    folder, summary = evaluated
    found, text = verdicts(folder), as_table(summary)
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


def test_pass_at_k_is_the_share_of_choices_that_have_a_right_answer(evaluated):
    folder, summary = evaluated
    found = verdicts(folder)
    [line] = [line for line in as_table(summary).splitlines() if line.startswith("valid, 3 samples")]
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


def test_tokens_and_failures_are_those_of_the_answers(evaluated):
    folder, summary = evaluated
    kept = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    text = as_table(summary)
    prompt, completion = (sum(one[name] for one in kept) for name in ("prompt_tokens", "completion_tokens"))
    assert f"tokens: {prompt:,} in, {completion:,} out" in text
    greedy = [verdicts(folder)[row.id, 0]["failure"] for row in ROWS]
    assert summary.pooled.outcomes.failures == {**dict.fromkeys(summary.pooled.outcomes.failures, 0)} | Counter(
        failure for failure in greedy if failure != "none"
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
