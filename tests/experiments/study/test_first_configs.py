"""Studies whose seeds begin with random configs of their own."""

from pathlib import Path

from experiments.study.study import plan_of


def test_all_arms_of_a_seed_begin_with_its_random_config_unless_they_name_another():
    plan = plan_of(Path("random-start"))
    first = {run.name: run.settings.env for run in plan.runs}
    for seed in range(10):
        assert first[f"fixed-s{seed}"] == first[f"difficulty-s{seed}"] == first[f"self-trained-s{seed}"], f"seed {seed}"
    assert len({str(first[f"fixed-s{seed}"]) for seed in range(10)}) == 10
    assert len({str(first[f"best-static-s{seed}"]) for seed in range(10)}) == 1
