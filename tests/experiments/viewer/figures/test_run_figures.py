"""Each figure that is shown of a run, worked out again from the raw records in its folder.

Where figures of a run are shown, and what they are worked out from here:
- the terminal's table (`report`): valid rates, rates with a trait, failures: the answers in plans.jsonl;
- the page of the run and report.html: the sentence on top, the same rates with intervals, by stratum, tokens, minutes,
  forecasts, the steps of the training: plans.jsonl, train.jsonl, sampled.json, trial.json, proposal.json, done.json;
- the page of a stage and `engineer show`: the trial with its leads, held-out changes, what was drawn, the forecast;
- the story of a stage, a line each;
- the page that compares runs: their ends.
Runs in progress, what proposals earn, trackers, studies, evaluations, sweeps and the folders of engineers have files of
their own beside this one.
"""

import html
import json
import math
import re
from collections import Counter
from statistics import NormalDist, fmean, pvariance

import pytest

from lakewright.experiments.loop.records.history import describe_stage
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.viewer.catalogue.run_space import find_space
from lakewright.experiments.viewer.proposals import read_shown_stage, stage_text
from lakewright.experiments.viewer.run_table import tabulate_run
from lakewright.experiments.viewer.site import write_report
from tests.support.samples.recorded_run import begin
from tests.support.servers.viewer_client import client, page
from tests.support.tools.plain_figures import numbers, page_table, score_interval, text_table
from tests.support.tools.raw_run import (
    PARTS,
    answers,
    brier_scores,
    lines,
    rate,
    record,
    score_of,
    shares_of,
    tokens_before_validation,
    tokens_until,
)

NAMES = ("warm-up", "stage 0", "stage 1")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    return begin(tmp_path_factory.mktemp("figures") / "run")


@pytest.fixture(scope="module")
def shown(run) -> str:
    """The page of the run."""
    return page(client(run.folder), "/run/run")


@pytest.fixture(scope="module")
def stage(run) -> str:
    """The page of its first stage."""
    return page(client(run.folder), "/stage/0/run")


def percent(pair: tuple[int, int]) -> str:
    return f"{100 * pair[0] / pair[1]:.1f}"


def test_the_table_in_the_terminal_counts_the_answers(run):
    rows = [row for row in text_table("name" + tabulate_run(run)[4:]) if row["name"] in NAMES]
    assert [row["name"] for row in rows] == list(NAMES)
    for row, part in zip(rows, PARTS, strict=True):
        found = answers(run, part)
        assert row["valid %"] == percent(rate(found))
        assert row["valid, with carry %"] == percent(rate(found, carry=True))
        kinds = Counter(failure for *_, failure in found if failure != "none")
        for kind, count in kinds.items():
            assert f"{kind.replace('_', ' ')} {count}" in tabulate_run(run)


def test_the_page_of_the_run_counts_answers_tokens_and_minutes(run, shown):
    for row, part in zip(page_table(shown, "results"), PARTS, strict=True):
        found = answers(run, part)
        assert row["valid %"] == percent(rate(found))
        assert row["valid, with carry %"] == percent(rate(found, carry=True))
        assert int(row["tokens"].replace(" ", "")) == tokens_until(run, part)
        assert row["minutes"] == f"{record(run, part, 'done')['seconds'] / 60:.1f}"
    for row, part in zip(page_table(shown, "valid by stratum"), PARTS, strict=True):
        for stratum in (2, 3):
            pair = rate(answers(run, part), stratum=stratum)
            assert row[f"{stratum} ({pair[1]})"] == percent(pair)


def test_the_sentence_on_top_says_what_became_of_the_run(run, shown):
    first, last = answers(run, PARTS[0]), answers(run, PARTS[-1])
    words = f"valid answers go from {percent(rate(first))}% to {percent(rate(last))}%, and with carry, from "
    assert words + f"{percent(rate(first, carry=True))}% to {percent(rate(last, carry=True))}%" in shown
    assert f"{len(first)} problems, the same after each stage; {rate(first, carry=True)[1]} with carry." in shown


def test_the_curves_have_the_intervals_of_their_counts(run, shown):
    pattern = r"<title>(valid[^:<]*): after ([^:]+): (\d+) of (\d+) \(([^ ]+) to ([^)]+)\)</title>"
    found = re.findall(pattern, html.unescape(shown))
    assert len(found) == 2 * len(PARTS)
    for title, name, count, of, low, high in found:
        where = {"carry": True} if "carry" in title else {}
        assert (int(count), int(of)) == rate(answers(run, PARTS[NAMES.index(name)]), **where)
        expected = [100 * end for end in score_interval(int(count), int(of))]
        assert [float(low), float(high)] == pytest.approx(expected, rel=5e-4), "four digits are shown"


def test_the_report_has_the_figures_of_the_page(run, shown):
    write_report(run)
    report = run.report.read_text()
    for name in ("results", "valid by stratum", "forecasts"):
        assert page_table(report, name) == page_table(shown, name)


def test_the_forecast_is_judged_by_what_was_observed_of_each_cell(run, shown):
    total, brier, constant = brier_scores(run)
    [row] = page_table(shown, "forecasts")
    assert (row["groups"], float(row["Brier score"])) == (str(total), pytest.approx(brier, abs=5.1e-5))
    assert float(row["if one share is predicted for all"]) == pytest.approx(constant, abs=5.1e-5)


def lead_of(trial: dict) -> float:
    """P(the second design gives more signal than the first), with nothing known before."""
    one, other = (shares_of(tried["design"]) for tried in trial["candidates"])
    values, spread, pooled = {}, {}, []
    for cell in trial["cells"]:
        known = values[json.dumps(cell["cell"])] = [score_of(valid, cell["answers"]) for valid in cell["valid"]]
        pooled += [*known, 1 / cell["answers"]]
    for name, known in values.items():
        more = [*known, 0.25]
        spread[name] = (len(more) * pvariance(more) + 4 * pvariance(pooled)) / (len(known) + 4)
    away = {name: other.get(name, 0) - one.get(name, 0) for name in values}
    mean = sum(part * fmean(values[name]) for name, part in away.items())
    error = math.sqrt(sum(part**2 * spread[name] / len(values[name]) for name, part in away.items()))
    return NormalDist().cdf(mean / error)


def test_a_trial_shows_the_signal_of_the_answers_that_were_sampled(run, stage):
    trial = record(run, "stage_00", "trial")
    cells = {json.dumps(cell["cell"]): cell for cell in trial["cells"]}
    about = find_space(run, run.settings())
    terminal = stage_text(read_shown_stage(run, 0), about).partition("## trial\n")[2]
    in_terminal = text_table("name" + terminal[4:])
    for row, other, tried in zip(page_table(stage, "trial"), in_terminal, trial["candidates"], strict=True):
        shares = {name: share for name, share in shares_of(tried["design"]).items() if share}

        def mean(value, shares=shares) -> float:
            return sum(
                share * fmean(value(valid, cells[name]["answers"]) for valid in cells[name]["valid"])
                for name, share in shares.items()
            )

        variance, informative = mean(score_of), mean(lambda valid, of: float(0 < valid < of))
        assert float(row["p (1 - p)"]) == pytest.approx(variance, abs=5.1e-4)
        assert float(row["informative groups %"]) == pytest.approx(100 * informative, abs=0.051)
        assert float(row["valid answers %"]) == pytest.approx(100 * mean(lambda valid, of: valid / of), abs=0.051)
        assert float(other["score"]) == pytest.approx(variance, abs=5.1e-5)
        assert float(other["informative"]) == pytest.approx(informative, abs=5.1e-4)
    assert float(in_terminal[1]["P(better)"]) == pytest.approx(lead_of(trial), abs=0.0051)
    sampled = sum(cell["answers"] * len(cell["valid"]) for cell in trial["cells"])
    assert f"{3 * sampled} tokens" in stage, "three tokens an answer"


def test_the_change_of_a_stage_is_that_of_its_answers(run, stage):
    before, after = answers(run, "warmup"), answers(run, "stage_00")
    for row in page_table(stage, "change in this stage"):
        where = {} if row["stratum"] == "all" else {"stratum": int(row["stratum"])}
        one, other = rate(before, **where), rate(after, **where)
        assert (row["valid % before"], row["valid % after"], row["problems"]) == (
            percent(one),
            percent(other),
            str(other[1]),
        )
        assert float(row["change"]) == pytest.approx(100 * (other[0] / other[1] - one[0] / one[1]), abs=0.051)


def test_what_was_drawn_are_the_means_of_the_problems(run, stage):
    problems = lines(run.folder / "stage_01" / "problems.jsonl")
    for row in page_table(stage, "problems drawn"):
        mine = [one["cell"][1] for one in problems if str(one["cell"][0]) == row["stratum"]]
        assert int(row["problems"]) == len(mine)
        assert float(row["terms"]) == pytest.approx(fmean(terms for terms, _ in mine), abs=0.0051)
        assert float(row["carry"]) == pytest.approx(fmean(carry for _, carry in mine), abs=0.0051)


def test_the_story_of_a_stage_has_its_rates_and_its_lead(run):
    story = describe_stage(run, 0, find_space(run, run.settings()).space)
    before, after = rate(answers(run, "warmup")), rate(answers(run, "stage_00"))
    valid, change, *by_stratum = numbers(story[0].replace(": 2 ", ": ").replace(", 3 ", ", "))
    assert (valid, change) == pytest.approx(
        (100 * after[0] / after[1], 100 * (after[0] - before[0]) / after[1]), abs=0.051
    )
    pairs = [rate(answers(run, "stage_00"), stratum=stratum) for stratum in (2, 3)]
    assert by_stratum == pytest.approx([100 * count / of for count, of in pairs], abs=0.51)
    [line] = [line for line in story if line.startswith("trial")]
    assert numbers(line.partition("probability")[2])[0] == pytest.approx(
        lead_of(record(run, "stage_00", "trial")), abs=0.0051
    )


def test_the_ends_of_compared_runs_are_those_of_their_last_answers(run):
    found = page(client(run.folder), "/compare?run=run")
    [row] = page_table(found, "ends")
    assert (row["run"], row["after"], int(row["tokens"].replace(" ", ""))) == (
        "run",
        NAMES[-1],
        tokens_until(run, PARTS[-1]),
    )
    assert row["valid %"] == percent(rate(answers(run, PARTS[-1])))


def test_the_curves_are_drawn_where_their_figures_are(run, shown):
    """Across by the tokens until a stage was validated, up by the rate from 0 to 100 %."""
    pattern = r'<g transform="translate\((\S+) (\S+)\)"><circle[^>]*><title>valid[^:<]*: after ([^:]+): (\d+) of (\d+)'
    places = [
        (float(x), float(y), PARTS[NAMES.index(name)], 100 * int(count) / int(of))
        for x, y, name, count, of in re.findall(pattern, html.unescape(shown))
    ]
    assert [part for *_, part, _ in places] == list(PARTS)
    (left, *_), (right, *_) = places[0], places[-1]
    for x, _, part, _ in places:
        tokens = tokens_before_validation(run, part) / tokens_before_validation(run, PARTS[-1])
        assert (x - left) / (right - left) == pytest.approx(tokens, abs=0.005)
    (_, low, _, least), *_ = sorted(places, key=lambda place: place[3])
    *_, (_, high, _, most) = sorted(places, key=lambda place: place[3])
    for _, y, _, valid in places:
        assert (low - y) / (low - high) == pytest.approx((valid - least) / (most - least), abs=0.005)
