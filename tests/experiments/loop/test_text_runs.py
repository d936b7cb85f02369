"""The closed loop on problems in text: every teacher and sampler, what it leaves, and that it goes on where it was."""

import contextlib
import json
import math
import os
import signal
import time

import msgspec
import numpy as np
import pytest

from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.plugins import load_class
from lakewright.engineer.problems import Problem
from lakewright.engineer.steps import Next
from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records.history import describe_stage, read_chapters
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    Done,
    EngineerTraining,
    Rollback,
    SampledRecord,
    Validation,
    read_record,
    write_record,
)
from lakewright.experiments.loop.records.stage_rollouts import (
    read_held_out,
    read_problems,
    read_rollouts,
    read_stage_problems,
)
from lakewright.experiments.loop.records.token_budget import count_run_tokens
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.models import load_checkpoint
from lakewright.policy.training import training_state
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.processes.commands import HOUSE
from tests.support.processes.killable import begin, code_of, server
from tests.support.processes.watching import wait_for
from tests.support.refusals import refused
from tests.support.samples.text_runs import (
    ADDITION,
    EACH_KIND,
    KINDS,
    ROW,
    TEXT_FILES,
    finished_text,
    text_run,
    timeless,
)
from tests.support.samples.tiny_runs import decision, files, run_loop, state

OWN = HOUSE / "docs" / "examples" / "own_parts.py"
SPACE = make_trainee(text_run()).environment.space
RECORDS: dict[str, type[msgspec.Struct]] = {
    "env.json": Design,
    "sampled.json": SampledRecord,
    "validation.json": Validation,
    "rollback.json": Rollback,
    "difficulty.json": Forecast,
    "proposal.json": DecisionRecord,
    "engineer.json": EngineerTraining,
    "trial.json": Trial,
    "next.json": Next,
    "done.json": Done,
}
# The file at whose sight the run is killed, a random moment later; all of them stay once they are there.
SIGNS = ("config.json", "warmup/train.jsonl", "stage_00/env.json", "stage_00/proposal.json", "stage_01/env.json")
LONGEST_MOMENT = 0.2  # seconds


@pytest.mark.parametrize("kind", EACH_KIND)
def test_a_run_of_each_kind_leaves_every_file_and_no_litter(kind):
    run, tried = finished_text(kind), "untried" not in kind
    left = files(run.folder)
    if kind.startswith("self"):  # a model that is asked learns the engineer's part
        assert "warmup/examination.json" in left
        left -= {"warmup/examination.json"}
    if kind.startswith("self_trained"):
        assert {"stage_00/engineer.json", "stage_00/engineer/model.safetensors"} <= left
        left = {name for name in left if not name.startswith("stage_00/engineer")}
    changes = decision(run, 0).verdict.design != run.stage(0).design()
    assert left - {"stage_00/trial.json"} == TEXT_FILES
    if changes or not tried:
        assert ("stage_00/trial.json" in left) == tried
    assert {decision(run, number).teacher for number in (0, 1)} == {text_run(**KINDS[kind]).teacher}


@pytest.mark.parametrize("kind", EACH_KIND)
def test_every_record_is_read_and_written_again_as_it_was(kind, tmp_path):
    run = finished_text(kind)
    for number in (-1, 0, 1):
        stage = run.stage(number) if number >= 0 else run.warmup
        for name, record in RECORDS.items():
            if (path := stage.folder / name).exists():
                write_record(tmp_path / name, read_record(path, record), lake=False)
                assert json.loads((tmp_path / name).read_text()) == json.loads(path.read_text()), path
        load_checkpoint(stage.checkpoint, codec="bytes")
        assert len(stage.read_steps()) == (1 if number >= 0 else 2)
    stage = run.stage(1)
    write_record(tmp_path / "evidence.json", stage.read_evidence(), lake=False)
    assert json.loads((tmp_path / "evidence.json").read_text()) == json.loads(stage.evidence.read_text())
    assert [len(describe_stage(run, number, SPACE)) >= 2 for number in (0, 1)] == [True, True]
    assert [chapter.name for chapter in read_chapters(run)] == ["warm-up", "stage 0", "stage 1"]
    assert sum(msgspec.structs.astuple(count_run_tokens(run, 2))) == count_run_tokens(run, 2).total > 0


@pytest.mark.parametrize("kind", EACH_KIND)
def test_problems_are_of_the_design_that_was_decided_before_and_rollouts_are_of_them(kind):
    run = finished_text(kind)
    assert run.stage(0).design() == SPACE.design({1: ROW, 2: ROW})
    assert run.stage(1).design() == run.stage(0).next_design()
    for number in (0, 1):
        stage = run.stage(number)
        problems, design = read_stage_problems(stage), stage.design()
        assert len(problems) >= 4
        assert {problem.cell.stratum for problem in problems} <= set(design.strata)
        if kind not in ("plr", "pcl", "domain_randomisation"):  # which have problems of other designs, too
            cells = make_trainee(text_run()).environment.cells(design)
            assert {problem.cell for problem in problems} <= set(cells)
        groups = read_rollouts(stage)
        assert len(groups) == 4
        answers = 4 if kind == "guided" else 8  # the reference is one of a group of two there
        assert sum(group.completions for _, group in groups) == answers
        figures = read_record(stage.sampled, SampledRecord)
        assert sum(drawn.problems for drawn in figures.statistics.values()) == len(problems)
        lines = msgspec.json.Decoder(dict).decode_lines(stage.rollouts.read_bytes())
        assert {line["problem"] for line in lines} <= {problem.key for problem in problems}
        evidence = stage.read_evidence()
        assert evidence.design == design
        assert evidence.outcomes == read_record(stage.validation, Validation).outcomes
        assert sum(found.groups.groups for found in evidence.groups) == 4


def test_the_evidence_shows_answers_that_failed_as_the_environment_describes_them(tmp_path):
    stage = finished_text("rules").stage(0)
    failed = [one for one in read_record(stage.validation, Validation).examples if one.failure != "none"]
    assert failed
    usual = [f"{one.problem.prompt}\nanswer: {one.answer}" for one in failed]
    assert [case.text for case in stage.read_evidence().cases] == usual
    own = "    def describe(self, problem, answer, verdict):\n        return f'{answer} is {verdict.failure}'\n"
    (tmp_path / "told.py").write_text(f"{ADDITION.read_text()}\n{own}")
    run = RunFolder(tmp_path / "run")
    run_loop(text_run(f"{tmp_path}/told.py:Addition", stages=1), run)
    cases = run.stage(0).read_evidence().cases
    assert [(case.text, case.failure) for case in cases] == [(f"{o.answer} is {o.failure}", o.failure) for o in failed]


def test_the_held_out_set_has_problems_of_every_cell_and_is_that_of_every_seed(tmp_path):
    environment = make_trainee(text_run()).environment
    held_out = read_held_out(finished_text("rules"))
    assert {problem.cell for problem in held_out} == set(environment.space.grid((1, 2)))
    other = RunFolder(tmp_path / "run")
    run_loop(text_run(seed=1, stages=1), other)
    assert read_held_out(other) == held_out
    first, second = (read_stage_problems(run.stage(0)) for run in (finished_text("rules"), other))
    assert [problem.prompt for problem in first] != [problem.prompt for problem in second]
    for problem in held_out:
        assert environment.check_verdict(problem, problem.answer).valid


def test_a_text_run_with_other_settings_on_the_same_folder_is_refused_and_again_with_its_own_changes_nothing():
    run = finished_text("rules")
    before = state(run.folder)
    with refused("config.json:", "run: settings.design.1.share"):
        run_loop(text_run(design={"1": ROW | {"share": 0.25}, "2": ROW | {"share": 0.75}}), run)
    run_loop(text_run(), run)
    assert state(run.folder) == before


def test_problems_of_a_stage_are_lines_that_any_program_reads():
    stage = finished_text("rules").stage(0)
    lines = [json.loads(line) for line in stage.problems.read_text().splitlines()]
    assert [line["prompt"] for line in lines] == [problem.prompt for problem in read_problems(stage.problems)]
    assert all(line["answer"] == str(sum(map(int, line["prompt"][:-1].split("+")))) for line in lines)
    assert all(isinstance(problem, Problem) and problem.key for problem in read_stage_problems(stage))


@pytest.mark.deep
def test_a_text_run_that_is_cut_off_at_every_few_renamings_ends_as_if_it_had_not_been(tmp_path):
    run, cuts = RunFolder(tmp_path / "run"), 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training_state, "SECONDS", -math.inf)  # within a stage, each step is kept
            patch.setattr(training_state, "SHARE", math.inf)
            cut_power(patch, renamings=3 + cuts % 4, before=cuts % 2 == 0)
            try:
                run_loop(text_run(), run)
                break
            except PowerCutError:
                cuts += 1
        assert cuts < 40, "the run does not get on"
    assert cuts > 4
    assert not [path for path in run.folder.rglob("*") if path.name.endswith((".part", ".scratch"))]
    assert timeless(run) == timeless(finished_text("rules"))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_a_text_run_that_is_killed_at_random_instants_ends_as_if_it_had_not_been(tmp_path, seed):
    run, killed = RunFolder(tmp_path / "run"), 0
    moments = np.random.default_rng(seed).uniform(0, LONGEST_MOMENT, len(SIGNS))
    with server("tiny text loops") as loops:
        for sign, moment in zip(SIGNS, moments, strict=True):
            child = begin(loops, run.folder)
            wait_for(run.folder / sign)
            time.sleep(moment)
            with contextlib.suppress(ProcessLookupError):  # which has ended by itself
                os.killpg(child, signal.SIGKILL)
            code = code_of(loops)
            assert code in (0, -signal.SIGKILL), f"the run ended with {code} after {sign} was seen"
            killed += code != 0
        begin(loops, run.folder)
        assert code_of(loops) == 0
    assert killed >= 3
    assert timeless(run) == timeless(finished_text("rules"))


def test_a_teacher_and_a_sampler_of_ones_own_run_and_keep_their_state(tmp_path, monkeypatch):
    sampler = load_class(f"{OWN}:Twice", {}, "sampler", ("learn",))
    learn = sampler.learn

    def learn_and_check(self, rollouts, stage, environment):
        assert all(environment.features(problem) for problem, _ in rollouts)
        learn(self, rollouts, stage, environment)

    monkeypatch.setattr(sampler, "learn", learn_and_check)
    mine = [f"teacher={OWN}:Longer", f"sampler.name={OWN}:Twice"]
    settings = text_run(overrides=[*mine, "teacher_options.step=0.125", "trial.enabled=false"])
    run = RunFolder(tmp_path / "run")
    run_loop(settings, run)
    assert [run.stage(number).design().strata[2]["share"] for number in (0, 1)] == [0.5, 0.625]
    assert [decision(run, number).teacher_state for number in (0, 1)] == [{"rounds": 1}, {"rounds": 2}]
    assert isinstance(decision(run, 0).proposal.delta, Delta)
    sampled = [read_record(run.stage(number).sampled, SampledRecord) for number in (0, 1)]
    assert [found.figures["fresh"] for found in sampled] == [8, 8]
    assert [found.state for found in sampled] == [{"stages": 0}, {"stages": 1}]
    assert [chapter.decision is not None for chapter in read_chapters(run)] == [False, True, True]
    assert describe_stage(run, 0, SPACE)[1].startswith("proposal")
    assert RunFolder(run.folder).settings() == settings


def test_the_example_of_the_docs_is_the_environment_of_these_runs():
    assert ADDITION.is_file()
    assert SPACE.strata == (1, 2, 3, 4)
