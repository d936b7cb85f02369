"""Samplers choose boards as their formulas say, and carry what they learned."""

import jax
import msgspec
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Group, statistics_of
from lakewright.core_jax.rows import Row, board_key
from lakewright.engineer.samplers import Rollout, SamplerSettings, make_sampler
from lakewright.engineer.samplers.pcl import PclSampler
from lakewright.engineer.samplers.plr import PlrSampler
from lakewright.engineer.samplers.registry import SAMPLERS
from lakewright.engineer.samplers.vcrl import VcrlSampler, spread_of
from tests.support.boards.generated_rows import small_rows

ROWS = small_rows()


class Lake:
    """Fresh boards one after the other; the success rate of each is its place in tenths, modulo eleven."""

    config = EnvConfig.single(3, 2, 0.2, 0.5)

    def __init__(self, scored: int = 10**6) -> None:
        self.given = 0
        self.scored = scored
        self.configs: list[EnvConfig | None] = []

    def __call__(self, count: int, config: EnvConfig | None = None) -> list[Row]:
        self.given += count
        self.configs.append(config)
        return ROWS[self.given - count : self.given]

    def score(self, rows: list[Row]) -> list[Rollout]:
        rows, self.scored = rows[: self.scored], self.scored - min(self.scored, len(rows))
        return rollouts(rows, *(ROWS.index(row) % 11 for row in rows))


def group(valid: int, board: str = "") -> Group:
    return Group.of(board, [i < valid for i in range(10)], [float(i < valid) for i in range(10)])


def rollouts(rows: list[Row], *valid: int) -> list[Rollout]:
    """The boards with groups of ten plans each, of which so many are valid."""
    return [(row, group(count, board_key(row))) for row, count in zip(rows, valid, strict=True)]


def draw(name: str, count: int, seed: int = 0, scored: int = 10**6, **options):
    lake = Lake(scored)
    return make_sampler(name, options).draw(count, lake, lake.score, jax.random.key(seed)), lake


def places(rows: list[Row]) -> list[int]:
    return [ROWS.index(row) for row in rows]


def test_groups_are_counted_as_training_counts_them():
    some = Group.of("some", [True, False, True, False], [1.0, 0.2, 0.9, 0.3])
    assert (some.board, some.completions, some.valid, some.mixed, some.informative) == ("some", 4, 2, True, True)
    assert some.learnability == 0.25
    assert some.deviation == pytest.approx(0.35)
    assert some.advantage == pytest.approx(0.35 / (np.std([1.0, 0.2, 0.9, 0.3], ddof=1) + 1e-4))
    same = Group.of("same", [False] * 4, [0.1] * 4)
    assert (same.mixed, same.informative, same.learnability, same.advantage) == (False, False, 0.0, 0.0)
    pooled = statistics_of([some, same])
    assert (pooled.groups, pooled.informative, pooled.mixed, pooled.valid) == (2, 1, 1, 2)
    assert pooled.learnability == 0.125
    assert statistics_of([]).informative_share == 0


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_gives_as_many_boards_as_asked_and_depends_on_its_key_alone(name):
    once, lake = draw(name, 12, seed=3)
    again, _ = draw(name, 12, seed=3)
    assert len(once.rows) == 12
    assert once == again
    assert lake.given == once.fresh


def test_fresh_boards_are_the_next_ones_and_cost_no_rollout():
    drawn, _ = draw("fresh", 5)
    assert places(drawn.rows) == [0, 1, 2, 3, 4]
    assert drawn.scored == 0


def test_sfl_takes_the_most_learnable_of_its_pool_and_mixes_fresh_boards_in():
    drawn, _ = draw("sfl", 8, pool=2.0, mix=0.5)
    assert sorted(places(drawn.rows)) == [4, 5, 6, 15, 16, 17, 18, 19]  # p = .4, .5, .6 and, of the next eleven, .4
    assert (drawn.fresh, drawn.scored) == (20, 16)
    assert places(drawn.rows) != sorted(places(drawn.rows))


def test_the_filter_keeps_boards_on_which_some_plans_are_valid_and_some_are_not():
    drawn, _ = draw("dapo", 11)
    assert sorted(places(drawn.rows)) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13]
    assert (drawn.fresh, drawn.scored) == (22, 22)


def test_the_filter_stops_looking_and_fills_up_with_what_it_passed_over():
    drawn, _ = draw("dapo", 11, rounds=1)
    assert places(drawn.rows) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 10]
    assert drawn.scored == 11


@pytest.mark.parametrize("scored", [0, 5, 12, 13, 20])
@pytest.mark.parametrize("name", ["sfl", "dapo"])
def test_where_the_budget_ends_the_scoring_unscored_boards_fill_up(name, scored):
    drawn, lake = draw(name, 12, scored=scored)
    chosen = places(drawn.rows)
    assert len(set(chosen)) == 12
    assert (drawn.fresh, drawn.scored) == (lake.given, scored)
    mixed = {place for place in range(scored) if 0 < place % 11 < 10}
    if name == "dapo":
        assert set(chosen) >= set(sorted(mixed)[:12])
    else:
        assert len(set(chosen) & set(range(scored))) == min(scored, 6)


def test_domain_randomisation_draws_few_boards_alike():
    drawn, lake = draw("domain_randomisation", 20, alike=3)
    assert [len(lake.configs), drawn.fresh] == [7, 20]
    asked = [next(iter(config.sizes.values())) for config in lake.configs if config]
    assert len({cell.hole_ratio for cell in asked}) == 7
    assert {cell.wait_ratio for cell in asked} == {0.0, 1.0}


def learned() -> PlrSampler:
    """Stage 0 trained on boards 0 and 1, stage 1 on 2 and 3."""
    sampler = PlrSampler(replay=0.5, staleness=0.4, beta=1.0)
    sampler.learn(rollouts(ROWS[:2], 5, 1), 0)
    sampler.learn(rollouts(ROWS[2:4], 3, 0), 1)
    return sampler


def test_replay_is_by_rank_and_staleness():
    sampler = learned()
    assert places([level.row for level in sampler.levels]) == [0, 2, 1, 3]
    by_rank = np.array([1, 1 / 2, 1 / 3, 1 / 4]) / (25 / 12)
    by_age = np.array([2, 1, 2, 1]) / 6
    assert sampler.chances() == pytest.approx(0.6 * by_rank + 0.4 * by_age)


def test_replayed_boards_are_old_ones_and_are_scored_again():
    sampler, lake = learned(), Lake()
    lake.given = 10
    drawn = sampler.draw(6, lake, lake.score, jax.random.key(0))
    assert (drawn.replayed, drawn.fresh, drawn.scored) == (3, 3, 0)
    assert {10, 11, 12} < set(places(drawn.rows))
    assert len({place for place in places(drawn.rows) if place < 4}) == 3
    sampler.learn(rollouts(ROWS[:1], 10), 2)
    again = next(level for level in sampler.levels if level.row == ROWS[0])
    assert (again.score, again.stage) == (0.0, 2)


def test_replay_keeps_the_best_levels_and_its_state_survives_json():
    sampler = learned()
    sampler.capacity = 3
    sampler.learn([], 2)
    assert places([level.row for level in sampler.levels]) == [0, 2, 1]
    other = PlrSampler()
    other.load_state_dict(msgspec.json.decode(msgspec.json.encode(sampler.state_dict())))
    assert (other.levels, other.stage) == (sampler.levels, 3)


def test_the_variance_filter_keeps_what_is_above_its_threshold_and_fills_up_from_its_memory():
    sampler, lake = VcrlSampler(first=0.3, later=0.9), Lake()
    drawn = sampler.draw(11, lake, lake.score, jax.random.key(0))
    assert sorted(places(drawn.rows)) == list(range(11)), "the memory is empty, so all are taken"
    assert [spread_of(group(valid)) for valid in (0, 1, 5, 9)] == pytest.approx([0, 0.36, 1.0, 0.36])
    sampler.learn(rollouts(ROWS[30:33], 5, 1, 4), 0)
    assert places([kept.row for kept in sampler.memory]) == [30, 32]
    drawn = sampler.draw(11, lake, lake.score, jax.random.key(0))
    assert {15, 16, 17, 30, 32} <= set(places(drawn.rows)), "p = .4, .5, .6 of the next eleven, and the memory"
    assert drawn.replayed == 2
    sampler.learn(rollouts(ROWS[30:31], 0), 1)
    assert places([kept.row for kept in sampler.memory]) == [32, 30], "a board that is solved falls back"


def test_prompt_curriculum_learns_which_boards_are_of_middling_difficulty_and_rolls_out_nothing():
    sampler, lake = PclSampler(pool=4.0), Lake()
    assert places(sampler.draw(4, lake, lake.score, jax.random.key(0)).rows) == [0, 1, 2, 3]
    sampler.learn(rollouts(ROWS, *(10 if row.makespan <= 2 else 0 for row in ROWS)), 0)
    expected = sampler.predicted(ROWS)
    short = np.array([row.makespan <= 2 for row in ROWS])
    assert expected[short].mean() > expected[~short].mean() + 0.3
    drawn = sampler.draw(4, lake, lake.score, jax.random.key(0))
    assert (drawn.fresh, drawn.scored, len(drawn.rows)) == (16, 0, 4)
    pool = sampler.predicted(ROWS[4:20])
    assert set(places(drawn.rows)) == {4 + i for i in np.argsort(abs(pool - 0.5), kind="stable")[:4]}


@pytest.mark.parametrize("sampler", [VcrlSampler, PclSampler])
def test_what_a_sampler_learned_survives_json(sampler):
    once, again = sampler(), sampler()
    once.learn(rollouts(ROWS[:4], 5, 0, 4, 10), 0)
    again.load_state_dict(msgspec.json.decode(msgspec.json.encode(once.state_dict())))
    assert again.state_dict() == once.state_dict()


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("oracle", {}, "'oracle' is no sampler; choose from fresh, domain_randomisation, sfl, plr, dapo"),
        ("plr", {"alpha": 1.0}, "'alpha' is unknown to plr; choose from replay, staleness, beta, capacity"),
        ("sfl", {"pool": 0.1}, "pool is 0.1, less than mix"),
    ],
)
def test_an_unknown_sampler_or_option_is_refused_and_the_choices_named(name, options, problem):
    with pytest.raises(InputError, match=problem):
        SamplerSettings(name, options)
