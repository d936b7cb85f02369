"""A policy that is read again has the memory for itself: none of an earlier phase is still there."""

import gc

import pytest
from transformers import Qwen3ForCausalLM

from lakewright.experiments.loop.closed_loop import run
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.training.lake_trainee import LakeTrainee
from tests.support.models.tiny_policy import tiny_run


@pytest.mark.deep
def test_no_policy_is_held_when_another_is_read_to_be_validated(monkeypatch, tmp_path):
    held: list[int] = []
    validate = LakeTrainee.validate_stage

    def count_and_validate(*given):
        held.append(sum(type(one) is Qwen3ForCausalLM for one in gc.get_objects()))
        validate(*given)

    monkeypatch.setattr(LakeTrainee, "validate_stage", count_and_validate)
    gc.collect()
    gc.disable()  # it would free some of them now and then
    try:
        run(tiny_run(teacher="rules"), RunFolder(tmp_path / "run"))
    finally:
        gc.enable()
    assert held == [0, 0, 0], "after the warm-up and after each of two stages"
