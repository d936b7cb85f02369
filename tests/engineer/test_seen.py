"""Groups that are held by cell tell the engineer what they tell it one by one, however many come at a time."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.engineer import Cell, Engineer, Group, Problem, Verdict
from lakewright.engineer import seen as seen_module
from lakewright.engineer.seen import Seen, SeenCells, add_groups
from tests.engineer.test_environment import Sums
from tests.support.refusals import refused

CELLS = [Cell("sums", (terms, noise)) for terms in (2, 3) for noise in (False, True)]


def make_group(cell, rewards):
    verdicts = [Verdict(reward > 0, reward, "" if reward > 0 else "wrong") for reward in rewards]
    return Group.from_verdicts(Problem("", cell=cell, key="k"), verdicts)


groups = st.builds(make_group, st.sampled_from(CELLS), st.lists(st.sampled_from([-1.0, 0.0, 0.25, 1.0]), min_size=1))


@given(st.lists(st.lists(groups)))
def test_groups_in_any_parts_are_the_same_cells_as_all_at_once(parts):
    seen = [[Seen(group.cell, group) for group in part] for part in parts]
    cells = SeenCells()
    for part in seen:
        cells = add_groups(cells, part, Sums.space)
    whole = add_groups(SeenCells(), [one for part in seen for one in part], Sums.space)
    assert cells.tallies == whole.tallies
    assert cells.count == whole.count == sum(map(len, parts))
    for one, other in zip(cells.groups, whole.groups, strict=True):
        assert one.cell == other.cell
        assert msgspec.structs.asdict(one.groups) == pytest.approx(msgspec.structs.asdict(other.groups))
    for one, other in zip(cells.observations, whole.observations, strict=True):
        assert (one.cell, one.groups) == (other.cell, other.groups)
        assert (one.success, one.variance) == pytest.approx((other.success, other.variance))


def test_an_engineer_that_holds_groups_by_cell_decides_alike_and_its_state_is_read_again(monkeypatch):
    decisions = []
    for most in (1 << 13, 3):
        monkeypatch.setattr(seen_module, "MOST_SEEN", most)
        engineer = Engineer(Sums(), "difficulty", seed=3)
        problems = engineer.draw(24)
        for part in range(0, 24, 4):
            answers = [[problem.answer, "?"] for problem in problems[part : part + 4]]
            engineer.observe(engineer.environment.groups(problems[part : part + 4], answers))
        state = engineer.state_dict()
        assert len(state["seen"]) == (24 if most > 24 else 0)
        again = Engineer(Sums(), "difficulty", seed=3)
        again.load_state_dict(state)
        assert again.state_dict() == state
        decisions.append((engineer.redesign(), again.redesign()))
    (plain, _), (folded, restored) = decisions
    assert plain.design == folded.design == restored.design
    assert plain.evidence.outcomes == folded.evidence.outcomes
    assert plain.evidence.problems == folded.evidence.problems == 24
    damaged = {
        **state,
        "seen_cells": {"tallies": [{"cell": ["sums", [2.5, True]], "tally": {"problems": 1, "valid": 1}}]},
    }
    with refused("state: seen_cells:"):
        Engineer(Sums(), "difficulty").load_state_dict(damaged)
