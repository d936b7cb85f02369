"""Studies whose seeds begin with random configs of their own."""

from pathlib import Path

from lakewright.experiments.studies.study import plan_study

SPEC = Path(__file__).with_name("study.toml")
FIRST = "[first_configs]\ncount = 2\nhole_ratios = [0.2]\nwait_ratios = [0.5]\n[arms]"
CELLS = ", ".join(f"{size} = {{ data_ratio = 0.25, hole_ratio = 0.2, wait_ratio = 0.5 }}" for size in (3, 4, 5, 6))


def test_all_arms_of_a_seed_begin_with_its_random_config_unless_they_name_another(tmp_path):
    path = tmp_path / "spec.toml"
    own = f"{FIRST}\nown = {{ seeds = [0, 1], env.sizes = {{ {CELLS} }} }}"
    path.write_text(SPEC.read_text().replace("[arms]", own))
    first = {run.name: run.settings.design for run in plan_study(path).runs}
    assert first["fixed-s0"] == first["random-s0"]
    assert first["fixed-s0"] != first["fixed-s1"]
    assert first["own-s0"] == first["own-s1"]
    assert {row["data_ratio"] for row in first["own-s0"].values()} == {0.25}
