"""What an engineer's folder costs a trainer, beside a step of TRL."""

import msgspec
import pytest

from tests.campaigns.__main__ import main
from tests.campaigns.rates import trainers

REAL = {name: getattr(trainers, name) for name in ("MODEL", "TRAINED")}  # as users run it


@pytest.fixture(autouse=True)
def short(monkeypatch):
    few = {"max_steps": 2, "per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 4}
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    changed = {"STEPS": ((2, 2), (3, 2)), "REPEATS": 2, "OUTCOMES": 64}
    for name, value in {**changed, "MODEL": {**small, "head_dim": 16}, "TRAINED": few}.items():
        monkeypatch.setattr(trainers, name, value)


def test_each_step_is_measured_in_a_fresh_folder_and_in_one_long_in_use(capsys):
    assert main(["trainers", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=trainers.TrainersBench)
    assert [(cost.problems, cost.answers, cost.outcomes) for cost in found.costs] == [
        *[(2, 2, 0), (3, 2, 0)],
        *[(2, 2, 64), (3, 2, 64)],
    ]
    assert all(cost.draw > 0 and cost.record > 0 for cost in found.costs)
    assert (found.trl.problems, found.trl.answers) == (2, 4)
    assert 0 < found.trl.folder_seconds < found.trl.seconds
    assert min(found.first_decision, found.decision) > 0
    table = trainers.format_table(found)
    assert f"({found.trl.share:.2%}) draw and record" in table
    assert "a decision on 64 new outcomes after 64 takes " in table


@pytest.mark.deep
def test_drawing_and_recording_take_less_than_a_hundredth_of_a_step_of_trl(monkeypatch, tmp_path):
    for name, value in REAL.items():
        monkeypatch.setattr(trainers, name, value)
    step = trainers._measure_trl(tmp_path)
    assert (step.problems, step.answers, step.parameters > 2_000_000) == (8, 8, True)
    assert step.share < 0.01
