"""A model with damaged weights is refused by whatever reads it: runs, teachers, the viewer, planners, evaluations."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.boards.evaluation.answerers import ModelAnswerer
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.training.policy_models import load_engineer, load_policy
from lakewright.experiments.viewer.server.answering import load_of_run
from lakewright.policy.codecs import TextSettings
from lakewright.policy.models import save_checkpoint
from lakewright.policy.planning import load_planner
from tests.support.models.damaged_weights import damage_copy, damage_file, drop, poison
from tests.support.models.tiny_policy import tiny_model, tiny_run, tokenizer
from tests.support.samples.tiny_runs import finished, run_loop, state

NORM = "model.norm.weight"
READERS: dict[str, Callable[[Path, Path], object]] = {
    "a policy": lambda folder, _: load_policy(tiny_run(), folder),
    "an engineer": lambda folder, _: load_engineer(tiny_run(), folder),
    "the viewer": lambda folder, _: load_of_run(tiny_run(), folder),
    "a planner": lambda folder, _: load_planner(str(folder)),
    "an evaluation": lambda folder, _: ModelAnswerer(str(folder), TextSettings(), "cpu", None, 0),
    "a run's start": lambda folder, out: run_loop(tiny_run(start=str(folder)), RunFolder(out)),
}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save_checkpoint(folder / "whole", tiny_model(), tokenizer())
    return damage_copy(folder / "whole", folder / "damaged", poison(NORM, float("nan")))


@pytest.mark.parametrize("name", READERS)
def test_a_model_with_a_weight_that_is_no_number_is_refused(damaged, tmp_path, name):
    with pytest.raises(InputError) as refused:
        READERS[name](damaged, tmp_path / "out")
    assert str(refused.value).startswith(f"{damaged}/model.safetensors: tensor {NORM} holds nan; ")


def test_a_run_does_not_continue_from_a_damaged_checkpoint_and_loses_nothing(tmp_path):
    shutil.copytree(finished("fixed").folder, tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    shutil.rmtree(run.stage(1).folder)
    weights = run.stage(0).checkpoint / "model.safetensors"
    damage_file(weights, drop(NORM))
    before = state(run.stage(0).folder)
    with pytest.raises(InputError) as refused:
        run_loop(tiny_run(teacher="fixed"), run)
    assert str(refused.value).startswith(f"{weights}: tensor {NORM} is missing; ")
    assert state(run.stage(0).folder) == before
