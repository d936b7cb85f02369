"""`lakewright settings`: every setting of a run with its type, its default in a preset and its meaning."""

import subprocess
import sys

import msgspec
import pytest

from lakewright.engineer.teachers import TEACHERS
from lakewright.experiments.cli import main
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.experiments.loop.settings.setting_list import Setting, list_settings
from lakewright.experiments.preset_files import list_presets
from tests.support.processes.commands import surroundings

FOUND = {setting.name: setting for setting in list_settings("cpu")}


def test_settings_are_listed_and_checked_without_the_libraries_of_the_work():
    program = """
import sys
from lakewright.experiments.cli import main
assert main(["settings"]) == 0
assert main(["run", "--out", "never", "grpo.steps=0"]) == 2
assert main(["run", "--out", "never", "teacher=alp_gmm", "sampler.name=plr", "sampler.options.mix=9"]) == 2
heavy = {"jax", "flax", "torch", "transformers", "datasets", "trl", "scipy", "sklearn", "numba"} & sys.modules.keys()
assert not heavy, f"settings are read with {sorted(heavy)}"
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=surroundings(), check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "grpo.steps: 0 does not fit" in ended.stderr


def test_every_setting_has_a_meaning_and_a_type():
    assert len(FOUND) > 100
    for setting in FOUND.values():
        assert setting.type, setting.name
        assert setting.meaning.endswith("."), f"{setting.name} has no meaning: write a docstring below its field"


def test_every_field_of_the_settings_is_listed():
    def names(part: object, path: str) -> list[str]:
        if not isinstance(part, msgspec.Struct):
            return [path]
        return [name for field in part.__struct_fields__ for name in names(getattr(part, field), f"{path}.{field}")]

    for name in names(load_settings("cpu", []), ""):
        assert any(listed.startswith(name[1:]) for listed in FOUND), name


@pytest.mark.parametrize(
    ("name", "type", "default"),
    [
        ("grpo.group", "whole number >= 2", 8),
        ("grpo.average", "number 0 to 1", 0.9),
        ("grpo.minutes", "number > 0 or none", None),
        ("codec", "bytes, text, tokens", "tokens"),
        ("teacher", ", ".join(TEACHERS), "self"),
        ("validation.hole_ratios", "list of: number 0 to 0.5", [0.1, 0.2, 0.3, 0.4]),
        ("agents", "whole number >= 1", 2),
        ("guard.reach", "table", {}),
        ("grpo.host.lora", "table or none", None),
        ("grpo.host.lora.rank", "whole number >= 1", 32),
        ("launch.more", "list of: text", []),
    ],
)
def test_a_setting_shows_its_range_or_choices_and_the_default_of_the_preset(name, type, default):
    assert (FOUND[name].type, FOUND[name].default) == (type, default)


@pytest.mark.parametrize("preset", list_presets())
def test_the_defaults_are_those_of_the_preset(preset):
    found = {setting.name: setting.default for setting in list_settings(preset)}
    settings = load_settings(preset, [])
    assert (found["stages"], found["grpo.steps"]) == (settings.stages, settings.grpo.steps)


def test_a_prefix_chooses_and_the_table_has_a_line_for_each(capsys):
    assert main(["settings", "rollback"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[2:] if not line.startswith(" ")] == [
        "rollback.enabled",
        "rollback.level",
        "rollback.weights",
    ]


def test_programs_read_the_settings_as_json(capsys):
    assert main(["settings", "guard", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=list[Setting])
    assert [setting for setting in FOUND.values() if setting.name.startswith("guard")] == found


def test_a_prefix_that_fits_no_setting_is_refused_with_the_choices(capsys):
    assert main(["settings", "speed"]) == 2
    line = capsys.readouterr().err
    assert line.startswith("lakewright: no setting begins with 'speed'; ")
    assert " choose from environment, design, warmup_design, agents, " in line
    assert line.count("\n") == 1
