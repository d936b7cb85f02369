"""The specs of studies: wrong ones are refused in a line, ours are found by name, and what runs first."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lakewright.core_jax.support import read_config
from lakewright.engineer.teachers import TEACHERS, ProportionalTeacher
from lakewright.experiments.cli import main
from lakewright.experiments.studies import runner as studying
from lakewright.experiments.studies.study import StudySpec, plan_study
from tests.support.processes.commands import HOUSE

SPEC = Path(__file__).with_name("study.toml")
CLOSED = sorted((Path(__file__).parents[3] / "docs" / "data" / "studies").glob("*/spec.toml"))


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """The spec with a line changed."""
    text = SPEC.read_text()
    assert old in text
    path = tmp_path / "spec.toml"
    path.write_text(text.replace(old, new))
    return path


WRONG = {
    "few configs": (
        "[arms]",
        "[first_configs]\ncount = 1\n[arms]",
        "first_configs.count is 1, too few for seed 1; set at least 2",
    ),
    "an unknown teacher": ('"random" }', '"oracle" }', "arms.random: teacher: 'oracle' is unknown; choose from fixed"),
    "an unknown setting": (
        '"random" }',
        '"random", tacher = 1 }',
        "arms.random: unknown field 'tacher' = 1; did you mean teacher? choose",
    ),
    "no arms": ("[arms]", "[configs]\ncount = 3\n[arms]", "name either arms or configs"),
    "an unknown baseline": ('"fixed"\n', '"fxied"\n', "baseline is 'fxied'; choose from fixed, random"),
    "a strange name": ("random = ", '"../up" = ', "'../up' cannot be the name of a folder"),
    "a name too long for a folder": ("random = ", f"{'a' * 300} = ", "has 300 letters; choose at most 100"),
    "a seed twice": ("[settings]", "seeds = [1, 2, 1]\n[settings]", "seeds lists 1 twice"),
    "a seed of an arm twice": ('"random" }', '"random", seeds = [3, 3] }', "arms.random: seeds lists 3 twice"),
    "no seeds": ("[settings]", "seeds = []\n[settings]", "seeds is empty; name at least one"),
    "no seeds of an arm": ('"random" }', '"random", seeds = [] }', "arms.random: seeds is empty; name at least one"),
    "another model": (
        '"random" }',
        '"random", model.hidden = 64 }',
        "arms.random: model differs, but all arms share it",
    ),
    "other teams": ('"random" }', '"random", teams = [2, 3] }', "arms.random: teams differs, but all arms share it"),
    "other lessons": (
        '"random" }',
        '"random", lessons.rule = "rules" }',
        "arms.random: lessons differs, but all arms share",
    ),
    "evidence that nobody learns to read": (
        'teacher = "random" }',
        'teacher = "self", evidence.preset = "v1" }',
        "arms.random: evidence.preset is v1, which the warm-up does not teach; set lessons.presets",
    ),
    "another budget": ('"random" }', '"random", budget = 9 }', "arms.random: budget differs, but all arms share it"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_spec_is_reported_in_a_line_before_anything_is_done(tmp_path, capsys, name):
    old, new, content = WRONG[name]
    path = changed(tmp_path, old, new)
    assert main(["study", str(path), "--out", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err
    assert content in line
    assert line.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_arms_of_most_seeds_run_first_and_all_of_a_seed_before_the_next():
    plan = plan_study(Path("cpu"))
    ordered = studying.in_order(plan.runs)
    assert sorted(run.name for run in ordered) == sorted(run.name for run in plan.runs)
    wide = [run for run in ordered if run.arm in ("fixed", "rules", "self-v6")]
    assert [run.seed for run in wide] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    names = [run.arm for run in ordered]
    assert names.index("sec") > max(place for place, name in enumerate(names) if name == "fixed")


def test_the_arena_has_every_arm_of_its_analysis():
    plan = plan_study(Path("arena"))
    seeds: dict[str, set[int]] = {}
    for run in plan.runs:
        seeds.setdefault(run.arm, set()).add(run.seed)
    concluded = {*("fixed", "best-static", "rules", "self", "self-shuffled", "difficulty", "self-trained", "dapo")}
    assert {arm for arm, found in seeds.items() if found == set(range(10))} >= concluded
    assert all(found >= {0, 1, 2} for found in seeds.values())
    gates = {f"gate-{g}-{r}" for g in ("none", "guard", "guard-trial") for r in ("none", "learnability", "gain")}
    assert gates | {f"self-v{number}" for number in range(1, 6)} | {"self-rl-details", "base"} <= seeds.keys()
    rivals = {"rlve", "dump", "sampler-vcrl", "sampler-pcl", "sfl", "thompson", "adarft", "sec", "alp-gmm"}
    assert rivals <= seeds.keys()
    taught = plan.start.taught.rule
    assert isinstance(taught, ProportionalTeacher)
    options = next(run.settings.teacher_options for run in plan.runs if run.arm == "proportional")
    assert options == {"objective": taught.objective}, "the rule that the engineer is taught"
    begun = {run.seed: run.settings.design for run in plan.runs if run.arm == "fixed"}
    assert len(set(map(str, begun.values()))) == 10, "a random config for each seed"
    assert all(run.settings.design == begun[run.seed] for run in plan.runs if run.arm not in ("uniform", "best-static"))


def test_our_specs_are_found_by_name_and_name_all_presets_and_teachers(capsys, tmp_path):
    plan = plan_study(Path("cpu"))
    assert {run.settings.evidence.preset for run in plan.runs} >= {"v1", "v2", "v3", "v4", "v5", "v6", "rl_details"}
    seeds = {arm: [run.seed for run in plan.runs if run.arm == arm] for arm in ("fixed", "rules", "self-v6", "sec")}
    assert seeds == {"fixed": [0, 1, 2], "rules": [0, 1, 2], "self-v6": [0, 1, 2], "sec": [0]}
    elsewhere = {"gain", "proportional", "forecast"}  # run by other studies
    rivals = {"coaching", "difficulty_pools", "learning_progress"}  # rules of other projects, for other environments
    assert {run.settings.teacher for run in plan.runs} == set(TEACHERS) - elsewhere - rivals
    assert main(["study", "gpu", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "study 'gpu' is unknown; give a file, or choose from arena, cpu, frontier-early, random-start, trial" in said


each_closed = pytest.mark.parametrize("path", CLOSED, ids=lambda path: path.parent.name)


@each_closed
def test_the_spec_of_a_closed_study_can_be_read(path):
    spec = read_config(path, StudySpec)
    assert spec.arms or spec.configs


@pytest.mark.deep
@each_closed
def test_a_closed_study_can_still_be_run(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", ModuleType("reasoning_gym"))  # a plan draws no problems
    assert plan_study(path).runs


def test_the_spec_of_the_page_on_own_teachers_is_the_file_that_it_names(monkeypatch):
    monkeypatch.chdir(HOUSE)
    spec = Path("docs/examples/own_teacher.toml")
    page = Path("docs/own-teacher.md").read_text()
    assert [line.split("#")[0].strip() for line in re.search(r"```toml\n(.*?)```", page, re.S)[1].splitlines()] == [
        line.strip() for line in spec.read_text().splitlines() if not line.startswith("#")
    ]
    assert {(run.arm, run.seed) for run in plan_study(spec).runs} == {
        (arm, seed) for arm in ("fixed", "longer") for seed in range(3)
    }
