"""A folder belongs to one run: other settings are refused with the words that continue the run that is there."""

import json
import re
import shlex

import msgspec
import pytest

from lakewright.experiments.loop.records.run_folder import CLAIM, FORMAT, RunConfig
from lakewright.experiments.loop.settings.run_settings import _convert_with
from tests.support.processes.commands import assert_refused
from tests.support.refusals import refused
from tests.support.samples.finished_run import finish

CHANGES = [
    ["grpo.steps=3", "teacher=rules"],
    ["seed=8", "budget=5000", "grpo.learning_rate=1e-05"],
    ["teacher_options.match=self", "teacher=matched_random"],
    ['start="true"', "codec=text", "warmup.steps=0"],
    ['design={"3" = {data_ratio = 1.0, hole_ratio = 0.1, wait_ratio = 0.5}}'],
    ["validation.hole_ratios=[0.1, 0.2]", "engineer.asked_first=true"],
]


@pytest.mark.parametrize("words", CHANGES, ids=str)
def test_a_run_with_other_settings_is_refused_with_the_words_that_continue_it(tmp_path, words):
    run = finish(tmp_path / "run")
    old = msgspec.to_builtins(run.settings(), str_keys=True)
    new = _convert_with(words, json.loads(json.dumps(old)), "words", lake=True)
    for one, other in ((run.settings(), new), (new, run.settings())):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CLAIM.__class__, "read_work", lambda claim, folder, one=one: RunConfig(FORMAT, one))
            with refused("config.json:", "run: settings.") as caught:
                run.check_settings(other)
        told = re.search("to continue that run add (.*), or choose another folder", str(caught.value))[1]
        raw = msgspec.to_builtins(other, str_keys=True)
        assert _convert_with(shlex.split(told), raw, "words", lake=True) == one
    run.check_settings(run.settings())


def test_a_dry_run_notices_that_the_folder_holds_another_run(tmp_path, capsys):
    run = finish(tmp_path / "run")
    before = run.folder.joinpath("config.json").read_bytes()
    told = ("config.json: holds another run: settings.", " more; to continue that run add ", "seed=7", "stages=2")
    for words in (["--dry-run"], []):
        assert_refused(capsys, ("run", "--out", run.folder, "--preset", "cpu", *words), *told)
    assert run.folder.joinpath("config.json").read_bytes() == before
