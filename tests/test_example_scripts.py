"""Scripts of docs/examples that are for many machines or long runs: they run to their end with little to do."""

import runpy
import subprocess
import sys
from contextlib import nullcontext

import pytest

from lakewright.core_jax.rows import write_rows
from lakewright.experiments.jobs.executors import Serial
from lakewright.policy.models import save_checkpoint
from lakewright.policy.training import WarmupSettings, warm_up
from tests.support.boards.generated_rows import rows
from tests.support.models.tiny_policy import board_play, tasks, tiny_model, tokenizer
from tests.support.processes.commands import HOUSE, surroundings
from tests.support.samples.tiny_sweep import SPEC, TOML

EXAMPLES = HOUSE / "docs" / "examples"


def load_script(name: str, **changes: object) -> dict[str, object]:
    """What a script defines, with changed constants."""
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    found["main"].__globals__.update(changes)
    return found


@pytest.mark.parametrize(
    ("name", "changes", "printed"),
    [
        ("cost_of_a_board", {"SIZES": (3,), "HOLE_RATIOS": (0.0,), "BOARDS": {2: 32}}, "| 3x3 | "),
        ("sweep", {"SPEC": SPEC, "Local": lambda: nullcontext(Serial())}, "3x3, holes 0.4: solvable "),
        ("hundred_machines", {"MACHINES": 3}, "6 shards in 3 shares"),
    ],
    ids=["cost_of_a_board", "sweep", "hundred_machines"],
)
def test_a_script_of_sweeps_runs_with_a_few_boards(name, changes, printed, tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(TOML)
    main = load_script(name, PLAN=plan, **changes)["main"]
    main(*([] if name == "cost_of_a_board" else [tmp_path / "sweep"]))
    assert printed in capsys.readouterr().out


def test_the_learning_curve_has_a_line_for_each_copy_of_a_training(tmp_path, monkeypatch, capsys):
    kept = tmp_path / "training.safetensors"

    def stop(step: int, loss: float) -> None:
        if step == 8:
            raise KeyboardInterrupt

    how = {"state_file": kept, "pause": lambda took: 0.0}
    with pytest.raises(KeyboardInterrupt):
        warm_up(tiny_model(), board_play(), tasks(), [], WarmupSettings(steps=16, batch=4), 3, stop, **how)
    save_checkpoint(tmp_path / "checkpoint", tiny_model(), tokenizer())
    write_rows(tmp_path / "boards.jsonl", rows()[:4])
    words = [str(tmp_path / "boards.jsonl"), str(tmp_path / "checkpoint"), str(kept)]
    monkeypatch.setattr(sys, "argv", ["learning_curve.py", *words])
    load_script("learning_curve", HORIZON=8)["main"]()
    assert "steps  2 agents " in capsys.readouterr().out


@pytest.mark.deep
def test_the_load_of_a_study_on_a_thousand_nodes_is_counted():
    script = [sys.executable, EXAMPLES / "thousand_nodes.py"]
    done = subprocess.run(script, capture_output=True, text=True, check=True, env=surroundings())
    rows = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("|")]
    assert rows[2:] == ["1", "10", "100", "1000"]


@pytest.mark.deep
def test_a_study_in_the_trainer_of_trl_goes_on_after_its_last_finished_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(HOUSE)
    script = load_script("trl_study", SEEDS=(0, 1))
    study = script["STUDIES"]["largest"]._replace(tokens=600, warmup=2, problems=4, every=4, held_out=8, test=16)
    script["main"](study, tmp_path)
    assert "gain - fixed: " in capsys.readouterr().out
    first, killed = tmp_path / "runs" / "fixed-s0.json", tmp_path / "runs" / "gain-s1.json"
    begun = first.stat().st_mtime_ns
    killed.unlink()
    script["main"](study, tmp_path)
    assert killed.exists()
    assert first.stat().st_mtime_ns == begun
