"""The best checkpoint of a run: named in the table, and by the path RUN/best wherever a model is named."""

import msgspec
import pytest

from lakewright.experiments.cli import main
from lakewright.experiments.viewer.run_table import as_json, tabulate_run
from lakewright.policy.models import load_model, save_checkpoint
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.samples.finished_run import begin, finish, redesign, validate
from tests.support.samples.tiny_runs import finished


def run_of(path, valid: tuple[int, ...]):
    """A finished run whose warm-up and stages have so many valid plans of the larger size."""
    run = begin(path, stages=len(valid) - 1)
    validate(run.warmup, valid[0])
    for number, count in enumerate(valid[1:]):
        redesign(run.stage(number))
        validate(run.stage(number), count)
    return run


def test_the_last_line_reports_the_best_policy_too_where_it_is_another(tmp_path):
    run = run_of(tmp_path / "run", (8, 32, 20))
    assert tabulate_run(run).endswith(f"% valid; best: {run.stage(0).checkpoint}, 60.0 % valid")
    run.link_best()
    last = tabulate_run(run).splitlines()[-1]
    assert last.startswith(f"final checkpoint: {run.stage(1).checkpoint}, ")
    assert last.endswith(f"% valid; best: {run.stage(0).checkpoint}, 60.0 % valid ({run.folder}/best)")
    found = msgspec.to_builtins(as_json(run))
    assert (found["checkpoint"], found["best"]) == (str(run.stage(1).checkpoint), str(run.stage(0).checkpoint))
    ended = finish(tmp_path / "ended")
    assert "best:" not in tabulate_run(ended)
    assert as_json(ended)["best"] == str(ended.stage(1).checkpoint)


@pytest.mark.parametrize(("valid", "best"), [((8, 8, 8), 1), ((30, 8, 20), -1), ((8, 30, 30), 1), ((8, 30, 20), 0)])
def test_the_best_policy_has_most_valid_plans_and_of_equals_is_the_last(tmp_path, valid, best):
    run = run_of(tmp_path / "run", valid)
    found = run.find_best()
    assert found
    assert found.folder == (run.stage(best) if best >= 0 else run.warmup).folder


def test_the_path_of_the_best_leads_to_its_checkpoint(tmp_path):
    run = run_of(tmp_path / "run", (8, 30, 20))
    for number in (0, 1):
        save_checkpoint(run.stage(number).checkpoint, tiny_model(number), tokenizer())
    for _ in range(2):
        run.link_best()
        assert (run.folder / "best").resolve() == run.stage(0).checkpoint
    model, _ = load_model(run.folder / "best", device="cpu")
    there, _ = load_model(run.stage(0).checkpoint, device="cpu")
    assert all((one == other).all() for one, other in zip(model.parameters(), there.parameters(), strict=True))
    moved = run.folder.rename(tmp_path / "moved")
    assert (moved / "best").resolve() == moved / "stage_00" / "checkpoint"


def test_a_run_lets_the_path_lead_to_its_best_after_each_stage():
    run = finished("random")
    best = run.find_best()
    assert best
    assert (run.folder / "best").resolve() == best.checkpoint.resolve()


def test_a_file_of_ones_own_named_best_is_left_alone(tmp_path):
    run = run_of(tmp_path / "run", (8, 30, 20))
    (run.folder / "best").write_text("mine")
    assert main(["report", str(run.folder)]) == 0
    assert (run.folder / "best").read_text() == "mine"
