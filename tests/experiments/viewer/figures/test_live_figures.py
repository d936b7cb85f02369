"""Each figure of a run in progress, worked out again from its logs, its records and the clock.

Where figures of a run in progress are shown: its page in the viewer (steps and tokens a second, what is left of the
training and of the run, the bar of the stage in training). They are worked out from the lines of the log that grows,
the time since it was begun, the settings, and the tokens and seconds in the records of the stages before.
"""

import json
import os
import re
import time
from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.support import write_json
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Resumed
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.training import GrpoSettings
from tests.support.samples.finished_text_run import WRONG, redesign_text
from tests.support.samples.recorded_run import environment, record_run, settings
from tests.support.servers.viewer_client import client, page
from tests.support.tools.raw_run import record, tokens_until

STAGES, STEPS, MINUTES = 4, 40, 10.0
SECONDS = 80.0  # that the training of stage 1 has gone on
LATER = ("evidence", "difficulty", "proposal", "trial", "next")
TOKENS = [31, 44, 27, 52, 38, 29, 47, 33, 41, 36]  # of each step so far


def begin(path: Path, **changes: object) -> RunFolder:
    """A run whose stage 1 is trained."""
    how = msgspec.structs.replace(settings(**changes), stages=STAGES)
    run = record_run(RunFolder(path), how, (12, 47))
    stage = run.stage(1)
    redesign_text(stage, environment(), WRONG, 1)
    for name in LATER:
        (stage.folder / f"{name}.json").unlink()
    for log in (stage.groups, stage.rollouts):
        log.unlink()
    lines = [{"step": step, "sampled/tokens": float(tokens)} for step, tokens in enumerate(TOKENS, 1)]
    growing = stage.train_log.with_name(f".{stage.train_log.name}.part")
    growing.write_bytes(msgspec.json.Encoder().encode_lines(lines) + b'{"step":11,"samp')
    now = time.time()
    os.utime(growing, (now, now))
    os.utime(stage.folder, (now - SECONDS, now - SECONDS))
    return run


def shown(run: RunFolder) -> dict[str, str]:
    """What the page says, and how far the bar is."""
    found = page(client(run.folder), "/run/run")
    facts = dict(re.findall(r"<div><dt>([^<]*)</dt><dd>([^<]*)</dd></div>", found))
    [facts["bar"]] = re.findall(r'<progress max="1" value="([^"]*)"', found)
    return facts


def seconds(words: str) -> float:
    """A duration in words."""
    number, unit = words.split()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def tokens_before(run: RunFolder) -> int:
    """What was generated in stage 0, and to draw the problems of stage 1."""
    return tokens_until(run, "stage_00") + record(run, "stage_01", "sampled")["figures"]["tokens"]


LIMITS = {
    "steps": {"grpo": GrpoSettings(steps=STEPS)},
    "minutes": {"grpo": GrpoSettings(steps=1000, minutes=MINUTES)},
    "tokens": {"grpo": GrpoSettings(steps=1000), "budget": 2000},
}


@pytest.mark.parametrize("by", LIMITS)
def test_rates_and_what_is_left_follow_from_the_log_the_clock_and_the_limit_that_is_nearest(tmp_path, by):
    run = begin(tmp_path / "run", **LIMITS[by])
    share = {
        "steps": len(TOKENS) / STEPS,
        "minutes": SECONDS / (60 * MINUTES),
        "tokens": sum(TOKENS) / (2000 - tokens_before(run)),
    }[by]
    left = SECONDS * (1 - share) / share
    earlier = record(run, "stage_00", "done")["seconds"]
    found = shown(run)
    assert float(found["Steps a second"]) == pytest.approx(len(TOKENS) / SECONDS, rel=0.01)
    assert float(found["Tokens a second"]) == pytest.approx(sum(TOKENS) / SECONDS, rel=0.01)
    assert float(found["bar"]) == pytest.approx(share, rel=0.01)
    assert seconds(found["Time left in this stage"]) == pytest.approx(left, rel=0.02)
    assert seconds(found["Time left in the run (estimate)"]) == pytest.approx(left + (STAGES - 2) * earlier, rel=0.02)


@pytest.mark.parametrize("by", LIMITS)
def test_a_training_that_was_resumed_is_as_fast_as_since_then(tmp_path, by):
    """Its first six steps, in 50 seconds, are of an earlier process; the other four took 80."""
    run = begin(tmp_path / "run", **LIMITS[by])
    scratch = run.stage(1).scratch
    scratch.mkdir()
    now = run.stage(1).folder.stat()
    write_json(scratch / "resumed.json", Resumed(6, 50.0))
    os.utime(run.stage(1).folder, (now.st_atime, now.st_mtime - SECONDS + (time.time() - now.st_mtime)))
    limit = {"steps": STEPS, "minutes": 60 * MINUTES, "tokens": 2000 - tokens_before(run)}[by]
    before, after = {
        "steps": (6, 10),
        "minutes": (50.0, 50 + SECONDS),
        "tokens": (sum(TOKENS[:6]), sum(TOKENS)),
    }[by]
    found = shown(run)
    assert float(found["Steps a second"]) == pytest.approx(4 / SECONDS, rel=0.01)
    assert float(found["Tokens a second"]) == pytest.approx(sum(TOKENS[6:]) / SECONDS, rel=0.01)
    assert float(found["bar"]) == pytest.approx(after / limit, rel=0.01)
    left = SECONDS * (limit - after) / (after - before)
    assert seconds(found["Time left in this stage"]) == pytest.approx(left, rel=0.02)


def test_a_budget_that_is_spent_ends_the_run(tmp_path):
    run = record_run(RunFolder(tmp_path / "run"), settings(), (12, 47))
    spent = tokens_until(run, "stage_00")
    for budget, state in ((spent, "finished"), (spent + 1, "running")):
        how = msgspec.structs.replace(run.settings(), budget=budget)
        assert state in shown_state(run, how)


def shown_state(run: RunFolder, how: RunSettings) -> str:
    """What the page says of the run, were it of these settings."""
    raw = json.loads(run.config.read_text())
    raw["settings"]["budget"] = how.budget
    run.config.write_text(json.dumps(raw))
    (run.folder / "SHA256SUMS").unlink(missing_ok=True)
    return re.findall(r'<h1>[^<]*<span class="chip[^"]*">([^<]*)', page(client(run.folder), "/run/run"))[0]
