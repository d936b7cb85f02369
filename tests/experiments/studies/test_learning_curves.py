"""How soon a run is as good as the baseline at its best: by curves made by hand."""

import html
from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.support import read_config
from lakewright.experiments.studies.learning_curves import (
    CurvePoint,
    Reached,
    average_curve,
    find_crossing,
    find_equal_time,
    sum_up_reached,
    tokens_to_best,
    value_at_time,
)
from lakewright.experiments.studies.plot import study_svg
from lakewright.experiments.studies.results import Results
from lakewright.experiments.studies.results_table import tabulate_results

OLDER = Path(__file__).parents[3] / "docs" / "data" / "studies" / "arena" / "results.json"


def curve(*points: tuple[int, float]) -> list[CurvePoint]:
    return [CurvePoint(tokens, valid) for tokens, valid in points]


FIXED = curve((0, 50), (100, 60), (200, 70), (300, 65))
QUICK = curve((0, 50), (100, 80), (300, 60))
SLOW = curve((0, 50), (250, 75))
NEVER = curve((0, 50), (300, 69))
SUNK = curve((0, 50), (300, 40))  # at its best after the warm-up


def test_a_curve_is_first_at_a_height_where_its_line_crosses_it():
    assert find_crossing(FIXED, 65) == 150, "the first time, not the last"
    assert find_crossing(FIXED, 60) == 100, "a point of the curve itself"
    assert find_crossing(FIXED, 45) == 0, "where it begins above"
    assert find_crossing(curve((0, 50), (40, 50), (90, 60)), 55) == 65, "after a level part"
    assert find_crossing(FIXED, 70.1) is None


def test_curves_are_read_at_the_processor_time_that_all_have_spent():
    long = [CurvePoint(0, 50, 0.0), CurvePoint(100, 60, 10.0), CurvePoint(200, 70, 30.0)]
    short = [CurvePoint(0, 50, 0.0), CurvePoint(100, 55, 20.0)]
    assert find_equal_time([long, short]) == 20
    assert value_at_time(long, 20) == 65, "half way between its points"
    assert value_at_time(short, 20) == 55
    assert find_equal_time([long, FIXED]) is None, "an earlier version did not record the time of one"
    assert value_at_time(FIXED, 20) is find_equal_time([]) is None


def test_a_run_is_compared_with_the_best_point_of_the_baseline():
    assert tokens_to_best(QUICK, FIXED) == pytest.approx(100 * 20 / 30)
    assert tokens_to_best(SLOW, FIXED) == 200
    assert tokens_to_best(FIXED, FIXED) == 200, "the baseline itself, though it ends lower"
    assert tokens_to_best(NEVER, FIXED) is None
    assert tokens_to_best([], FIXED) is tokens_to_best(QUICK, []) is None


def test_an_arm_has_the_median_of_its_seeds_and_its_share_of_the_baselines_own():
    late = curve((0, 50), (400, 70))
    baselines = {0: FIXED, 1: FIXED, 2: late}
    found = sum_up_reached({0: QUICK, 1: SLOW, 2: QUICK}, baselines)
    assert found == Reached(pytest.approx(200 / 3), pytest.approx(200 / 3 / 200), 3, 3)
    assert sum_up_reached({0: QUICK, 2: SLOW}, baselines) == Reached(
        pytest.approx((200 / 3 + 200) / 2), pytest.approx((200 / 3 + 200) / 2 / 300), 2, 2
    ), "of an even number the middle of the two, over the seeds that both have"
    assert sum_up_reached(baselines, baselines).share == 1


def test_a_seed_that_never_is_as_good_counts_as_later_than_all():
    baselines = dict.fromkeys(range(3), FIXED)
    assert sum_up_reached({0: QUICK, 1: NEVER, 2: SLOW}, baselines) == Reached(200, 1.0, 2, 3)
    assert sum_up_reached({0: QUICK, 1: NEVER}, baselines) == Reached(None, None, 1, 2)


def test_a_seed_whose_baseline_never_rises_is_left_out():
    assert sum_up_reached({0: QUICK, 1: SLOW}, {0: SUNK, 1: FIXED}) == Reached(200, 1.0, 1, 1)
    assert sum_up_reached({0: QUICK}, {0: SUNK}) is None
    assert sum_up_reached({0: QUICK}, {}) is None


def test_the_mean_along_the_way_is_the_area_under_the_curve():
    assert average_curve(FIXED, 300) == pytest.approx((55 * 100 + 65 * 100 + 67.5 * 100) / 300)


def test_the_arena_has_the_figures_that_were_worked_out_from_its_curves():
    older = read_config(OLDER, Results)
    by_arm = {name: {run.seed: run.curve for run in older.runs if run.arm == name} for name in ("fixed", "difficulty")}
    assert round(sum_up_reached(by_arm["fixed"], by_arm["fixed"]).tokens, -2) == 75_600
    found = sum_up_reached(by_arm["difficulty"], by_arm["fixed"])
    assert (round(found.tokens, -2), round(found.share, 2)) == (31_300, 0.41)


def test_the_table_and_the_picture_show_it_where_results_have_it():
    older = read_config(OLDER, Results)
    assert "k to best" not in tabulate_results(older), "results of earlier versions are shown as they were"
    assert "best" not in study_svg(older).replace("best-static", "")
    reached = {"fixed": Reached(75_600.0, 1.0, 9, 9), "difficulty": Reached(31_300.0, 0.414, 8, 9)}
    reached["dapo"] = Reached(None, None, 3, 9)
    arms = [msgspec.structs.replace(arm, to_best=reached.get(arm.arm)) for arm in older.arms]
    runs = [msgspec.structs.replace(run, along=70.0, to_best=30_000.0) for run in older.runs]
    newer = msgspec.structs.replace(older, arms=arms, runs=runs)
    lines = {line.split()[0]: line for line in tabulate_results(newer).splitlines()[: len(arms) + 1]}
    assert "along % k to best forced %" in " ".join(lines["arm"].split())
    assert "75.6 x1.00  " in lines["fixed"]
    assert "31.3 x0.41 (8 of 9)" in lines["difficulty"]
    assert "never (3 of 9)" in lines["dapo"]
    picture = html.unescape(study_svg(newer))
    assert "Until fixed's best" in picture
    assert "Along the way" in picture
