"""A run whose stages were all drawn from the first design says so, and why."""

import msgspec
import pytest

from lakewright.engineer.guard import GuardVerdict
from lakewright.experiments.environments.lake import design_of
from lakewright.experiments.loop.records.history import explain_first_design
from lakewright.experiments.loop.records.stage_records import DecisionRecord, read_record, write_record
from lakewright.experiments.viewer.run_table import as_json, tabulate_run
from tests.support.samples.finished_run import ENV, NEXT, begin, finish, redesign, validate


def change(stage, **fields) -> None:
    """Writes other fields of a decision, and no trial of it."""
    stage.trial.unlink()
    write_record(stage.proposal, msgspec.structs.replace(read_record(stage.proposal, DecisionRecord), **fields))


def refuse(stage) -> None:
    change(stage, verdict=GuardVerdict("refused", ["too far"], design_of(ENV)))


def answer_nothing(stage) -> None:
    proposal = read_record(stage.proposal, DecisionRecord).proposal
    change(stage, proposal=msgspec.structs.replace(proposal, delta=None, error="no JSON"))


WHY = {
    "the trial preferred it": lambda stage: None,
    "the guard refused the change": refuse,
    "no answer of the engineer could be used": answer_nothing,
}


@pytest.mark.parametrize("reason", WHY)
def test_the_report_says_why_all_stages_were_drawn_from_the_first_design(reason, tmp_path):
    run = finish(tmp_path / "run")
    WHY[reason](run.stage(0))
    line = f"all 2 stages were drawn from the first design: 1 time {reason}"
    assert explain_first_design(run) == line
    assert line in tabulate_run(run).splitlines()
    assert as_json(run)["first_design_throughout"] == line


def test_a_run_with_another_design_or_a_single_stage_says_nothing(tmp_path):
    run = finish(tmp_path / "run")
    write_record(run.stage(1).design_file, design_of(NEXT))
    assert explain_first_design(run) is None
    assert "first design" not in tabulate_run(run)
    short = begin(tmp_path / "short", stages=1)
    validate(short.warmup, 8)
    redesign(short.stage(0))
    validate(short.stage(0), 16)
    assert explain_first_design(short) is None, "what comes next was decided, but nothing was drawn from it"
