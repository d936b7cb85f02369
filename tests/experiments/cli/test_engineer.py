"""`lakewright engineer`: what is shown of a stage, dry runs that write nothing, and teachers side by side."""

import json
import shutil

import pytest

from lakewright.core_jax.support import listed
from lakewright.engineer.delta import describe_changes
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.teachers import MODELS, TEACHERS
from lakewright.experiments.cli import main
from lakewright.experiments.environments.lake import lake_space
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import DecisionRecord, write_record
from lakewright.experiments.viewer.proposals import escape_controls
from tests.support.samples.tiny_runs import decision, finished, state


def output_of(capsys, *arguments: object) -> str:
    """What a command that ends well prints."""
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments: object) -> str:
    """The line of a command that is refused."""
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


def test_a_stage_is_shown_from_evidence_to_the_next_config(capsys):
    run = finished("self")
    out = output_of(capsys, "engineer", "show", run.folder, "--stage", 0)
    found = decision(run, 0)
    for part in (f"## prompt\n{found.proposal.prompt}", f"## answer\n{found.proposal.answer}", found.verdict.status):
        assert part in out
    assert "## evidence\nThis is round 1 of 2." in out
    assert out.splitlines()[-1].startswith("next stage  3: ")
    assert ("## trial" in out) == run.stage(0).trial.exists()
    newest = [output_of(capsys, "engineer", "show", run.folder, *words) for words in ((), ("--stage", 1))]
    assert newest[0] == newest[1]


def test_the_trial_is_shown_and_the_chosen_config_marked(capsys):
    out = output_of(capsys, "engineer", "show", finished("random").folder, "--stage", 0)
    assert "## trial" in out
    assert "## Outcomes on held-out boards" in out, "what the teacher saw, though it is asked nothing"
    assert out.count("* ") - out.count("* chosen") == 1


def test_a_stage_as_json_holds_evidence_attempts_and_trial(capsys):
    found = json.loads(output_of(capsys, "engineer", "show", finished("random").folder, "--stage", 0, "--json"))
    assert found["teacher"] == "random"
    assert found["evidence"]["outcomes"].keys() == {"3", "5"}
    assert len(found["attempts"]) == 1
    assert len(found["trial"]["candidates"]) == 2


def test_what_a_model_wrote_cannot_command_the_terminal(tmp_path, capsys):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self").folder, run.folder)
    old = decision(run, 1)
    hostile = Proposal("\x1b[2J", "\x07\u202eline\nline\x00", None, "answer: \x1b[31m no")
    write_record(run.stage(1).proposal, DecisionRecord("self", hostile, old.verdict, {}))
    out = output_of(capsys, "engineer", "show", run.folder, "--stage", 1)
    assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(out)
    assert "\\x1b[2J" in out
    assert escape_controls("a\nb\tc") == "a\nb\\tc"


@pytest.mark.parametrize("teacher", ["rules", "self", "sec"])
def test_a_dry_run_shows_a_proposal_and_writes_nothing(capsys, teacher):
    run = finished("self")
    before = state(run.folder)
    out = output_of(capsys, "engineer", "propose", run.folder, "--teacher", teacher)
    assert f"stage 1 of {run.folder}, teacher {teacher}" in out
    assert "## delta" in out
    assert teacher != "self" or out == output_of(capsys, "engineer", "propose", run.folder)
    assert state(run.folder) == before


TEACHER = """
from lakewright.engineer.design import Delta
from lakewright.engineer.proposal import Stateful, propose_delta


class Idle(Stateful):
    def propose(self, evidence, design, space, key):
        return propose_delta(Delta({}))
"""


@pytest.mark.parametrize("command", ["propose --teacher", "replay --teachers"])
def test_a_teacher_from_elsewhere_is_asked(tmp_path, monkeypatch, capsys, command):
    (tmp_path / "idle_teacher.py").write_text(TEACHER)
    monkeypatch.syspath_prepend(tmp_path)
    step, option = command.split()
    for name in ("idle_teacher:Idle", f"{tmp_path / 'idle_teacher.py'}:Idle"):
        out = output_of(capsys, "engineer", step, finished("self").folder, option, name)
        assert name in out
        assert "no edits" in out or "no change" in out


def test_a_dry_run_needs_a_finished_stage(tmp_path, capsys):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self").folder, run.folder)
    ask = ("engineer", "propose", run.folder, "--teacher", "rules")
    assert "stage -1 is not finished; choose 0 to 1" in refused(capsys, *ask, "--stage", -1)
    for number in (0, 1):
        run.stage(number).done.unlink()
    assert "is not finished; run it first" in refused(capsys, *ask)


def test_a_dry_run_of_the_teacher_itself_proposes_what_was_proposed(capsys):
    for name in ("self", "random"):
        out = output_of(capsys, "engineer", "propose", finished(name).folder, "--teacher", name, "--stage", 0, "--json")
        assert json.loads(out)["attempts"][-1]["proposal"]["answer"] == decision(finished(name), 0).proposal.answer


def test_teachers_are_shown_side_by_side_on_every_stage(capsys):
    folders = [finished("self").folder, finished("random").folder]
    before = [state(folder) for folder in folders]
    out = output_of(capsys, "engineer", "replay", *folders, "--teachers", "rules,fixed,self")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["recorded", "rules", "fixed", "self"] * 4
    assert all("no change" in line for line in lines if line.startswith("  fixed"))
    assert [state(folder) for folder in folders] == before


def test_all_teachers_that_ask_no_model_are_replayed_by_default(capsys, monkeypatch):
    folder = finished("self").folder
    monkeypatch.chdir(folder.parent)  # a path from here serves as well
    found = json.loads(output_of(capsys, "engineer", "replay", folder.name, "--json"))
    first = [replay["teacher"] for replay in found if replay["stage"] == 0]
    assert first == ["recorded", *(name for name in TEACHERS if name not in MODELS)]


def test_changes_are_shown_by_size_and_field():
    design, space = finished("random").stage(0).design(), lake_space()
    assert describe_changes(design, design, space) == "no change"
    proposed = decision(finished("random"), 0).verdict.design
    assert describe_changes(design, proposed, space).startswith(("3x3 ", "5x5 "))


@pytest.mark.parametrize(
    ("arguments", "output_of"),
    [
        (["show", "--stage", "7"], "stage 7 is not finished; choose 0 to 1"),
        (["propose", "--teacher", "oracle"], "--teacher is 'oracle'; choose from fixed, "),
        (["propose", "--teacher", "endpoint"], "teacher endpoint has no server; give engineer.endpoint.url"),
        (["propose", "--teacher", "rules", "evidence.preset=v9"], "evidence: preset is 'v9'; choose from v1, "),
        (["replay", "--teachers", "rules,oracle"], "'oracle' is unknown; choose from fixed, "),
    ],
)
def test_what_cannot_be_asked_is_reported_in_a_line_with_the_choices(capsys, arguments, output_of):
    step, *rest = arguments
    line = refused(capsys, "engineer", step, finished("self").folder, *rest)
    assert output_of in line
    assert line.count("\n") == 1


def test_evidence_of_another_version_is_reported(tmp_path, capsys):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self").folder, run.folder)
    evidence = run.stage(0).evidence
    with listed(evidence):
        evidence.write_text(evidence.read_text().replace('"version": 2', '"version": 1', 1))
    line = refused(capsys, "engineer", "propose", run.folder, "--teacher", "rules", "--stage", 0)
    assert "stage_00/evidence.json: evidence of version 1, this version reads 2" in line
