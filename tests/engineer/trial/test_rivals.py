"""Any teacher may give several proposals: asked again where it draws, else its change taken further or less far."""

import jax
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import BoardOutcomes
from lakewright.engineer.guard import GuardSettings, limit_round
from lakewright.engineer.steps import negotiate, stretch_delta
from lakewright.engineer.teachers import make_teacher
from lakewright.experiments.environments.lake import design_of
from tests.support.samples.evidence import ROOMY, SPACE, everything, rollouts

DESIGN = design_of(EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 5: SizeConfig(0.5, 0.2, 0.5)}))
EVIDENCE = everything(
    DESIGN,
    {3: BoardOutcomes(100, 90, 0, 0, {}, 0, 0), 5: BoardOutcomes(100, 10, 0, 0, {}, 0, 0)},
    groups=[rollouts(3, informative=4, advantage=0.3), rollouts(5, informative=8, advantage=0.1)],
)


def asked(teacher, proposals: int):
    return negotiate(teacher, EVIDENCE, DESIGN, ROOMY, jax.random.key(0), GuardSettings(), proposals)[-1].proposal


@pytest.mark.parametrize("name", ["rules", "random", "sec", "thompson", "adarft", "static"])
def test_a_teacher_gives_as_many_different_proposals_as_wanted(name):
    one, many = asked(make_teacher(name), 1), asked(make_teacher(name), 4)
    assert one.candidates == ()
    assert one.delta == many.delta
    deltas = [many.delta, *many.candidates]
    assert len(deltas) == 4
    assert all(deltas.count(delta) == 1 for delta in deltas)


@pytest.mark.parametrize("name", ["sec", "thompson", "adarft"])
def test_asking_again_leaves_no_trace_in_the_state(name):
    once, again = make_teacher(name), make_teacher(name)
    asked(once, 1)
    asked(again, 4)
    assert once.state_dict() == again.state_dict()


def test_a_teacher_that_proposes_nothing_has_no_rivals():
    assert asked(make_teacher("fixed"), 4).candidates == ()


def test_a_stretched_change_stays_a_change_that_can_be_written():
    delta = asked(make_teacher("static"), 1).delta
    assert delta is not None
    for edit in stretch_delta(delta, 100.0, SPACE).edits.values():
        assert edit.changes.keys() == {column.name for column in SPACE.columns}
        assert all(-1 <= change <= 1 for change in edit.changes.values())


def test_the_trust_region_is_as_wide_as_the_model_is_certain():
    def reach(settings: GuardSettings) -> list[float]:
        return [settings.reach_of(column) for column in SPACE.columns]

    settings = GuardSettings(reach={"data_ratio": 0.15, "hole_ratio": 0.1, "wait_ratio": 0.25}, widen=4.0)
    assert limit_round(settings, SPACE, 0.0) == settings
    assert reach(GuardSettings(widen=4.0)) == reach(settings), "what the space says"
    assert reach(limit_round(settings, SPACE, 0.5)) == pytest.approx([0.45, 0.3, 0.75])
    assert reach(limit_round(settings, SPACE, 1.0)) == pytest.approx([0.75, 0.5, 1.25])
    assert reach(limit_round(GuardSettings(widen=0), SPACE, 1.0)) == reach(GuardSettings())
