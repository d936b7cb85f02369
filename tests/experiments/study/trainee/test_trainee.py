"""The study of the trainee, in seconds: every part once, a second call touches nothing, other settings are refused."""

import msgspec
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import pool
from lakewright.experiments.study.trainee import ARMS, KINDS, StudySettings, study_trainee, trainee_table
from tests.support.models.tiny_policy import SHORT, tiny_run
from tests.support.samples.tiny_runs import quick

ENV = EnvConfig.single(3, agents=2, hole_ratio=0.2, wait_ratio=0.5)
RUN = tiny_run(
    ENV,
    warmup=msgspec.structs.replace(SHORT["warmup"], fresh=True, steps=2),
    grpo=msgspec.structs.replace(SHORT["grpo"], fresh=True, oversample=2),
)
SETTINGS = StudySettings(RUN, seeds=1, boards=6, sft_rate=0.5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    with quick():
        return folder, study_trainee(SETTINGS, folder)


def test_every_arm_is_trained_and_measured_on_fresh_boards_of_both_kinds(finished):
    folder, result = finished
    assert set(result.parts[0]) == set(ARMS)
    for arm, part in result.parts[0].items():
        assert part.steps == 2, arm
        for kind in KINDS:
            found = pool(part.outcomes[kind].values())
            assert found.boards == 6, (arm, kind)
            assert found.wait_boards == 6 or kind == "natural"
        assert (folder / "seed0" / arm / "checkpoint" / "model.safetensors").exists()
    assert (folder / "result.svg").read_text().startswith("<?xml")
    assert "natural valid" in trainee_table(result)


def test_a_finished_study_is_read_and_not_made_again(finished):
    folder, result = finished
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("seed0/**/*")}
    assert study_trainee(SETTINGS, folder) == result
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("seed0/**/*")} == before


def test_a_part_that_was_killed_is_made_again(finished):
    folder, result = finished
    lost = folder / "seed0" / "sft"
    (lost / "part.json").unlink()
    assert study_trainee(SETTINGS, folder) == result, "its checkpoint is measured again, not trained again"


def test_other_settings_are_refused(finished):
    with pytest.raises(
        InputError, match=r"config\.json: holds another study of the trainee: boards is 6 there and 7 now"
    ):
        study_trainee(msgspec.structs.replace(SETTINGS, boards=7), finished[0])
