"""A board network in the closed loop: warmed up and trained by GRPO on teams, never on the boards to exclude."""

import msgspec
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.generator import generate
from lakewright.core_jax.rows import board_of, read_all, rows_of, symmetric_fingerprint, write_rows
from lakewright.experiments.loop.records.history import count_excluded
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.redesign.teacher_models import make_run_tools
from lakewright.experiments.loop.settings import run_settings
from lakewright.experiments.viewer.run_table import as_json, tabulate_run
from lakewright.policy.model_settings import BoardNetworkSettings, ModelSettings
from lakewright.policy.models import answers_only_plans, load_checkpoint
from lakewright.policy.training import GrpoSettings, WarmupSettings
from tests.support.models.tiny_policy import tiny_run
from tests.support.refusals import refused
from tests.support.samples.tiny_runs import run_loop

pytestmark = pytest.mark.deep  # whole runs

THREE = EnvConfig({3: SizeConfig(1.0, 0.2, 0.5)})  # so few boards that a run meets many of them again
NETWORK = ModelSettings(architecture="board", board=BoardNetworkSettings(channels=4, iterations=1, hidden=8, layers=1))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    """The finished run of a board network, with boards to exclude."""
    folder = tmp_path_factory.mktemp("networks")
    write_rows(folder / "excluded.jsonl", rows_of(generate(THREE, 5, 150), THREE))
    settings = tiny_run(
        THREE,
        model=NETWORK,
        teacher="rules",
        stages=1,
        exclude=str(folder / "excluded.jsonl"),
        warmup=WarmupSettings(steps=16, batch=8, fresh=True),
        grpo=GrpoSettings(steps=2, prompts=8, group=2, fresh=True),
    )
    found = RunFolder(folder / "run")
    run_loop(settings, found)
    return found


def test_its_checkpoints_are_board_networks(run):
    for stage in (run.warmup, run.stage(0)):
        model, _ = load_checkpoint(stage.checkpoint)
        assert answers_only_plans(model)


def test_it_is_never_trained_on_an_excluded_board_nor_on_a_symmetric_one_and_says_how_many_it_met(run):
    excluded = {symmetric_fingerprint(board_of(row)) for row in read_all(run.folder.parent / "excluded.jsonl")}
    trained = read_all(run.stage(0).boards)
    assert trained
    assert not [row.id for row in trained if symmetric_fingerprint(board_of(row)) in excluded]
    assert count_excluded(run) > 0
    assert as_json(run)["excluded_boards_drawn_and_replaced"] == count_excluded(run)
    assert f"drawn in training, and replaced: {count_excluded(run)}" in tabulate_run(run)


def test_it_is_refused_as_an_engineer(run, monkeypatch):
    """Before the run begins, where the model's folder is there; else, as of a hub, when the teacher is made."""
    with refused("teacher is self", "start", kind=ValueError):
        msgspec.structs.replace(run.settings(), teacher="self", start=str(run.warmup.checkpoint))
    monkeypatch.setattr(run_settings, "is_board_network", lambda start: False)
    settings = msgspec.structs.replace(run.settings(), teacher="self", start=str(run.warmup.checkpoint))
    with refused("board network", "teacher"):
        make_run_tools(settings, run, run.stage(0), recorded=False)
