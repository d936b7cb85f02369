"""Each figure of a study's table, in the terminal and in the viewer, worked out again from the records of its runs.

Where figures of a study are shown: `results_table.tabulate_results` (the table of arms, the tested pairs, the tables by
stratum, the rank correlations of configs), and the viewer's page of a study (the same arms and pairs). Raw here are the
runs of the published results: the curve of each, its tokens, its last valid rate. What is worked out from the answers
to each problem, which results do not keep, is worked out again from those of a study on sums.
"""

import html
import json
import math
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median, stdev
from types import SimpleNamespace

import pytest

from lakewright.core_jax.support import read_config
from lakewright.experiments.studies.learning_curves import sum_up_reached
from lakewright.experiments.studies.plot import curves_svg
from lakewright.experiments.studies.results import Results, results_of
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.study import StudyFolder, plan_study
from lakewright.experiments.viewer.pages.compare_page import arms_chart
from tests.support.samples.finished_text_run import ADDITION
from tests.support.samples.recorded_run import HELD_OUT, record_run
from tests.support.servers.viewer_client import client, page
from tests.support.tools.plain_figures import (
    area_along,
    first_reached,
    height_at,
    holm,
    middle_mean,
    numbers,
    page_table,
    paired_p,
    resampled,
    text_table,
)

STUDIES = Path(__file__).parents[4] / "docs" / "data" / "studies"
SHOWN = ["arena-moments", "frontier-early", "arena-endpoint"]
CHANCE = 0.25  # points by which ends of two bootstraps may differ, each of some thousand resamples


def raw(study: str) -> dict:
    return json.loads((STUDIES / study / "results.json").read_text())


def runs_by_arm(found: dict) -> dict[str, dict[int, dict]]:
    arms: dict[str, dict[int, dict]] = defaultdict(dict)
    for run in found["runs"]:
        arms[run["arm"]][run["seed"]] = run
    return arms


def curve_of(run: dict) -> list[tuple[float, float]]:
    return [(point["tokens"], point["valid"]) for point in run["curve"]]


def one_digit(value: float) -> object:
    return pytest.approx(value, abs=0.0501)


@pytest.mark.parametrize("study", SHOWN)
def test_the_table_of_arms_is_what_the_runs_say(study):
    found, table = raw(study), text_table(tabulate_results(read_config(STUDIES / study / "results.json", Results)))
    arms = runs_by_arm(found)
    assert [row["arm"] for row in table] == sorted(arms, key=lambda arm: -fmean(r["valid"] for r in arms[arm].values()))
    for row in table:
        runs = list(arms[row["arm"]].values())
        valid = [run["valid"] for run in runs]
        spent = [run["tokens"] for run in runs]
        assert int(row["seeds"]) == len(runs)
        assert float(row["valid %"]) == one_digit(fmean(valid))
        assert float(row["s.d."]) == one_digit(stdev(valid))
        middle, low, high = numbers(row["IQM % (95 %)"].replace("-", " "))
        assert middle == one_digit(middle_mean(valid))
        assert (low, high) == pytest.approx(resampled(valid, middle_mean), abs=CHANCE)
        assert float(row["along %"]) == one_digit(fmean(area_along(curve_of(run), found["budget"]) for run in runs))
        assert float(row["k tokens"]) == one_digit(fmean(sum(one.values()) for one in spent) / 1000)
        assert float(row["k trials"]) == one_digit(fmean(one["trials"] + one["sampling"] for one in spent) / 1000)
        assert float(row["k engineer"]) == one_digit(fmean(one["engineer"] for one in spent) / 1000)
        assert float(row["stages"]) == one_digit(fmean(run["stages"] for run in runs))
        assert row["kept"] == f"{sum(run['kept'] for run in runs)}/{sum(run['tried'] for run in runs)}"
        assert (row["back"], row["refused"]) == tuple(
            str(sum(run[name] for run in runs)) for name in ("taken_back", "refused")
        )
        assert float(row["minutes"]) == one_digit(fmean(run["seconds"] for run in runs) / 60)
        for name in ("forced", "optimal"):
            assert float(row[f"{name} %"]) == one_digit(fmean(run[name] for run in runs))


@pytest.mark.parametrize("study", SHOWN)
def test_the_tested_pairs_are_what_the_runs_say(study):
    found, arms = raw(study), runs_by_arm(raw(study))
    text = tabulate_results(read_config(STUDIES / study / "results.json", Results))
    line = r"^{}(\S+) - (\S+): (\S+) \(95 % (\S+) to (\S+)\), p (\S+) by Holm, (\d+) seeds$"
    for kind, outcome in (
        ("", lambda run: run["valid"]),
        ("along: ", lambda run: area_along(curve_of(run), found["budget"])),
    ):
        shown = re.findall(line.format(kind), text, re.MULTILINE)
        assert shown
        every = []
        for arm, other, *_ in shown:
            seeds = sorted(arms[arm].keys() & arms[other].keys())
            every.append([outcome(arms[arm][seed]) - outcome(arms[other][seed]) for seed in seeds])
        corrected = holm(list(map(paired_p, every)))
        for (_, _, mean, low, high, p_value, seeds), pairs, p in zip(shown, every, corrected, strict=True):
            assert float(mean) == one_digit(fmean(pairs))
            assert (float(low), float(high)) == pytest.approx(resampled(pairs, fmean), abs=CHANCE)
            assert float(p_value) == pytest.approx(p, rel=0.051)
            assert int(seeds) == len(pairs)


@pytest.mark.parametrize("study", SHOWN)
def test_how_soon_an_arm_is_as_good_as_the_baseline_is_what_the_curves_say(study):
    results = read_config(STUDIES / study / "results.json", Results)
    arms = runs_by_arm(raw(study))
    curves = {arm: {run.seed: run.curve for run in results.runs if run.arm == arm} for arm in arms}
    for arm, runs in arms.items():
        own, its = [], []
        for seed, baseline in arms[results.baseline].items():
            best = max(valid for _, valid in curve_of(baseline))
            if seed in runs and first_reached(curve_of(baseline), best):
                own.append(first_reached(curve_of(baseline), best))
                its.append(first_reached(curve_of(runs[seed]), best))
        found = sum_up_reached(curves[arm], curves[results.baseline])
        assert found is not None
        assert (found.reached, found.seeds) == (sum(map(math.isfinite, its)), len(its))
        if math.isinf(median(its)):
            assert found.tokens is None
        else:
            assert found.tokens == pytest.approx(median(its))
            assert found.share == pytest.approx(median(its) / median(own))


def test_valid_rates_by_map_size_are_means_over_the_runs():
    found = raw("frontier-early")
    text = tabulate_results(read_config(STUDIES / "frontier-early" / "results.json", Results))
    for title, name in (("valid % by size", "sizes"), ("wait forced", "forced_sizes")):
        [table] = [part for part in text.split("\n\n") if part.startswith(title)]
        for row in text_table(table):
            runs = [run[name] for run in found["runs"] if run["arm"] == row[title]] or [found[name]]
            for size in found[name]:
                assert float(row[f"{size}x{size}"]) == one_digit(fmean(run[size] for run in runs))


def test_the_viewer_shows_the_same_arms_and_pairs(tmp_path):
    (tmp_path / "study" / "runs").mkdir(parents=True)
    found, arms = raw("frontier-early"), runs_by_arm(raw("frontier-early"))
    (tmp_path / "study" / "results.json").write_text(json.dumps(found))
    (tmp_path / "study" / "study.json").write_text(json.dumps({"runs": []}))
    shown = page(client(tmp_path / "study"), "/study/study")
    for row in page_table(shown, "results of arms"):
        runs = list(arms[row[""]].values())
        assert float(row["valid %"]) == one_digit(fmean(run["valid"] for run in runs))
        assert float(row["gain"]) == one_digit(fmean(run["valid"] for run in runs) - found["valid"])
        assert float(row["s.d."]) == one_digit(stdev(run["valid"] for run in runs))
        assert float(row["along %"]) == one_digit(fmean(area_along(curve_of(run), found["budget"]) for run in runs))
        assert int(row["trials"]) == sum(run["tried"] for run in runs)
    pairs = page_table(shown, "differences")
    assert len(pairs) == len(found["tests"])
    every = []
    for row in pairs:
        one, other = arms[row["arm"]], arms[row["against"]]
        every.append([one[seed]["valid"] - other[seed]["valid"] for seed in sorted(one.keys() & other.keys())])
        assert float(row["points"]) == one_digit(fmean(every[-1]))
        assert numbers(row["95 %"]) == pytest.approx(resampled(every[-1], fmean), abs=CHANCE)
    for row, p in zip(pairs, holm(list(map(paired_p, every))), strict=True):
        assert float(row["p (Holm)"]) == pytest.approx(p, rel=0.051)


SPEC = """
preset = "text"
budget = 100000
baseline = "fixed"
seeds = [0, 1, 2]

[settings]
environment = "{environment}"
stages = 2

[arms]
fixed = {{ teacher = "fixed" }}
rules = {{ teacher = "rules" }}
"""


def test_differences_by_problem_are_those_of_the_answers(tmp_path):
    """`vs`: the mean difference on equal seeds, and 1.96 standard errors of the problems' means over the seeds."""
    (tmp_path / "spec.toml").write_text(SPEC.format(environment=f"{ADDITION}:Addition"))
    plan, folder = plan_study(tmp_path / "spec.toml"), StudyFolder(tmp_path / "study")
    record_run(folder.start, plan.start, (12,))
    ends = {("fixed", 0): 30, ("fixed", 1): 27, ("fixed", 2): 33, ("rules", 0): 41, ("rules", 1): 26, ("rules", 2): 45}
    for planned in plan.runs:
        record_run(folder.run(planned), planned.settings, (12, 20, ends[planned.arm, planned.seed]), planned.seed)
    results = results_of(plan, folder)
    better, base = text_table(tabulate_results(results))
    solved = {key: read_valid(folder.folder / "runs" / "{}-s{}".format(*key)) for key in ends}
    points = [
        100 * fmean(solved["rules", seed][place] - solved["fixed", seed][place] for seed in range(3))
        for place in range(HELD_OUT)
    ]
    assert (better["arm"], base["vs fixed"], better["losses"]) == ("rules", "", "1 of 3")
    shown = [float(part) for part in better["vs fixed"].split(" ± ")]
    assert shown == pytest.approx([fmean(points), 1.96 * stdev(points) / HELD_OUT**0.5], abs=0.0501)
    for row, arm in ((better, "rules"), (base, "fixed")):
        assert float(row["valid %"]) == one_digit(fmean(100 * ends[arm, seed] / HELD_OUT for seed in range(3)))
        tokens = [sum_tokens(folder.folder / "runs" / f"{arm}-s{seed}") for seed in range(3)]
        assert float(row["k tokens"]) == one_digit(fmean(tokens) / 1000)


def read_valid(run: Path) -> list[bool]:
    """Whether each answer of the last stage is valid."""
    lines = (run / "stage_01" / "plans.jsonl").read_text().splitlines()
    return [json.loads(line)["answers"][0]["failure"] == "none" for line in lines]


def sum_tokens(run: Path) -> float:
    """Of both stages: training, sampling and trials."""
    total = 0.0
    for stage in ("stage_00", "stage_01"):
        total += sum(
            json.loads(line)["sampled/tokens"] for line in (run / stage / "train.jsonl").read_text().splitlines()
        )
        total += json.loads((run / stage / "sampled.json").read_text())["figures"]["tokens"]
        total += json.loads((run / stage / "trial.json").read_text())["tokens"]
    return total


@pytest.mark.parametrize("study", SHOWN)
def test_the_picture_of_curves_has_the_means_and_ranges_of_the_runs(study):
    """At each twentieth of the budget, of the lines between the points of each run's curve."""
    found, arms = raw(study), runs_by_arm(raw(study))
    picture = html.unescape(curves_svg(read_config(STUDIES / study / "results.json", Results)))
    drawn = defaultdict(list)
    for name, seeds, words in re.findall(r"<title>([^<]*) \((\d+)\): ([^<]*)</title>", picture):
        drawn[name, int(seeds)].append(numbers(words.replace("to", "")))
    assert drawn
    for (arm, seeds), points in drawn.items():
        runs = [curve_of(run) for run in arms[arm].values()]
        assert len(runs) == seeds
        for place, shown in enumerate(points):
            heights = [height_at(curve, found["budget"] * place / 20) for curve in runs]
            expected = [fmean(heights), min(heights), max(heights)][: len(shown)]
            assert shown == pytest.approx(expected, rel=1e-3)
        assert len(points) == 21


def test_seeds_with_different_stages_are_averaged_at_equal_tokens():
    """One seed is done after two stages of 50 tokens, the other after three of 33."""

    def history_of(*valid: int) -> list[SimpleNamespace]:
        tokens = [0, *[99 // (len(valid) - 1)] * (len(valid) - 1)]
        return [
            SimpleNamespace(
                pooled=SimpleNamespace(valid=share, problems=100),
                tokens=SimpleNamespace(total=spent, training=spent, sampling=0),
            )
            for share, spent in zip(valid, tokens, strict=True)
        ]

    shown = arms_chart({"a-s0": history_of(20, 30, 40), "a-s1": history_of(20, 40, 60, 80)}, [])
    means = [float(mean) for mean in re.findall(r"<title>a \(2\): 2 seeds: ([\d.]+)", shown)]
    assert means == [20.0, pytest.approx((26.7 + 40) / 2, abs=0.2), pytest.approx((33.5 + 60) / 2, abs=0.2), 60.0]
