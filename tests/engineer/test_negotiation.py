"""A refusal goes back to the engineer with its reason; the guard asks the lake what there is."""

import jax
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.generator import can_draw, check_reachable
from lakewright.engineer.delta import ConfigDelta, SizeEdit, difference, edited, normalised
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.guard import GuardSettings, judge
from lakewright.engineer.negotiation import negotiate
from lakewright.engineer.proposal import Proposal, decided
from tests.support.samples.evidence import everything

CONFIG = EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 5: SizeConfig(0.5, 0.25, 0.5)})
GOOD = decided(ConfigDelta({3: SizeEdit(hole_ratio=-0.05, reason="")}))
UNKNOWN = decided(ConfigDelta({7: SizeEdit(reason="")}))
BROKEN = Proposal("", "no", None, "answer: not JSON; answer with one JSON object")


class Stubborn:
    """Gives its answers one after the other, and counts in its state how often it was asked."""

    def __init__(self, *answers: Proposal) -> None:
        self.answers, self.heard, self.asked = list(answers), [], 0

    def propose(self, evidence: Evidence, config: EnvConfig, key: jax.Array) -> Proposal:
        self.heard.append(evidence.refusals)
        self.asked += 1
        return self.answers.pop(0)

    def state_dict(self) -> dict:
        return {"asked": self.asked}

    def load_state_dict(self, state: dict) -> None:
        self.asked = state["asked"]


def talk(teacher: Stubborn, tries: int = 3):
    anything = everything(CONFIG, {})
    return negotiate(teacher, anything, CONFIG, jax.random.key(0), GuardSettings(tries=tries), lambda *cell: True)


def test_a_refused_answer_goes_back_with_its_reason_until_one_passes():
    teacher = Stubborn(BROKEN, UNKNOWN, GOOD)
    attempts = talk(teacher)
    assert [attempt.verdict.status for attempt in attempts] == ["refused", "refused", "accepted"]
    size = "edits.7: map size 7 is not in the config; choose from 3, 5"
    assert teacher.heard == [[], [BROKEN.error], [BROKEN.error, size]]
    assert attempts[-1].verdict.config.sizes[3].hole_ratio == 0.15


def test_a_refused_try_leaves_no_trace_in_the_state():
    teacher = Stubborn(BROKEN, GOOD)
    talk(teacher)
    assert teacher.state_dict() == {"asked": 1}


def test_after_the_last_try_the_current_config_stays():
    attempts = talk(Stubborn(BROKEN, UNKNOWN, GOOD), tries=2)
    assert len(attempts) == 2
    assert (attempts[-1].verdict.status, attempts[-1].verdict.config) == ("refused", CONFIG)


def test_an_answer_that_passes_is_asked_for_once():
    assert len(talk(Stubborn(GOOD, BROKEN))) == 1


def edit(**changes: float) -> ConfigDelta:
    return ConfigDelta({3: SizeEdit(**changes, reason="")})


def no_waits_among_many_holes(size: int, agents: int, hole_ratio: float, wait: bool) -> bool:
    return not (wait and hole_ratio > 0.25)


def no_waits(size: int, agents: int, hole_ratio: float, wait: bool) -> bool:
    return not wait


def test_holes_that_leave_no_forced_wait_are_taken_back():
    verdict = judge(CONFIG, edit(hole_ratio=0.1, wait_ratio=-0.1), GuardSettings(), no_waits_among_many_holes)
    assert verdict.status == "projected"
    assert verdict.config.sizes[3] == SizeConfig(0.5, 0.2, 0.4)
    assert "sizes.3: no boards with hole_ratio 0.3 and wait_ratio 0.4 can be drawn" in verdict.reasons
    assert "sizes.3.hole_ratio: proposed 0.3, applied 0.2" in verdict.reasons


def test_waits_that_do_not_exist_are_taken_back_first():
    config = EnvConfig.single(3, 2, 0.2, 0.0)
    verdict = judge(config, edit(hole_ratio=0.1, wait_ratio=0.2), GuardSettings(), no_waits)
    assert verdict.config.sizes[3] == SizeConfig(1.0, 0.3, 0.0)


def test_where_not_even_the_current_boards_exist_the_proposal_is_refused():
    verdict = judge(CONFIG, edit(hole_ratio=0.05), GuardSettings(), no_waits)
    assert (verdict.status, verdict.config) == ("refused", CONFIG)
    assert verdict.reasons == [
        "sizes.3: no boards with hole_ratio 0.25 and wait_ratio 0.5 can be drawn; change hole_ratio or wait_ratio"
    ]


def test_the_generator_says_what_can_be_drawn():
    assert can_draw(3, 2, 0.2, wait=True)
    assert can_draw(3, 2, 0.2, wait=False)
    assert not can_draw(3, 1, 0.2, wait=True), "one agent never has to wait"
    check_reachable(EnvConfig.single(3, 2, 0.2, 0.5), 0)


@pytest.mark.parametrize("seed", range(20))
def test_the_difference_of_two_configs_leads_from_one_to_the_other_and_back(seed):
    rng = np.random.default_rng(seed)
    drawn = [
        normalised({size: SizeConfig(*(rng.uniform(size=3) * (1, 0.5, 1)).tolist()) for size in (3, 4, 7, 10)})
        for _ in range(2)
    ]
    old, new = (EnvConfig(sizes) for sizes in drawn)
    assert edited(old, difference(old, new.sizes, "there")) == new.sizes
    assert edited(new, difference(new, old.sizes, "back")) == old.sizes
    assert difference(old, old.sizes, "nowhere") == ConfigDelta({})
    assert sum(round(cell.data_ratio * 10**6) for cell in new.sizes.values()) == 10**6
