"""The name `pretrained`: it means the weights of the package, which load and plan wherever the command is run."""

import shutil
from pathlib import Path

import torch

from lakewright.core_jax.rows import verify_rows
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.policy.models import PRETRAINED, is_on_hub, load_checkpoint, resolve_place, save_checkpoint
from lakewright.policy.planning import load_planner
from tests.support.boards.generated_rows import rows
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.refusals import refused

HERE = Path(resolve_place(PRETRAINED))


def test_the_pretrained_policy_plans_better_than_chance():
    some = rows()[:24]
    plans = load_planner(PRETRAINED).plans(some)
    found = [(row, plan) for row, plan in zip(some, plans, strict=True) if plan]
    assert len(found) > 12, "more than half of small boards for two agents"
    assert all(verdict.valid for verdict in verify_rows(*map(list, zip(*found, strict=True))))


def test_a_folder_of_that_name_does_not_replace_it_and_is_reached_by_its_path(tmp_path, monkeypatch):
    save_checkpoint(tmp_path / "pretrained", tiny_model(), tokenizer())
    monkeypatch.chdir(tmp_path)
    ours, own = load_checkpoint("pretrained")[0], load_checkpoint("./pretrained")[0]
    assert type(ours).__name__ == "BoardNetwork"
    assert type(own) is type(load_checkpoint(Path("pretrained"))[0]) is type(tiny_model())


def test_what_must_be_fetched_from_the_hub_is_known_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_on_hub("Qwen/Qwen3-4B")
    (tmp_path / "Qwen" / "Qwen3-4B").mkdir(parents=True)
    for name in ("Qwen/Qwen3-4B", PRETRAINED, "runs/a/checkpoint", ""):
        assert not is_on_hub(name), name


def test_weights_that_the_package_lacks_are_reported_in_a_line(tmp_path, monkeypatch):
    shutil.copytree(HERE, tmp_path / "pretrained", ignore=shutil.ignore_patterns("*.safetensors"))
    monkeypatch.setattr("lakewright.policy.models.folders.__file__", str(tmp_path / "models" / "folders.py"))
    with refused("pretrained:", "model.safetensors"):
        load_checkpoint(PRETRAINED)


def test_the_weights_are_as_large_as_a_repository_may_hold_and_come_with_their_card():
    names = {file.name for file in HERE.iterdir()}
    assert names >= {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert (HERE / "model.safetensors").stat().st_size < 5_000_000
    prepare_libraries()
    assert all(weight.isfinite().all() and weight.dtype == torch.float32 for weight in load_weights())


def load_weights():
    return list(load_checkpoint(PRETRAINED)[0].parameters())


def test_a_run_starts_from_it_but_not_with_itself_as_the_engineer():
    assert load_settings("cpu-30", ["start=pretrained", "teacher=difficulty"]).start == PRETRAINED
    with refused("start pretrained", "plans"):
        load_settings("cpu", ["start=pretrained", "teacher=self"])
