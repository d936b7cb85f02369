"""A policy that is read again has the memory for itself: none of an earlier phase is still there."""

import gc

import pytest
from transformers import Qwen3ForCausalLM

from lakewright.experiments.loop.closed_loop import run
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.training import stage_validation
from lakewright.experiments.loop.training.lake_trainee import LakeTrainee
from tests.support.models.tiny_policy import tiny_run


@pytest.mark.deep
@pytest.mark.parametrize(
    ("teacher", "room", "work", "times"),
    [("rules", stage_validation, "load_policy", 3), ("self", LakeTrainee, "roll_out", 1)],
)
def test_no_policy_is_held_when_another_is_read(teacher, room, work, times, monkeypatch, tmp_path):
    """To be validated, after the warm-up and each of two stages; and for the trial of a proposal that a policy made."""
    held: list[int] = []
    do = getattr(room, work)

    def count_and_do(*given):
        held.append(sum(type(one) is Qwen3ForCausalLM for one in gc.get_objects()))
        return do(*given)

    monkeypatch.setattr(room, work, count_and_do)
    gc.collect()
    gc.disable()  # it would free some of them now and then
    try:
        run(tiny_run(teacher=teacher), RunFolder(tmp_path / "run"))
    finally:
        gc.enable()
    assert held == [0] * times
