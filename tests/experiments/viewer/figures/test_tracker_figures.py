"""Each figure that trackers are given of a run, worked out again from its raw records.

Where figures are shown: TensorBoard, Weights & Biases and trackio. Steps of training with the figures of their log, the
held-out rates, the design that follows, the trial, the forecast, and what the engineer's own training earned.
"""

from pathlib import Path

import pytest

from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.trackers import TrackedPoint, points_of
from tests.support.samples.recorded_run import begin
from tests.support.tools.raw_run import PARTS, answers, brier_scores, lines, mean_score, rate, record

LOGGED = {"reward": "train/reward", "valid": "train/valid", "sampled/tokens": "train/sampled/tokens"}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    return begin(tmp_path_factory.mktemp("figures") / "run")


@pytest.fixture(scope="module")
def points(run) -> list[list[TrackedPoint]]:
    """Those of the warm-up and of each stage."""
    return [list(points_of(run, chapter)) for chapter in range(len(PARTS))]


def test_each_step_of_training_has_the_figures_of_its_line(run, points):
    step = 0
    for part, found in zip(PARTS, points, strict=True):
        log: Path = run.folder / part / "train.jsonl"
        for line, point in zip(lines(log) if log.exists() else [], found[:-1], strict=True):
            step += 1
            assert point.step == step
            assert point.figures == {shown: line[name] for name, shown in LOGGED.items()}
        assert found[-1].step == step, "the figures of the stage stand at its last step"


def test_held_out_rates_are_those_of_the_answers(run, points):
    for part, found in zip(PARTS, points, strict=True):
        shown = {name: value for name, value in found[-1].figures.items() if name.startswith("eval/")}
        expected = {}
        for ending, where in (("", {}), ("/2", {"stratum": 2}), ("/3", {"stratum": 3})):
            for name, more in (("valid", {}), ("carry", {"carry": True})):
                count, of = rate(answers(run, part), **where, **more)
                expected[f"eval/{name}{ending}"] = count / of
        assert shown == pytest.approx(expected)


def test_a_stage_has_its_design_its_trial_its_forecast_and_its_time(run, points):
    for part, found in zip(PARTS[1:], points[1:], strict=True):
        figures, trial = found[-1].figures, record(run, part, "trial")
        following = record(run, part, "next")["design"]["strata"]
        for stratum, row in following.items():
            for name, value in row.items():
                assert figures[f"engineer/{name}/{stratum}"] == value
        current, tried = (mean_score(trial, one["design"]) for one in trial["candidates"])
        assert (figures["trial/current"], figures["trial/score"]) == pytest.approx((current, tried), abs=1e-9)
        assert figures["trial/accepted"] == float(trial["chosen"] == 1)
        assert figures["trial/tokens"] == 3 * sum(cell["answers"] * len(cell["valid"]) for cell in trial["cells"])
        assert figures["loop/seconds"] == record(run, part, "done")["seconds"]
        assert figures["loop/taken_back"] == 0.0
    _, brier, constant = brier_scores(run)
    last = points[-1][-1].figures
    assert (last["difficulty/brier"], last["difficulty/brier_of_constant"]) == pytest.approx((brier, constant))
    assert "difficulty/brier" not in points[1][-1].figures


def test_no_figure_of_a_stage_is_without_a_second_way(points):
    """Those that are worked out above, and those of the engineer's training (test_reward_figures.py), are all."""
    kinds = {name.split("/")[0] for found in points for point in found for name in point.figures}
    assert kinds == {"train", "eval", "engineer", "trial", "loop", "difficulty"}
