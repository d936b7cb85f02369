"""Samplers that keep the shares: every place has a problem of the stratum of its first one, and more signal."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.support import convert
from lakewright.engineer import DesignSpace, Engineer, EngineerSettings, Environment, Knob, Problem, Verdict
from lakewright.engineer.samplers import Sampled, SamplerSettings
from lakewright.engineer.samplers.base import MemorylessSampler
from lakewright.engineer.trial import TrialSettings
from tests.support.refusals import refused


class Drills(Environment):
    """Problems of three kinds, of a length, some of them twisted."""

    space = DesignSpace(
        strata=("a", "b", "c"),
        knobs=(Knob(name="length", low=1, high=9, step=1, reach=1, whole=True), Knob(name="twist", trait=True)),
        failures=("wrong", "none"),
    )

    def make(self, cell, rng):
        return Problem(f"{cell} {rng.random()}", "1")

    def judge(self, problem, answer):
        return Verdict(True, 1.0) if answer == "1" else Verdict(False, 0.0, "wrong")


class Plain(Drills):
    """Drills of which none is twisted."""

    space = DesignSpace(
        ("a", "b"), (Knob(name="length", low=1, high=9, step=1, reach=1, whole=True),), failures=("no",)
    )


DRILLS = Drills()
shares = st.lists(st.integers(1, 20), min_size=3, max_size=3)
twists = st.lists(st.floats(0, 1), min_size=3, max_size=3)


def design_of(weights, twisted):
    rows = zip("abc", weights, twisted, strict=True)
    return DRILLS.space.design(
        {name: {"share": part / sum(weights), "length": 4, "twist": twist} for name, part, twist in rows}
    )


def answer(problem, copy):
    """Twisted problems are answered right at times, others always."""
    right = not problem.cell["twist"] or random.Random(f"{problem.key} {copy}").random() < 0.5
    return "1" if right else "0"


def roll_out(problems, samples, turn):
    texts = [[answer(problem, copy) for copy in range(samples)] for problem in problems]
    return DRILLS.groups(problems, texts), 3 * samples * len(problems)


def begin(sampler, design, seed=0, **options):
    chosen = SamplerSettings(sampler, options)
    how = EngineerSettings(trial=TrialSettings(enabled=False), sampler=chosen)
    return Engineer(DRILLS, "fixed", design, settings=how, roll_out=roll_out, seed=seed)


def learn(engineer, count=48):
    """Has an engineer see answers, so that its model knows which problems have signal."""
    problems = engineer.draw(count)
    engineer.observe(roll_out(problems, 8, 0)[0])
    engineer.redesign()
    return engineer


def strata(problems):
    return [problem.cell.stratum for problem in problems]


@settings(max_examples=25, deadline=None)
@given(shares, twists, st.integers(0, 40), st.integers(0, 5), st.sampled_from(["signal", "redraw"]))
def test_every_place_has_the_stratum_that_the_design_gives_it(weights, twisted, count, seed, sampler):
    design = design_of(weights, twisted)
    engineer = begin(sampler, design, seed)
    if sampler == "signal":
        learn(engineer, 16)
    first = engineer.state_dict()["drawn"]
    plain = DRILLS.draw(engineer.design, count, seed, first=first)
    drawn = engineer.draw(count)
    assert strata(drawn) == strata(plain)
    assert len({problem.key for problem in drawn}) == count, "no problem is drawn twice"
    assert all(problem.cell.values[0] == 4 for problem in drawn), "levels are the design's"


@settings(max_examples=15, deadline=None)
@given(shares, twists, st.integers(1, 40), st.integers(0, 5), st.integers(1, 3))
def test_problems_that_are_drawn_again_have_the_traits_that_the_design_gives_their_places(
    weights, twisted, count, seed, turns
):
    design = design_of(weights, twisted)
    plain, engineer = DRILLS.draw(design, count, seed), begin("redraw", design, seed, turns=turns)
    drawn = engineer.draw(count)
    assert [problem.cell for problem in drawn] == [problem.cell for problem in plain]
    assert engineer.sampling.again == sum(mine != other for mine, other in zip(drawn, plain, strict=True))


def test_if_only_strata_keep_their_shares_problems_with_signal_take_the_places_of_others():
    design = design_of([1, 1, 1], [0.5, 0.5, 0.5])
    counts = {}
    for keep in ("traits", "strata"):
        drawn = begin("redraw", design, turns=4, keep=keep).draw(120)
        counts[keep] = sum(problem.cell["twist"] for problem in drawn)
    assert counts["traits"] == 60
    assert counts["strata"] > 90, "problems without a twist have no signal"


def test_problems_of_most_expected_signal_are_chosen_and_nothing_is_rolled_out():
    design = design_of([2, 1, 1], [0.3, 0.3, 0.0])
    engineer = learn(begin("signal", design))
    plain, drawn = DRILLS.draw(design, 400, 0, first=48), engineer.draw(400)
    model, space = engineer.forecast.model, DRILLS.space

    def expect(problems):
        cells = [problem.cell for problem in problems]
        shape = model.list_evenness(cells, space), model.list_graded(cells, space)
        return model.expect_signal(model.predict(cells, space).mean, *shape)

    assert (expect(drawn) >= expect(plain) - 1e-6).all()
    assert expect(drawn).mean() > 1.5 * expect(plain).mean()
    twisted = Counter(problem.cell.stratum for problem in drawn if problem.cell["twist"])
    assert 0.7 < twisted["a"] / 200 < 0.82, "1 - (1 - 0.3)^4 = 0.76"
    assert twisted["c"] == 0, "a kind that the design does not have is not drawn"
    assert (engineer.sampling.scored, engineer.sampling.tokens) == (0, 0)
    assert engineer.sampling.again == sum(mine != other for mine, other in zip(drawn, plain, strict=True))


def test_before_the_model_knows_anything_problems_are_the_first_ones():
    design = design_of([1, 1, 1], [0.5, 0.5, 0.5])
    assert begin("signal", design).draw(30) == begin("fresh", design).draw(30)


def test_groups_without_signal_are_drawn_again_a_few_times_and_counted():
    design = design_of([1, 1, 1], [0.5, 0.5, 0.0])
    engineer = begin("redraw", design)
    drawn, done = engineer.draw(120), engineer.sampling
    assert sum(group.informative for group in roll_out(drawn, 4, 0)[0]) == 120 - done.barren
    assert done.barren >= 40, "no problem of c has any"
    assert {problem.cell["twist"] for problem in drawn if problem.cell.stratum == "c"} == {False}
    assert 120 < done.scored <= 3 * 120
    assert done.tokens == 12 * done.scored
    assert drawn != begin("fresh", design).draw(120)


def test_where_nothing_has_signal_the_search_ends_with_the_first_problems():
    design = design_of([1, 1, 1], [0.0, 0.0, 0.0])
    engineer = begin("redraw", design, turns=5)
    assert engineer.draw(6) == begin("fresh", design).draw(6)
    assert (engineer.sampling.barren, engineer.sampling.scored, engineer.sampling.again) == (6, 36, 0)


@pytest.mark.parametrize("sampler", ["signal", "redraw"])
def test_a_restored_engineer_draws_the_same_problems_again(sampler):
    engineer = learn(begin(sampler, design_of([1, 2, 3], [0.5, 0.2, 0.5])))
    state = engineer.state_dict()
    again = begin(sampler, design_of([1, 1, 1], [0.5, 0.5, 0.5]))
    again.load_state_dict(state)
    assert again.draw(20) == engineer.draw(20)
    assert again.sampling == engineer.sampling
    assert again.draw(3) == engineer.draw(3)


class Moving(MemorylessSampler):
    """Gives all places the problem of the first."""

    keeps_shares = True

    def draw(self, count, fresh, score, key):
        return Sampled(fresh(count)[:1] * count, count, turns=[0] * count)


class Asking(MemorylessSampler):
    """Has problems answered, and does not say so."""

    keeps_shares = True

    def draw(self, count, fresh, score, key):
        score(problems := fresh(count))
        return Sampled(problems, count, turns=[0] * count)


HERE = "tests.engineer.samplers.test_keeping_shares"


@pytest.mark.parametrize(
    ("sampler", "further", "line"),
    [
        ("dapo", {}, ["sampler dapo", "fresh, signal, redraw"]),
        ("none", {}, ["sampler: 'none'", "fresh"]),
        ("signal", {"plans": 8}, ["sampler.plans", "8"]),
        ("redraw", {"plans": 1}, ["sampler.plans", "1", "2"]),
        ("redraw", {"options": {"turns": 0}}, ["turns"]),
        ("signal", {"options": {"pool": 1}}, ["pool"]),
        (f"{HERE}:Moving", {}, ["turn 0", "place 1"]),
        (f"{HERE}:Asking", {}, ["policy's answers", "roll_out"]),
    ],
)
def test_a_sampler_that_cannot_choose_is_refused_in_a_line(sampler, further, line):
    def draw():
        chosen = convert({"name": sampler, **further}, SamplerSettings, "sampler")
        return Engineer(DRILLS, "fixed", settings=EngineerSettings(sampler=chosen)).draw(9)

    with refused(*line):
        draw()


def test_a_sampler_by_the_model_needs_problems_that_the_model_tells_apart():
    with refused("sampler signal:", "space"):
        Engineer(Plain(), sampler="signal")
    with refused("draw: count", -1):
        begin("fresh", None).draw(-1)
    with refused("sampler redraw", "roll_out"):
        Engineer(DRILLS, sampler="redraw")
