"""The rules of other projects on any space, by hand-made numbers."""

import math

import pytest

from lakewright.core_jax.results import GroupStatistics
from lakewright.engineer.cells import Cell, Knob
from lakewright.engineer.delta import edit_design
from lakewright.engineer.design import Design
from lakewright.engineer.evidence import CellGroups, Evidence
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.teachers import make_teacher
from lakewright.engineer.teachers.difficulty_pools import DifficultyPoolsTeacher
from lakewright.engineer.teachers.learning_progress import LearningProgressTeacher
from lakewright.engineer.teachers.success_levels import CoachingTeacher, RlveTeacher
from tests.support.environments.odd_spaces import RAGGED, key_of
from tests.support.refusals import refused

LADDERS = DesignSpace(
    [2, 3],
    [
        Knob(name="digits", high=3, step=1, reach=1, whole=True),
        Knob(name="slack", high=4, step=1, reach=1, whole=True, harder=-1),
    ],
    ranked=True,
)
ONE = DesignSpace(["a"], [Knob(name="level", high=3, step=1, reach=1, whole=True)], ranked=True)


def rolled(cell: Cell, valid: int, groups: int = 10) -> CellGroups:
    """Groups of ten answers, so many of which are valid in all."""
    return CellGroups(cell, GroupStatistics(groups, 0, 0, 10 * groups, valid, 0.0, 0.0, 0.0))


def ask(teacher, design: Design, space: DesignSpace, *groups: CellGroups):
    """The rows that a teacher asks for."""
    evidence = Evidence(design=design, outcomes={}, round=0, rounds=3, groups=list(groups))
    delta = teacher.propose(evidence, design, space, key_of(0)).delta
    return normalize_rows(edit_design(design, delta, space), space)


def ladders(digits: int = 1, slack: int = 2) -> Design:
    """Two strata alike."""
    return LADDERS.design({one: {"share": 0.5, "digits": digits, "slack": slack} for one in (2, 3)})


def test_coaching_moves_all_ladders_a_step_where_a_task_is_solved_or_not():
    rows = ask(
        CoachingTeacher(), ladders(), LADDERS, rolled(Cell(2, (1, 2)), valid=71), rolled(Cell(3, (1, 2)), valid=29)
    )
    assert rows == {
        2: {"share": 0.5, "digits": 2, "slack": 1},
        3: {"share": 0.5, "digits": 0, "slack": 3},
    }


def test_coaching_keeps_what_is_on_its_thresholds_or_was_not_drawn():
    rows = ask(CoachingTeacher(), ladders(), LADDERS, rolled(Cell(2, (1, 2)), valid=70))
    assert rows == ladders().strata
    assert ask(CoachingTeacher(), ladders(), LADDERS, rolled(Cell(2, (1, 2)), valid=30)) == ladders().strata
    assert ask(CoachingTeacher(), ladders(), LADDERS) == ladders().strata


def test_coaching_stops_at_the_ends_of_a_ladder():
    at_the_top = ladders(digits=3, slack=0)
    assert ask(CoachingTeacher(), at_the_top, LADDERS, rolled(Cell(2, (3, 0)), valid=100)) == at_the_top.strata
    rows = {one: {"share": 1 / 3, "level": RAGGED.limits(one, RAGGED.knobs[0])[1]} for one in RAGGED.strata}
    ragged = RAGGED.design(rows)
    assert ask(CoachingTeacher(), ragged, RAGGED, rolled(Cell("word-game", (3,)), valid=100)) == ragged.strata


def test_coaching_waits_for_its_last_answers_and_then_counts_again():
    teacher = CoachingTeacher(last=150)
    cell = Cell(2, (1, 2))
    assert ask(teacher, ladders(), LADDERS, rolled(cell, valid=100)) == ladders().strata
    assert teacher.state_dict() == {"counts": {"2": [100, 100]}}
    assert ask(teacher, ladders(), LADDERS, rolled(cell, valid=50))[2]["digits"] == 2, "150 of 200 are valid"
    assert teacher.state_dict() == {"counts": {}}


def test_difficulty_pools_weigh_cells_by_when_they_were_last_rolled_out():
    teacher = DifficultyPoolsTeacher()
    design = ONE.uniform()
    cells = [Cell("a", (place,)) for place in range(4)]
    seen = [rolled(cells[0], 100), rolled(cells[1], 75), rolled(cells[2], 25)]
    rows = ask(teacher, design, ONE, *seen)
    assert [teacher.weigh_cell(cell) for cell in cells] == [0.2, 1.0, 0.2, 1.0], "3 was never rolled out"
    assert rows["a"]["level"] == round((1 * 1.0 + 2 * 0.2 + 3 * 1.0) / 2.4)
    ask(teacher, design, ONE, rolled(cells[0], 26))
    assert teacher.weigh_cell(cells[0]) == 1.0, "the latest counts"
    again = DifficultyPoolsTeacher()
    again.load_state_dict(teacher.state_dict())
    assert again.latest == teacher.latest


def test_difficulty_pools_share_out_data_over_strata():
    design = ladders()
    grid = [cell for cell in LADDERS.grid([2]) if cell.stratum == 2]
    rows = ask(DifficultyPoolsTeacher(weight=0.0), design, LADDERS, *(rolled(cell, 0) for cell in grid))
    assert rows[2]["share"] == 0
    assert rows[3]["share"] == 1


def test_difficulty_pools_without_any_weight_change_nothing():
    teacher = DifficultyPoolsTeacher(weight=0.0)
    rows = ask(teacher, ONE.uniform(), ONE, *(rolled(cell, 0) for cell in ONE.grid(["a"])))
    assert rows == ONE.uniform().strata


def test_learning_progress_is_the_distance_of_two_means_after_the_stretch_of_small_rates():
    teacher = LearningProgressTeacher()
    cell = Cell("a", (1,))
    ask(teacher, ONE.uniform(), ONE, rolled(cell, 50))
    assert teacher.means == {cell: (pytest.approx(0.05), pytest.approx(0.005))}
    fast, slow = 0.05 * 0.9 / (0.05 + 0.1 * 0.9), 0.005 * 0.9 / (0.005 + 0.1 * 0.99)
    assert teacher.measure_progress(cell) == pytest.approx(fast - slow)
    ask(teacher, ONE.uniform(), ONE, rolled(cell, 0))
    assert teacher.means[cell] == (pytest.approx(0.045), pytest.approx(0.1 * 0.045 + 0.9 * 0.005))


def test_learning_progress_gives_data_to_what_changes_by_a_sigmoid_of_the_z_score():
    weights = LearningProgressTeacher().weigh_progress([0.0, 0.1, 0.3])
    one, two = 1 / (1 + math.exp(1)), 1 / (1 + math.exp(-1))
    assert weights == pytest.approx([0, one / (one + two), two / (one + two)])
    assert LearningProgressTeacher().weigh_progress([0.0, 0.0]) == [0.5, 0.5]
    assert LearningProgressTeacher().weigh_progress([0.2, 0.0]) == [1.0, 0.0]


def test_learning_progress_moves_to_the_cell_that_is_learned():
    teacher = LearningProgressTeacher()
    rows = ask(teacher, ONE.uniform(), ONE, rolled(Cell("a", (3,)), 90))
    assert rows["a"]["level"] == 3


def test_rlve_waits_for_eight_problems_at_its_hardest_level():
    teacher = RlveTeacher(levels=4, window=2)
    easy = Cell("a", (0,))
    ask(teacher, ONE.uniform(), ONE, rolled(easy, valid=70, groups=7))
    assert teacher.tracks[""].hardest == 0
    ask(teacher, ONE.uniform(), ONE, rolled(easy, valid=10, groups=1))
    assert teacher.tracks[""].hardest == 1, "80 of 80 at 8 problems"
    ask(teacher, ONE.uniform(), ONE, rolled(easy, valid=100))
    assert teacher.tracks[""].hardest == 1, "answers below the hardest level do not count"


def test_rlve_forgets_a_level_that_was_not_solved():
    teacher = RlveTeacher()
    for valid, hardest in ((89, 0), (90, 1)):
        ask(teacher, ONE.uniform(), ONE, rolled(Cell("a", (0,)), valid))
        assert teacher.tracks[""].hardest == hardest


def test_rlve_gives_each_stratum_without_an_order_its_own_level_and_an_equal_share():
    teacher = RlveTeacher(levels=11, window=2)
    design = RAGGED.uniform()
    rows = ask(teacher, design, RAGGED, rolled(Cell("sums", (0,)), 100), rolled(Cell("word-game", (0,)), 10))
    assert {name: track.hardest for name, track in teacher.tracks.items()} == {"sums": 1, "word-game": 0, "logic/1": 0}
    assert [row["share"] for row in rows.values()] == pytest.approx([1 / 3] * 3, abs=1e-6)
    assert rows["word-game"]["level"] == 0


def test_rlve_takes_up_a_state_of_before():
    teacher = RlveTeacher()
    teacher.load_state_dict({"hardest": 3})
    assert teacher.tracks[""].hardest == 3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("coaching", {"success": 0.2, "failure": 0.3}),
        ("difficulty_pools", {"hard": 0.8, "easy": 0.7}),
        ("learning_progress", {"alpha": 1.5}),
        ("rlve", {"prompts": 0}),
    ],
)
def test_options_that_do_not_fit_are_refused_in_a_line(name, options):
    with refused("teacher_options"):
        make_teacher(name, options=options)
