"""The difficulty teacher and the saboteur ask for boards by what a fitted model expects of them."""

import jax
import msgspec
import numpy as np
import pytest

from lakewright.core_jax.config import SizeConfig
from lakewright.engineer.cells import Cell
from lakewright.engineer.difficulty import DifficultySettings, Forecast, HeldOutCell, Observation, make_forecast
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.teachers.difficulty import DifficultyTeacher
from lakewright.experiments.environments.lake import design_of
from tests.support.samples.curricula import CONFIG, asked_for, made, propose, shares
from tests.support.samples.evidence import SPACE, everything

DESIGN = design_of(CONFIG)


def lake_cell(size: int, forced: bool = False) -> Cell:
    """Boards of two agents."""
    return Cell(size, (0.2, forced), (2,))


def known(p: dict[int, float]) -> Forecast:
    """A forecast from many groups of each size with these rates of valid plans, no wait being forced."""
    return known_cells({lake_cell(size): rate for size, rate in p.items()})


def known_cells(p: dict[Cell, float]) -> Forecast:
    """A forecast from many groups of each cell with these rates of valid plans; all are held out alike."""
    seen = [Observation(cell, 2000, 2000 * rate, 2000 * rate * (1 - rate)) for cell, rate in p.items()]
    return make_forecast(DESIGN, seen, [HeldOutCell(cell, 1 / len(p)) for cell in p], DifficultySettings(), SPACE)


def seeking_regret(found: Forecast, reach: float = 0.0) -> Forecast:
    """The same forecast, in which boards are worth their regret."""
    return msgspec.structs.replace(found, model=msgspec.structs.replace(found.model, objective="regret", reach=reach))


def asked_by(teacher: DifficultyTeacher, evidence: Evidence, seed: int = 0) -> dict[int, SizeConfig]:
    """The sizes that a teacher asks for."""
    return asked_for(teacher.propose(evidence, DESIGN, SPACE, jax.random.key(seed)))


def test_the_difficulty_teacher_gives_data_by_expected_learnability():
    evidence = everything(CONFIG, {}, forecast=known({3: 0.9, 4: 0.5, 6: 0.1}))
    sizes = asked_by(DifficultyTeacher(mix=0.0), evidence)
    assert shares(sizes) == pytest.approx([0.09 / 0.43, 0.25 / 0.43, 0.09 / 0.43], abs=0.03)
    assert all(cell.wait_ratio == 0 and cell.hole_ratio == pytest.approx(0.2) for cell in sizes.values())
    even = asked_by(DifficultyTeacher(mix=1.0), evidence)
    assert shares(even) == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_the_difficulty_teacher_names_the_held_out_boards_where_they_tell_cells_apart():
    found = known({3: 0.9, 4: 0.5, 6: 0.1})
    more = [
        msgspec.structs.replace(part, share=share) for part, share in zip(found.held_out, (0.5, 0.3, 0.2), strict=True)
    ]
    for forecast, weighed in (
        (found, "all weighed alike"),
        (msgspec.structs.replace(found, held_out=more), "weighed by the held-out boards"),
    ):
        proposal = DifficultyTeacher().propose(
            everything(CONFIG, {}, forecast=forecast), DESIGN, SPACE, jax.random.key(0)
        )
        assert f"the cells of the largest expected learnability, {weighed}" in proposal.answer


def test_the_difficulty_teacher_may_count_every_group_with_a_signal_alike():
    evidence = everything(CONFIG, {}, forecast=known({3: 0.9, 4: 0.5, 6: 0.1}))
    teacher = DifficultyTeacher(mix=0.0, group=8)
    chances = [1 - 0.9**8 - 0.1**8, 1 - 2 * 0.5**8, 1 - 0.9**8 - 0.1**8]
    wanted = [chance / sum(chances) for chance in chances]
    assert shares(asked_by(teacher, evidence)) == pytest.approx(wanted, abs=0.05)


def test_the_difficulty_teacher_seeks_regret_where_that_is_the_objective():
    evidence = everything(CONFIG, {}, forecast=seeking_regret(known({3: 0.9, 4: 0.5, 6: 0.1})))
    sizes = asked_by(DifficultyTeacher(mix=0.0), evidence)
    assert shares(sizes) == pytest.approx([0.1 / 1.5, 0.5 / 1.5, 0.9 / 1.5], abs=0.04)


def test_the_difficulty_teacher_may_count_that_plans_on_large_maps_cost_more():
    evidence = everything(CONFIG, {}, forecast=known({3: 0.5, 4: 0.5, 6: 0.5}))
    sizes = asked_by(DifficultyTeacher(mix=0.0, length=1.0), evidence)
    assert shares(sizes) == pytest.approx([1 / 3 / 0.75, 1 / 4 / 0.75, 1 / 6 / 0.75], abs=0.03)


def test_the_difficulty_teacher_may_leave_maps_alone_that_are_out_of_reach():
    """Boards with a wait fail on both sizes; on 3x3 the others are solved, on 6x6 nothing is."""
    cells = {lake_cell(3): 0.9, lake_cell(3, True): 0.1, lake_cell(6): 0.1, lake_cell(6, True): 0.1}
    found = known_cells(cells)
    for reach, expected in ((0.0, 1.8 / 1.0), (1.0, 0.1 * 1.8 / (0.9 * 1.0))):
        evidence = everything(CONFIG, {}, forecast=seeking_regret(found, reach))
        sizes = asked_by(DifficultyTeacher(mix=0.0), evidence)
        assert sizes[6].data_ratio / sizes[3].data_ratio == pytest.approx(expected, rel=0.2)


def test_the_difficulty_teacher_has_an_answer_where_every_plan_failed():
    evidence = everything(CONFIG, {}, forecast=known({3: 0.0, 4: 0.0, 6: 0.0}))
    sizes = asked_by(DifficultyTeacher(), evidence)
    assert sum(shares(sizes)) == pytest.approx(1)


def test_the_difficulty_teacher_draws_what_it_does_not_know():
    held_out = known({3: 0.5, 6: 0.5}).held_out
    one = [Observation(lake_cell(4), 1, 0.5, 0.25)]
    evidence = everything(CONFIG, {}, forecast=make_forecast(DESIGN, one, held_out, DifficultySettings(), SPACE))
    drawn = [asked_by(DifficultyTeacher(), evidence, seed) for seed in range(8)]
    assert np.std([sizes[3].data_ratio for sizes in drawn]) > 0.1
    assert asked_by(DifficultyTeacher(), everything(CONFIG, {})) == CONFIG.sizes


def test_the_saboteur_asks_for_the_boards_that_teach_least():
    sizes = asked_for(propose(made("saboteur"), valid={3: 90, 4: 50, 6: 1}))
    assert shares(sizes) == [0.0, 0.0, 1.0]
    assert (sizes[6].hole_ratio, sizes[6].wait_ratio) == (0.5, 1.0)
    assert (sizes[3].hole_ratio, sizes[3].wait_ratio) == (0.0, 0.0)
    assert shares(asked_for(propose(made("saboteur"), valid={3: 100, 4: 50, 6: 1}))) == [1.0, 0.0, 0.0]
