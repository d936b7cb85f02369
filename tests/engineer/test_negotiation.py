"""A refusal goes back to the engineer with its reason; the guard asks the lake what there is."""

import jax
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.generator import can_draw, check_reachable
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import derive_delta, edit_design
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.proposal import Proposal, propose_delta
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.steps import negotiate
from lakewright.experiments.environments.lake import Lake, design_of
from tests.support.samples.evidence import SPACE, edit, everything

DESIGN = design_of(EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 5: SizeConfig(0.5, 0.25, 0.5)}))
GOOD = propose_delta(Delta({3: edit("", hole_ratio=-0.05)}))
UNKNOWN = propose_delta(Delta({7: edit("")}))
BROKEN = Proposal("", "no", None, "answer: not JSON; answer with one JSON object")


class Stubborn:
    """Gives its answers one after the other, and counts in its state how often it was asked."""

    def __init__(self, *answers: Proposal) -> None:
        self.answers, self.heard, self.asked = list(answers), [], 0

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: jax.Array) -> Proposal:
        self.heard.append(evidence.refusals)
        self.asked += 1
        return self.answers.pop(0)

    def state_dict(self) -> dict:
        return {"asked": self.asked}

    def load_state_dict(self, state: dict) -> None:
        self.asked = state["asked"]


class Bounds:
    """A lake on which boards can be drawn where `drawable` says so."""

    space = SPACE

    def __init__(self, drawable=lambda cell: True) -> None:
        self.drawable = drawable


def talk(teacher: Stubborn, tries: int = 3):
    anything = everything(DESIGN, {})
    return negotiate(teacher, anything, DESIGN, Bounds(), jax.random.key(0), GuardSettings(tries=tries))


def test_a_refused_answer_goes_back_with_its_reason_until_one_passes():
    teacher = Stubborn(BROKEN, UNKNOWN, GOOD)
    attempts = talk(teacher)
    assert [attempt.verdict.status for attempt in attempts] == ["refused", "refused", "accepted"]
    size = "edits.7: map size 7 is not in the config; choose from 3, 5"
    assert teacher.heard == [[], [BROKEN.error], [BROKEN.error, size]]
    assert attempts[-1].verdict.design.strata[3]["hole_ratio"] == 0.15


def test_a_refused_try_leaves_no_trace_in_the_state():
    teacher = Stubborn(BROKEN, GOOD)
    talk(teacher)
    assert teacher.state_dict() == {"asked": 1}


def test_after_the_last_try_the_current_design_stays():
    attempts = talk(Stubborn(BROKEN, UNKNOWN, GOOD), tries=2)
    assert len(attempts) == 2
    assert (attempts[-1].verdict.status, attempts[-1].verdict.design) == ("refused", DESIGN)


def test_an_answer_that_passes_is_asked_for_once():
    assert len(talk(Stubborn(GOOD, BROKEN))) == 1


def change(**changes: float) -> Delta:
    return Delta({3: edit("", **changes)})


def no_waits_among_many_holes(cell: Cell) -> bool:
    hole_ratio, wait = cell.values
    return not (wait and hole_ratio > 0.25)


def no_waits(cell: Cell) -> bool:
    return not cell.values[1]


def test_holes_that_leave_no_forced_wait_are_undone():
    bounds = Bounds(no_waits_among_many_holes)
    verdict = project_delta(DESIGN, change(hole_ratio=0.1, wait_ratio=-0.1), bounds, GuardSettings(floor=0.05))
    assert verdict.status == "projected"
    assert verdict.design.strata[3] == {"data_ratio": 0.5, "hole_ratio": 0.2, "wait_ratio": 0.4}
    assert "sizes.3: no boards with hole_ratio 0.3 and wait_ratio 0.4 can be drawn" in verdict.reasons
    assert "sizes.3.hole_ratio: proposed 0.3, applied 0.2" in verdict.reasons


def test_waits_that_do_not_exist_are_undone_first():
    design = design_of(EnvConfig.single(3, 2, 0.2, 0.0))
    verdict = project_delta(design, change(hole_ratio=0.1, wait_ratio=0.2), Bounds(no_waits), GuardSettings(floor=0.05))
    assert verdict.design.strata[3] == {"data_ratio": 1.0, "hole_ratio": 0.3, "wait_ratio": 0.0}


def test_where_not_even_the_current_boards_exist_the_proposal_is_refused():
    verdict = project_delta(DESIGN, change(hole_ratio=0.05), Bounds(no_waits), GuardSettings(floor=0.05))
    assert (verdict.status, verdict.design) == ("refused", DESIGN)
    assert verdict.reasons == [
        "sizes.3: no boards with hole_ratio 0.25 and wait_ratio 0.5 can be drawn; change hole_ratio or wait_ratio"
    ]


def test_the_lake_says_what_can_be_drawn():
    assert Lake(2).drawable(Cell(3, (0.2, True)))
    assert not Lake(1).drawable(Cell(3, (0.2, True))), "one agent never has to wait"
    assert can_draw(3, 2, 0.2, wait=True)
    assert can_draw(3, 2, 0.2, wait=False)
    assert not can_draw(3, 1, 0.2, wait=True), "one agent never has to wait"
    check_reachable(EnvConfig.single(3, 2, 0.2, 0.5), 0)


@pytest.mark.parametrize("seed", range(20))
def test_the_difference_of_two_designs_leads_from_one_to_the_other_and_back(seed):
    rng, names = np.random.default_rng(seed), ("data_ratio", "hole_ratio", "wait_ratio")

    def row() -> dict[str, float]:
        return dict(zip(names, (rng.uniform(size=3) * (1, 0.5, 1)).tolist(), strict=True))

    drawn = [normalize_rows({size: row() for size in (3, 4, 7, 10)}, SPACE) for _ in range(2)]
    old, new = (Design(rows) for rows in drawn)
    assert edit_design(old, derive_delta(old, new.strata, "there", SPACE), SPACE) == new.strata
    assert edit_design(new, derive_delta(new, old.strata, "back", SPACE), SPACE) == old.strata
    assert derive_delta(old, old.strata, "nowhere", SPACE) == Delta({})
    assert sum(round(row["data_ratio"] * 10**6) for row in new.strata.values()) == 10**6
