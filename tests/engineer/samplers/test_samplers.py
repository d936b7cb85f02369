"""Samplers choose problems as their formulas say, and carry what they learned."""

import jax
import msgspec
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.results import RolloutGroup, statistics_of
from lakewright.engineer.design import Design
from lakewright.engineer.problems import Problem
from lakewright.engineer.samplers import SAMPLERS, Rollout, Sampler, SamplerSettings, make_sampler
from lakewright.engineer.samplers.pcl import PclSampler
from lakewright.engineer.samplers.replaying import PlrSampler, VcrlSampler, spread_of
from lakewright.experiments.environments.lake import design_of, problem_of, row_of
from tests.support.boards.generated_rows import small_rows
from tests.support.refusals import refused
from tests.support.samples.evidence import LAKE

BOARDS = [problem_of(row) for row in small_rows()]


class Supply:
    """Fresh boards one after the other; the success rate of each is its place in tenths, modulo eleven."""

    design = design_of(EnvConfig.single(3, 2, 0.2, 0.5))
    environment = LAKE
    forecast = None

    def __init__(self, scored: int = 10**6) -> None:
        self.given = 0
        self.scored = scored
        self.designs: list[Design | None] = []

    def __call__(self, count: int, design: Design | None = None) -> list[Problem]:
        self.given += count
        self.designs.append(design)
        return BOARDS[self.given - count : self.given]

    def draw_again(self, index: int, turn: int) -> Problem:
        return self(1)[0]

    def score(self, boards: list[Problem]) -> list[Rollout]:
        boards, self.scored = boards[: self.scored], self.scored - min(self.scored, len(boards))
        return rollouts(boards, *(BOARDS.index(board) % 11 for board in boards))


def group(valid: int, board: str = "") -> RolloutGroup:
    return RolloutGroup.of(board, [i < valid for i in range(10)], [float(i < valid) for i in range(10)])


def rollouts(boards: list[Problem], *valid: int) -> list[Rollout]:
    """The boards with groups of ten plans each, of which so many are valid."""
    return [(board, group(count, board.key)) for board, count in zip(boards, valid, strict=True)]


def draw(name: str, count: int, seed: int = 0, scored: int = 10**6, **options):
    supply = Supply(scored)
    return make_sampler(name, options).draw(count, supply, supply.score, jax.random.key(seed)), supply


def places(boards: list[Problem]) -> list[int]:
    return [BOARDS.index(board) for board in boards]


def test_groups_are_counted_as_training_counts_them():
    some = RolloutGroup.of("some", [True, False, True, False], [1.0, 0.2, 0.9, 0.3])
    assert (some.key, some.completions, some.valid, some.mixed, some.informative) == ("some", 4, 2, True, True)
    assert some.learnability == 0.25
    assert some.deviation == pytest.approx(0.35)
    assert some.advantage == pytest.approx(0.35 / (np.std([1.0, 0.2, 0.9, 0.3], ddof=1) + 1e-4))
    same = RolloutGroup.of("same", [False] * 4, [0.1] * 4)
    assert (same.mixed, same.informative, same.learnability, same.advantage) == (False, False, 0.0, 0.0)
    pooled = statistics_of([some, same])
    assert (pooled.groups, pooled.informative, pooled.mixed, pooled.valid) == (2, 1, 1, 2)
    assert pooled.learnability == 0.125
    assert statistics_of([]).informative_share == 0


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_gives_as_many_boards_as_asked_and_depends_on_its_key_alone(name):
    once, supply = draw(name, 12, seed=3)
    again, _ = draw(name, 12, seed=3)
    assert len(once.problems) == 12
    assert once == again
    assert supply.given == once.fresh


def test_fresh_boards_are_the_next_ones_and_cost_no_rollout():
    drawn, _ = draw("fresh", 5)
    assert places(drawn.problems) == [0, 1, 2, 3, 4]
    assert drawn.scored == 0


def test_sfl_takes_the_most_learnable_of_its_pool_and_mixes_fresh_boards_in():
    drawn, _ = draw("sfl", 8, pool=2.0, mix=0.5)
    assert sorted(places(drawn.problems)) == [4, 5, 6, 15, 16, 17, 18, 19]  # p = .4, .5, .6 and, of the next eleven, .4
    assert (drawn.fresh, drawn.scored) == (20, 16)
    assert places(drawn.problems) != sorted(places(drawn.problems))


def test_the_filter_keeps_boards_on_which_some_plans_are_valid_and_some_are_not():
    drawn, _ = draw("dapo", 11)
    assert sorted(places(drawn.problems)) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13]
    assert (drawn.fresh, drawn.scored) == (22, 22)


def test_the_filter_stops_looking_and_fills_up_with_what_it_passed_over():
    drawn, _ = draw("dapo", 11, rounds=1)
    assert places(drawn.problems) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 10]
    assert drawn.scored == 11


@pytest.mark.parametrize("scored", [0, 5, 12, 13, 20])
@pytest.mark.parametrize("name", ["sfl", "dapo"])
def test_where_the_budget_ends_the_scoring_unscored_boards_fill_up(name, scored):
    drawn, supply = draw(name, 12, scored=scored)
    chosen = places(drawn.problems)
    assert len(set(chosen)) == 12
    assert (drawn.fresh, drawn.scored) == (supply.given, scored)
    mixed = {place for place in range(scored) if 0 < place % 11 < 10}
    if name == "dapo":
        assert set(chosen) >= set(sorted(mixed)[:12])
    else:
        assert len(set(chosen) & set(range(scored))) == min(scored, 6)


def test_domain_randomisation_draws_few_boards_alike():
    drawn, supply = draw("domain_randomisation", 20, alike=3)
    assert [len(supply.designs), drawn.fresh] == [7, 20]
    asked = [design.strata[3] for design in supply.designs if design]
    assert len({row["hole_ratio"] for row in asked}) == 7
    assert {row["wait_ratio"] for row in asked} == {0.0, 1.0}


def written(sampler: Sampler) -> bytes:
    """The state of a sampler as a file has it."""
    return msgspec.json.encode(sampler.state_dict())


def learned() -> PlrSampler:
    """Stage 0 trained on boards 0 and 1, stage 1 on 2 and 3."""
    sampler = PlrSampler(replay=0.5, staleness=0.4, beta=1.0)
    sampler.learn(rollouts(BOARDS[:2], 5, 1), 0, LAKE)
    sampler.learn(rollouts(BOARDS[2:4], 3, 0), 1, LAKE)
    return sampler


def test_replay_is_by_rank_and_staleness():
    sampler = learned()
    assert places([level.problem for level in sampler.levels]) == [0, 2, 1, 3]
    by_rank = np.array([1, 1 / 2, 1 / 3, 1 / 4]) / (25 / 12)
    by_age = np.array([2, 1, 2, 1]) / 6
    assert sampler.replay_probabilities() == pytest.approx(0.6 * by_rank + 0.4 * by_age)


def test_replayed_boards_are_old_ones_and_are_scored_again():
    sampler, supply = learned(), Supply()
    supply.given = 10
    drawn = sampler.draw(6, supply, supply.score, jax.random.key(0))
    assert (drawn.replayed, drawn.fresh, drawn.scored) == (3, 3, 0)
    assert {10, 11, 12} < set(places(drawn.problems))
    assert len({place for place in places(drawn.problems) if place < 4}) == 3
    sampler.learn(rollouts(BOARDS[:1], 10), 2, LAKE)
    again = next(level for level in sampler.levels if level.problem == BOARDS[0])
    assert (again.score, again.stage) == (0.0, 2)


def test_replay_keeps_the_best_levels_and_its_state_survives_json():
    sampler = learned()
    sampler.capacity = 3
    sampler.learn([], 2, LAKE)
    assert places([level.problem for level in sampler.levels]) == [0, 2, 1]
    other = PlrSampler()
    other.load_state_dict(msgspec.json.decode(msgspec.json.encode(sampler.state_dict())))
    assert written(other) == written(sampler)
    assert other.stage == 3
    for level, known in zip(other.levels, sampler.levels, strict=True):
        assert row_of(level.problem) == row_of(known.problem)
        assert (level.problem.key, level.problem.cell) == (known.problem.key, known.problem.cell)
        assert (level.score, level.stage) == (known.score, known.stage)


def test_the_variance_filter_keeps_what_is_above_its_threshold_and_fills_up_from_its_memory():
    sampler, supply = VcrlSampler(first=0.3, later=0.9), Supply()
    drawn = sampler.draw(11, supply, supply.score, jax.random.key(0))
    assert sorted(places(drawn.problems)) == list(range(11)), "the memory is empty, so all are taken"
    assert [spread_of(group(valid)) for valid in (0, 1, 5, 9)] == pytest.approx([0, 0.36, 1.0, 0.36])
    sampler.learn(rollouts(BOARDS[30:33], 5, 1, 4), 0, LAKE)
    assert places([kept.problem for kept in sampler.memory]) == [30, 32]
    drawn = sampler.draw(11, supply, supply.score, jax.random.key(0))
    assert {15, 16, 17, 30, 32} <= set(places(drawn.problems)), "p = .4, .5, .6 of the next eleven, and the memory"
    assert drawn.replayed == 2
    sampler.learn(rollouts(BOARDS[30:31], 0), 1, LAKE)
    assert places([kept.problem for kept in sampler.memory]) == [32, 30], "a board that is solved falls back"


def test_prompt_curriculum_learns_which_boards_are_of_middling_difficulty_and_rolls_out_nothing():
    sampler, supply = PclSampler(pool=4.0), Supply()
    short = np.array([row_of(board).makespan <= 2 for board in BOARDS])
    assert places(sampler.draw(4, supply, supply.score, jax.random.key(0)).problems) == [0, 1, 2, 3]
    sampler.learn(rollouts(BOARDS, *(10 if within else 0 for within in short)), 0, LAKE)
    expected = sampler.predict_success(BOARDS, LAKE)
    assert expected[short].mean() > expected[~short].mean() + 0.3
    drawn = sampler.draw(4, supply, supply.score, jax.random.key(0))
    assert (drawn.fresh, drawn.scored, len(drawn.problems)) == (16, 0, 4)
    pool = sampler.predict_success(BOARDS[4:20], LAKE)
    assert set(places(drawn.problems)) == {4 + i for i in np.argsort(abs(pool - 0.5), kind="stable")[:4]}


@pytest.mark.parametrize("sampler", [VcrlSampler, PclSampler])
def test_what_a_sampler_learned_survives_json(sampler):
    once, again = sampler(), sampler()
    once.learn(rollouts(BOARDS[:4], 5, 0, 4, 10), 0, LAKE)
    again.load_state_dict(msgspec.json.decode(msgspec.json.encode(once.state_dict())))
    assert written(again) == written(once)


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("oracle", {}, ["sampler: 'oracle'", "fresh, domain_randomisation, sfl, plr, dapo"]),
        ("plr", {"alpha": 1.0}, ["'alpha'", "replay, staleness, beta, capacity"]),
        ("sfl", {"pool": 0.1}, ["pool", "0.1"]),
    ],
)
def test_an_unknown_sampler_or_option_is_refused_and_the_choices_named(name, options, problem):
    with refused(*problem):
        SamplerSettings(name, options)
