"""The automatic curricula: each keeps its formula, by hand-made numbers; all carry their state."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import weigh_cells
from lakewright.engineer.evidence import CellGroups
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.teachers import TEACHERS, make_teacher
from lakewright.engineer.teachers.bandits import DumpTeacher, SecTeacher, SflTeacher, ThompsonTeacher
from lakewright.engineer.teachers.learning_progress import AlpGmmTeacher
from lakewright.engineer.teachers.success_levels import AdaRFTTeacher, RlveTeacher
from lakewright.experiments.environments.lake import design_of, lake_space
from tests.support.refusals import refused
from tests.support.samples.curricula import CONFIG, asked_for, made, propose, shares
from tests.support.samples.evidence import SPACE, RoomyLake, rollouts

ALONE = EnvConfig({5: SizeConfig(1.0, 0.2, 0.0)}, agents=1)


def lake_cell(size: int, forced: bool = True, hole_ratio: float = 0.25) -> Cell:
    """A cell of boards."""
    return Cell(size, (hole_ratio, forced))


AUTOMATIC = [name for name in TEACHERS if name not in ("self", "self_trained")]
FREE = GuardSettings(floor=0, reach={"data_ratio": 1, "hole_ratio": 1, "wait_ratio": 1})
DESIGN = design_of(CONFIG)


def by_chance(seed: int) -> list[CellGroups]:
    """Rollouts of every cell that CONFIG draws from."""
    rng = np.random.default_rng(seed)
    return [
        rollouts(
            int(cell.stratum),
            bool(cell.values[1]),
            informative=int(rng.integers(11)),
            valid=int(rng.integers(81)),
            learnability=float(rng.uniform(0, 0.25)),
            advantage=float(rng.uniform()),
        )
        for cell in SPACE.cells(DESIGN)
    ]


@pytest.mark.parametrize("name", AUTOMATIC)
def test_a_teacher_continues_from_its_state_as_if_it_had_never_stopped(name):
    once, again = made(name), made(name)
    for number in range(3):
        rolled, valid = by_chance(number), {3: 90, 4: 40, 6: 5}
        one, two = (propose(teacher, rolled, valid, seed=number, round=number) for teacher in (once, again))
        assert one == two, "the same key, the same proposal"
        written = msgspec.json.encode(again.state_dict())
        again = made(name)
        again.load_state_dict(msgspec.json.decode(written))
        assert again.state_dict() == once.state_dict()


@pytest.mark.parametrize("name", ["random", "domain_randomisation", "matched_random", "thompson", "alp_gmm"])
def test_a_teacher_that_draws_depends_on_its_key(name):
    assert propose(made(name), by_chance(0), {3: 90}, seed=1) != propose(made(name), by_chance(0), {3: 90}, seed=2)


@pytest.mark.parametrize("name", TEACHERS)
@pytest.mark.parametrize("config", [CONFIG, ALONE], ids=["three sizes", "one agent"])
def test_what_a_teacher_asks_for_is_a_design_and_the_guard_refuses_none(name, config):
    groups = by_chance(0) if config is CONFIG else [rollouts(5, hole_ratio=0.2, valid=40, informative=5)]
    teacher = made(name)
    for number in range(2):
        proposal = propose(teacher, groups, dict.fromkeys(config.sizes, 50), config, number, number)
        assert proposal.delta is not None
        verdict = project_delta(design_of(config), proposal.delta, RoomyLake(config.agents), FREE)
        assert verdict.status != "refused"
        assert config.agents > 1 or verdict.design.strata[5]["wait_ratio"] == 0


@pytest.mark.parametrize("name", ["adarft", "sec", "thompson", "alp_gmm", "sfl", "rlve", "dump"])
def test_a_teacher_that_needs_rollouts_edits_nothing_without_them(name):
    assert asked_for(propose(made(name))) == CONFIG.sizes


def test_the_cells_of_a_design_weigh_what_it_draws_and_mean_it():
    weights = SPACE.cells(DESIGN)
    assert weights[lake_cell(3)] == 0.25
    assert weigh_cells(weights, DESIGN, SPACE) == DESIGN.strata
    assert len(SPACE.grid(CONFIG.sizes)) == 3 * 5 * 2
    assert len(lake_space(several=False).grid(ALONE.sizes)) == 5


def test_a_size_without_weight_gets_no_data_and_keeps_its_ratios():
    weights = {lake_cell(4, False, 0.15): 3.0, lake_cell(4, True, 0.35): 1.0}
    rows = weigh_cells(weights, DESIGN, SPACE)
    assert rows[4] == {"data_ratio": 1.0, "hole_ratio": 0.2, "wait_ratio": 0.25}
    assert rows[3] == {"data_ratio": 0.0, "hole_ratio": 0.25, "wait_ratio": 0.5}


@given(st.integers(3, 10), st.floats(0, 0.5), st.booleans())
def test_a_cell_comes_back_from_its_name_and_lies_in_its_bin(size, hole_ratio, forced):
    cell = SPACE.bin_cell(lake_cell(size, forced, hole_ratio), range(3, 11))
    assert Cell.from_name(str(cell)) == cell
    assert abs(cell.values[0] - hole_ratio) <= 0.05 + 1e-6


def test_the_hardest_cell_is_the_largest_fullest_with_a_forced_wait():
    assert SPACE.hardness(lake_cell(6, True, 0.5), CONFIG.sizes) == 1
    assert SPACE.hardness(lake_cell(3, False, 0.0), CONFIG.sizes) == 0
    assert SPACE.hardness(lake_cell(4), CONFIG.sizes) == pytest.approx((0.5 + 0.5 + 1) / 3)


def test_adarft_moves_its_target_by_the_success_rate():
    teacher = AdaRFTTeacher()
    assert teacher.move_target(0.4, 0.75) == pytest.approx(0.4 + 0.5 * math.tanh(0.5))
    assert teacher.move_target(0.4, 0.5) == 0.4
    assert (teacher.move_target(0.9, 1.0), teacher.move_target(0.1, 0.0)) == (1.0, 0.0)


def test_adarft_draws_from_the_cells_nearest_to_its_target():
    teacher = AdaRFTTeacher(nearest=1)
    harder = asked_for(propose(teacher, [rollouts(3, valid=80)]))
    begun = sum(SPACE.hardness(cell, CONFIG.sizes) * share for cell, share in SPACE.cells(DESIGN).items())
    assert teacher.target == pytest.approx(begun + 0.5 * math.tanh(1.0))
    chosen = next(size for size, cell in harder.items() if cell.data_ratio == 1)
    cell = lake_cell(chosen, harder[chosen].wait_ratio == 1, harder[chosen].hole_ratio)
    assert abs(SPACE.hardness(cell, CONFIG.sizes) - teacher.target) < 0.05


def test_sec_follows_the_mean_absolute_advantage():
    teacher = SecTeacher(rate=0.5, tau=0.2)
    propose(teacher, [rollouts(3, advantage=0.8), rollouts(4, True, advantage=0.1)])
    propose(teacher, [rollouts(3, advantage=0.2)])
    assert teacher.values == {lake_cell(3, False): pytest.approx(0.3), lake_cell(4, True): pytest.approx(0.05)}
    p = teacher.softmax_shares(SPACE.grid(CONFIG.sizes))
    total = 28 + math.exp(0.3 / 0.2) + math.exp(0.05 / 0.2)
    assert p[lake_cell(3, False)] == pytest.approx(math.exp(0.3 / 0.2) / total)
    assert p[lake_cell(6, True, 0.05)] == pytest.approx(1 / total)


def test_thompson_counts_informative_groups_and_forgets():
    teacher = ThompsonTeacher(decay=0.5)
    propose(teacher, [rollouts(3, informative=8)])
    propose(teacher, [rollouts(3, informative=1), rollouts(6, True, informative=10)])
    assert teacher.counts == {lake_cell(3, False): (5.0, 10.0), lake_cell(6, True): (10.0, 0.0)}


def test_thompson_gives_the_slots_to_the_cell_that_is_surely_informative():
    sure = rollouts(6, True, groups=100_000, informative=100_000)
    sizes = asked_for(propose(ThompsonTeacher(), [sure, rollouts(3)]))
    assert sizes[6].data_ratio > 0.9
    assert sizes[6].wait_ratio > 0.9
    assert sizes[6].hole_ratio == pytest.approx(0.25, abs=0.02)


def test_learning_progress_is_the_change_from_the_nearest_earlier_task():
    teacher = AlpGmmTeacher()
    teacher.observe_stage([[0.0, 0.5, 0.0, 0.2], [1.0, 0.5, 0.0, 0.9]])
    assert teacher.points == []
    teacher.observe_stage([[0.0, 0.6, 0.0, 0.5], [1.0, 0.4, 0.0, 0.8]])
    assert teacher.points == [[0.0, 0.6, 0.0, pytest.approx(0.3)], [1.0, 0.4, 0.0, pytest.approx(0.1)]]


def test_alp_gmm_refuses_a_window_that_never_holds_enough_to_fit():
    with refused("teacher_options: window", 7, 8):
        make_teacher("alp_gmm", options={"window": 7})
    assert make_teacher("alp_gmm", options={"window": 8})


def test_alp_gmm_goes_where_the_progress_was():
    rng = np.random.default_rng(0)
    teacher = AlpGmmTeacher(random=0.0)
    theta = np.clip(rng.normal([[0.0, 0.2, 0.0]] * 20 + [[1.0, 0.8, 1.0]] * 20, 0.02), 0, 1)
    teacher.observe_stage([[*row, 0.5] for row in theta])
    teacher.observe_stage([[*row, 0.5 + 0.4 * (row[0] > 0.5)] for row in theta])
    sizes = asked_for(propose(teacher, [rollouts(3, valid=40, hole_ratio=0.1)]))
    assert sizes[6].data_ratio > 0.85
    assert sizes[6].hole_ratio == pytest.approx(0.4, abs=0.03)
    assert sizes[6].wait_ratio > 0.9


def test_sfl_mixes_the_most_learnable_cells_with_the_first_config():
    seen = [rollouts(3, learnability=0.01), rollouts(4, learnability=0.2), rollouts(6, True, learnability=0.25)]
    sizes = asked_for(propose(SflTeacher(top=0.67, mix=0.5), [*seen]))
    assert shares(sizes) == pytest.approx([0.25, 0.125 + 0.25, 0.125 + 0.25])
    assert sizes[4].wait_ratio == pytest.approx(0.0625 / 0.375, abs=1e-6)
    assert sizes[6].wait_ratio == pytest.approx(0.3125 / 0.375, abs=1e-6)


def test_rlve_rises_a_level_where_the_hardest_is_solved_and_draws_from_its_window():
    teacher = RlveTeacher(threshold=0.9, window=2, levels=4)
    easy, hard = rollouts(3, hole_ratio=0.05, valid=80), rollouts(3, hole_ratio=0.05, valid=70)
    propose(teacher, [hard])
    assert teacher.tracks[""].hardest == 0
    sizes = asked_for(propose(teacher, [easy]))
    assert teacher.tracks[""].hardest == 1
    assert {
        teacher.find_level(cell, DESIGN, SPACE) for cell in teacher.list_window(list(DESIGN.strata), DESIGN, SPACE)
    } == {
        0,
        1,
    }
    assert sizes[3].data_ratio > sizes[6].data_ratio
    propose(teacher, [easy])
    assert teacher.tracks[""].hardest == 1, "nothing of level 1 was rolled out"


def test_dump_prefers_what_has_large_advantages_and_what_was_seldom_drawn():
    teacher = DumpTeacher(tau=0.1, window=15)
    propose(teacher, [rollouts(3, advantage=0.8), rollouts(4, advantage=0.2)])
    assert teacher.upper_bound(lake_cell(3, False)) == pytest.approx(0.8 + math.sqrt(2 * math.log(21) / 11))
    assert teacher.upper_bound(lake_cell(6, True)) == pytest.approx(math.sqrt(2 * math.log(21)))
    propose(teacher, [rollouts(3, advantage=0.2)])
    mean = (10 * 0.2 + 5 * 0.8) / 15
    assert teacher.upper_bound(lake_cell(3, False)) == pytest.approx(mean + math.sqrt(2 * math.log(31) / 21))


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("sec", {"temperature": 1.0}, ["'temperature'", "rate, tau"]),
        ("sec", {"tau": "hot"}, ["tau: 'hot'", "expected `float`"]),
        ("sec", {"tau": 0.0}, ["tau: 0.0", "expected `float` >= 0.01"]),
        ("fixed", {"tau": 1.0}, ["choose from none"]),
        ("matched_random", {"match": "oracle"}, ["'oracle'", "fixed"]),
        ("matched_random", {"match": "matched_random"}, ["name another teacher"]),
        ("e2h_cosine", {"schedule": "gaussian"}, ["'schedule'", "e2h_cosine"]),
        ("e2h_cosine", {"sigma": 1.0}, ["'sigma'", "e2h_cosine"]),
        ("thompson", {"draws": True}, ["draws: True", "expected `int`"]),
    ],
)
def test_an_option_that_a_teacher_does_not_have_is_refused(name: str, options: dict[str, Any], problem: str):
    with refused(*problem):
        make_teacher(name, options=options)
