"""Simulated worlds: the oracle's gains are the true ones, and the default teacher reads them well."""

import json
import random

import numpy as np
import pytest

from lakewright.experiments.bench import world_scores
from lakewright.experiments.bench.world_scores import format_scores, run_world, score_teachers
from lakewright.experiments.bench.worlds import KINDS, World
from lakewright.experiments.cli import main
from tests.support.refusals import refused


@pytest.mark.parametrize("kind", KINDS)
def test_the_gain_of_a_group_is_the_change_of_what_is_valid(kind):
    world = World(kind, 1)
    world.truth = world.truth._replace(fade=np.zeros(world.strata))
    gains, chances = world.measure_gains(), world.predict()
    best = int(np.argmax(gains))
    before, rng, found = world.measure_valid(), np.random.default_rng(0), []
    for chance in rng.choice(chances[best], 400):
        other = World(kind, 1)
        other.truth = world.truth
        other.train([(world.cells_of_truth[best], rng.binomial(8, chance) / 8)])
        found.append(other.measure_valid() - before)
    assert np.mean(found) == pytest.approx(gains[best], rel=0.15, abs=1e-6)


def test_answers_are_right_as_often_as_the_truth_says():
    world = World("twists", 0)
    problems = world.draw_held_out()
    right = [
        world.answer(problem, random.Random(number), 50).count("right") / 50 for number, problem in enumerate(problems)
    ]
    assert np.mean(right) == pytest.approx(world.measure_valid(), abs=0.03)


def test_a_run_is_the_same_when_it_is_run_again(monkeypatch):
    monkeypatch.setattr(world_scores, "ROUNDS", 4)
    assert run_world(World("even", 3), "gain") == run_world(World("even", 3), "gain")


def test_the_default_teacher_earns_most_of_what_an_oracle_would():
    """The short part of the bench, which every change of the engineer runs: a kind of each sort of difficulty."""
    scores = score_teachers(["gaps", "lake"], ["gain", "proportional"], 1)
    found = {(score.kind, score.teacher): score.end for score in scores}
    assert np.mean([found[kind, "gain"] for kind in ("gaps", "lake")]) > 0.65
    for kind in ("gaps", "lake"):
        assert found[kind, "gain"] > max(0.45, found[kind, "proportional"])
    assert "mean at the end" in format_scores(scores)


@pytest.mark.deep
def test_the_default_teacher_is_good_in_every_kind_of_world():
    scores = score_teachers(list(KINDS), ["gain"], 5)
    assert np.mean([score.end for score in scores]) >= 0.78
    assert np.mean([score.along for score in scores]) >= 0.68
    assert min(score.end for score in scores) >= 0.5


def test_the_command_prints_a_score_for_each_kind_and_teacher(capsys):
    assert main(["bench", "worlds", "--kinds", "even", "--teachers", "fixed", "--seeds", "1", "--json"]) == 0
    (score,) = json.loads(capsys.readouterr().out)
    assert (score["kind"], score["teacher"], score["end"]) == ("even", "fixed", 0.0)


def test_unknown_names_and_no_seeds_are_refused(capsys):
    with refused("--kinds: 'odd'"):
        score_teachers(["odd"], ["gain"], 1)
    with refused("--teachers: 'nobody'"):
        score_teachers(["even"], ["nobody"], 1)
    assert main(["bench", "worlds", "--seeds", "0"]) == 2
    assert "--seeds is 0" in capsys.readouterr().err
