"""A run that is cut off at any instant resumes where it was, and ends where it would have ended."""

import math
import os
import signal
import time

import numpy as np
import pytest

from lakewright.core_jax.rows import read_all
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.policy.training import training_state
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.processes.killable import begin, code_of, server
from tests.support.processes.watching import wait_for
from tests.support.samples.tiny_runs import RULES, State, files, run_loop, state

# The file at whose sight the run is killed, a random moment later.
SIGNS = ("config.json", "warmup/.checkpoint.part", "stage_00/.scratch", "stage_01/env.json")
LONGEST_MOMENT = 0.2  # seconds


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The undisturbed run."""
    run = RunFolder(tmp_path_factory.mktemp("whole") / "run")
    run_loop(RULES, run)
    return run


@pytest.fixture
def loops():
    """The process whose children run loops."""
    with server("tiny loops") as process:
        yield process


def finished(run: RunFolder) -> State:
    """Bytes and time of the files of every part that counts, without what a cut left of a list: it is removed."""
    stages = [stage for stage in (run.warmup, run.stage(0), run.stage(1)) if stage.done.exists()]
    found = {f"{stage.folder.name}/{name}": seen for stage in stages for name, seen in state(stage.folder).items()}
    return {name: seen for name, seen in found.items() if not name.endswith(".part")}


def assert_kept(before: State, after: State) -> None:
    """What was finished is there as it was."""
    for name, content in before.items():
        assert after.get(name) == content, f"{name} of a finished stage was altered"


def assert_same_end(run: RunFolder, whole: RunFolder) -> None:
    """All files are there, no leftovers next to them, and the boards are those of the undisturbed run."""
    assert files(run.folder) == files(whole.folder)
    assert not [path for path in run.folder.rglob("*") if path.name.endswith((".part", ".scratch"))]
    assert read_all(run.validation) == read_all(whole.validation)
    for number in (0, 1):
        stage, expected = run.stage(number), whole.stage(number)
        assert read_all(stage.boards) == read_all(expected.boards)
        assert stage.design_file.read_bytes() == expected.design_file.read_bytes()


@pytest.mark.parametrize(
    "before", [pytest.param(True, id="before"), pytest.param(False, id="after", marks=pytest.mark.deep)]
)
def test_a_run_that_is_cut_off_at_every_renaming_ends_as_if_it_had_not_been(tmp_path, whole, before):
    run, kept, cuts = RunFolder(tmp_path / "run"), {}, 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_state, "SECONDS", -math.inf)  # within a stage, each step is kept
            patch.setattr(training_state, "SHARE", math.inf)
            cut_power(patch, renamings=4 + cuts % 8, before=before)
            try:
                run_loop(RULES, run)
                break
            except PowerCutError:
                cuts += 1
        assert_kept(kept, finished(run))
        kept = finished(run)
        assert cuts < 60, "the run does not get on"
    assert cuts > 10
    assert_kept(kept, finished(run))
    assert_same_end(run, whole)
    weights = [stage.checkpoint / "model.safetensors" for stage in (run.stage(1), whole.stage(1))]
    assert weights[0].read_bytes() == weights[1].read_bytes(), "a stage that is continued ends the same"
    for number in (0, 1):
        logs = [
            [stage.groups.read_bytes(), stage.rollouts.read_bytes()]
            for stage in (run.stage(number), whole.stage(number))
        ]
        assert logs[0] == logs[1], f"stage {number}: groups and plans of before and after the cuts"


@pytest.mark.deep
def test_a_run_that_is_killed_at_random_instants_ends_as_if_it_had_not_been(tmp_path, whole, loops):
    run, kept = RunFolder(tmp_path / "run"), {}
    moments = np.random.default_rng(0).uniform(0, LONGEST_MOMENT, len(SIGNS))
    for sign, moment in zip(SIGNS, moments, strict=True):
        child = begin(loops, run.folder)
        wait_for(run.folder / sign)
        time.sleep(moment)
        os.killpg(child, signal.SIGKILL)
        assert code_of(loops) == -signal.SIGKILL, f"the run ended before {sign} was seen"
        assert_kept(kept, finished(run))
        kept = finished(run)
    begin(loops, run.folder)
    assert code_of(loops) == 0
    assert_kept(kept, finished(run))
    assert_same_end(run, whole)
    assert_kept(kept, finished(run))
