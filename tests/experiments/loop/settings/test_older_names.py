"""Settings under the names they had before are read as before: words, presets, specs of studies and recorded runs.

`older_names.json` has digests of what the version before (commit eae564ae) understood of boards and guard, and what it
recorded.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lakewright.experiments.loop.records.run_folder import CLAIM
from lakewright.experiments.loop.settings.older_settings import USUAL_LIMITS, rename_word
from lakewright.experiments.loop.settings.run_settings import RunSettings, load_settings
from lakewright.experiments.studies.study import complete_plan, plan_study
from tests.support.processes.commands import HOUSE

OLDER = json.loads(Path(__file__).with_name("older_names.json").read_text())
TODAY = ("design", "warmup_design", "agents", "warmup_agents", "guard")
SLOW = re.compile("arena|blind-spot|frontier|random-start|studies/trial|unseen")  # they draw first designs of boards
SPECS = [pytest.param(name, marks=pytest.mark.deep if SLOW.search(name) else ()) for name in OLDER["specs"]]


def effect_of(settings: RunSettings) -> dict[str, Any]:
    """The settings that had other names, with all limits of the guard, those of the environment too."""
    raw = msgspec.to_builtins(settings, str_keys=True)
    raw = {name: raw[name] for name in (*TODAY, "environment", "teams", "seed")}
    if not settings.lake:
        raw |= {"agents": 2, "warmup_agents": 2}
    for name, usual in USUAL_LIMITS[settings.lake].items():
        raw["guard"][name] = usual | raw["guard"][name]
    return raw


def digest(value: Any) -> str:
    """A short name of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", OLDER["words"])
def test_words_of_a_command_mean_what_they_meant(name):
    preset, words, meant = OLDER["words"][name]
    assert digest(effect_of(load_settings(preset, words))) == meant


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_plans_the_runs_that_it_planned(name, monkeypatch):
    monkeypatch.chdir(HOUSE)
    plan = plan_study(HOUSE / name)
    runs = ([planned.arm, planned.seed, effect_of(planned.settings)] for planned in plan.runs)
    assert digest([effect_of(plan.start), *runs]) == OLDER["specs"][name]


@pytest.mark.parametrize("preset", OLDER["recorded"])
def test_a_recorded_run_is_the_run_of_the_same_command_today(preset, tmp_path):
    settings = load_settings(preset, ["environment=sums.py:Sums"] if preset == "text" else [])
    raw = msgspec.to_builtins(settings, str_keys=True)
    older = {name: value for name, value in raw.items() if name not in TODAY} | OLDER["recorded"][preset]
    if settings.codec == "tokens":  # which does not use it: the default of another version is no other run
        older["text"] = older["text"] | {"batch": 16}
    if settings.codec == "bytes":  # likewise, and the preset set it
        older["text"] = older["text"] | {"batch": 256}
    (tmp_path / CLAIM.file).write_text(json.dumps({"format": 2, "settings": older}))
    assert CLAIM.read_work(tmp_path).settings == settings
    plan = {"spec": {}, "start": older, "runs": [{"arm": "a", "seed": 0, "settings": older}]}
    there = complete_plan(plan)
    assert msgspec.convert(there["start"], RunSettings) == settings
    assert msgspec.convert(there["runs"][0]["settings"], RunSettings) == settings


def test_a_run_in_bytes_that_recorded_a_batch_is_the_run_of_the_same_command_today(tmp_path):
    settings = load_settings("text", ["environment=sums.py:Sums"])
    raw = msgspec.to_builtins(settings, str_keys=True)
    raw["text"]["batch"] = 256
    (tmp_path / CLAIM.file).write_text(json.dumps({"format": 2, "settings": raw}))
    assert CLAIM.read_work(tmp_path).settings == settings


def test_names_of_today_are_left_alone():
    for word in ("design.3.hole_ratio=0.2", "guard.floor=0.1", "guard={floor=0.1}", "grpo.steps=1", "envelope=1"):
        assert rename_word(word, lake=True) == [word]
