"""The evidence shows what its modules switch on, and nothing else."""

import msgspec
from engineers import view

from core_jax.config import EnvConfig, SizeConfig
from core_jax.outcomes import Outcomes
from engineer.evidence import GUIDELINE, Evidence, Round
from engineer.modules import Modules

OUTCOMES = Outcomes(10, 4, 3, 2, {"hole": 5, "swap_conflict": 1}, 5, 1)


def config(hole_ratio: float) -> EnvConfig:
    return EnvConfig({5: SizeConfig(0.5, hole_ratio, 0.2), 8: SizeConfig(0.5, hole_ratio, 0.2)})


PAST = [Round(config(hole_ratio), {5: OUTCOMES, 8: OUTCOMES}) for hole_ratio in (0.0, 0.1, 0.2)]


def shown(**switches: bool) -> Evidence:
    return view(Modules(**switches), config(0.3), {5: OUTCOMES, 8: OUTCOMES}, PAST, 3, rounds=4)


def test_by_default_everything_is_shown_but_the_round_0_config():
    evidence = shown()
    assert evidence.config == config(0.3)
    assert evidence.outcomes == {5: OUTCOMES, 8: OUTCOMES}
    assert evidence.guideline == GUIDELINE
    assert evidence.history == PAST[1:]
    assert (evidence.round, evidence.rounds) == (3, 4)


def test_the_default_config_comes_first_where_it_is_asked_for():
    assert shown(default_in_history=True).history == PAST


def test_history_off_leaves_no_earlier_round():
    assert shown(history=False, default_in_history=True).history == []


def test_in_round_0_there_is_no_history_to_show():
    assert view(Modules(default_in_history=True), config(0.3), {}).history == []


def test_failures_off_leaves_no_outcome_anywhere():
    evidence = shown(failures=False)
    assert evidence.outcomes == {}
    assert [old.outcomes for old in evidence.history] == [{}, {}]
    assert [old.config for old in evidence.history] == [old.config for old in PAST[1:]]


def test_guideline_and_bookkeeping_are_switches():
    evidence = shown(guideline=False, bookkeeping=False)
    assert evidence.guideline == ""
    assert (evidence.round, evidence.rounds) == (None, None)


def test_evidence_survives_json():
    assert msgspec.json.decode(msgspec.json.encode(shown()), type=Evidence) == shown()
