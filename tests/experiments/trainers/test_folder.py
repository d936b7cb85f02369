"""The engineer of a folder: versions from outcomes, edits by hand, undo, cuts at every instant, and what it refuses."""

import json
import os
import random
import time

import msgspec
import pytest

from lakewright.core_jax.support import listed, locked, write_json
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.teachers import Reply
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.versions import FolderSettings, VersionFiles
from lakewright.policy.inference import EndpointSettings
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import ADDITION, begin_engineer, record_some, state_of, train_with_engineer
from tests.support.servers.chat_server import failing, saying, serving


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", held_out=12)


def design_of(folder):
    return json.loads((folder.path / "design.json").read_text())


def edit(folder, **changes):
    """Edits design.json by hand."""
    design = design_of(folder)
    write_json(folder.path / "design.json", {**design, **changes})


def test_a_folder_begins_with_a_design_that_any_trainer_can_read(folder):
    strata = {str(digits): {"share": 0.25, "terms": 3, "carry": 0.5} for digits in (1, 2, 3, 4)}
    assert design_of(folder) == {"version": 0, "environment": ADDITION, "strata": strata}
    told = folder.next().line
    assert told.startswith("no outcomes since version 0 was decided; record answers to the 12 held-out problems, or")
    assert "rollouts.url" in told
    assert folder.log() == ["0 by begin: the first design"]
    record_some(folder, ProblemSource(folder.path).take(4))
    folder.next()
    assert "held-out" not in folder.next().line, "once there were answers"


def test_outcomes_lead_to_versions_with_their_reasons(folder):
    source = ProblemSource(folder.path)
    for number in (1, 2):
        record_some(folder, source.take(16))
        record_some(folder, folder.held_out(), split="held_out")
        report = folder.next()
        assert (report.version, report.by, report.new, report.complaint) == (number, "engineer", True, "")
        assert msgspec.structs.asdict(report.counts) == {
            "answers": 64,
            "held_out": 48,
            "groups": 16,
            "tokens": 3 * 112,
            "left_out": {},
        }
        assert design_of(folder) == report.design
        noted = folder.files.read_version(number)
        assert noted.reasons
        assert noted.decisions[0]["attempts"][-1]["proposal"]["answer"]
        assert noted.decisions[0]["evidence"]["outcomes"]
        assert noted.decisions[0]["forecast"]
        assert noted.state["round"] == number
    assert not folder.next().new
    assert EngineerFolder(folder.path).status().outcomes["1"].keys() == {"1", "2", "3", "4"}
    assert len(noted.state["standing_valid"]) == 12  # held-out answers of all problems, to be compared


def test_a_design_that_stays_keeps_its_version_and_the_decision_is_noted(tmp_path):
    folder = begin_engineer(tmp_path, teacher="fixed")
    record_some(folder, ProblemSource(folder.path).take(4))
    report = folder.next()
    assert (report.version, report.new) == (0, False)
    assert len(folder.files.read_version(0).decisions) == 1
    assert folder.next().line.startswith("no outcomes")
    assert folder.log() == ["0 by begin: the first design (unchanged 1 time)"]
    sizes = []
    for _ in range(3):
        record_some(folder, ProblemSource(folder.path).take(4))
        folder.next()
        sizes.append(len(msgspec.json.encode(folder.files.read_version(0).decisions)))
    decisions = folder.files.read_version(0).decisions
    assert [bool(note["evidence"]) and bool(note["forecast"]) for note in decisions] == [False, False, False, True]
    assert all(note["attempts"] and note["line"] for note in decisions)
    assert sizes[2] - sizes[1] < sizes[0] / 4
    assert folder.log() == ["0 by begin: the first design (unchanged 4 times)"]


def restore_states(folder, states):
    """The whole state in each version, as earlier versions of the program left it."""
    for number, state in enumerate(states):
        version = folder.files.read_version(number)
        with listed(folder.files.version_path(number)):
            write_json(folder.files.version_path(number), msgspec.structs.replace(version, state=state))


def test_only_the_newest_version_holds_the_whole_state(folder):
    source, states = ProblemSource(folder.path), [folder.files.read_version(0).state]
    for _ in range(2):
        record_some(folder, source.take(8))
        folder.next()
        states.append(folder.files.read_newest().state)
    assert [one["round"] for one in states] == [0, 1, 2]
    short = state_of(folder.path)
    for number, state in enumerate(states[:2]):
        assert folder.files.read_version(number).state == {"format": 1, "forecast": state["forecast"]}
    assert folder.files.read_forecast(1)
    restore_states(folder, states)
    assert folder.files.read_version(1).state["round"] == 1
    assert folder.next().line.startswith("no outcomes")
    assert state_of(folder.path) == short, "a folder of an earlier version is read, and shortened"


def test_a_step_is_decided_once(folder):
    source = ProblemSource(folder.path)
    record_some(folder, source.take(4))
    assert folder.next(step=10).version == 1
    record_some(folder, source.take(4))
    assert folder.next(step=10).line == "step 10 was decided already"
    assert folder.next(step=20).version == 2


def test_undo_goes_back_one_version_at_a_time(folder):
    source, designs = ProblemSource(folder.path), [design_of(folder)["strata"]]
    for _ in range(2):
        record_some(folder, source.take(8))
        folder.next()
        designs.append(design_of(folder)["strata"])
    for version, back in ((3, 1), (4, 0)):
        report = folder.undo()
        assert (report.version, report.by, report.line) == (version, "undo", f"back to version {back}")
        assert design_of(folder)["strata"] == designs[back]
    with refused("version 4"):
        folder.undo()
    record_some(folder, source.take(8))
    assert folder.next().version == 5


def test_a_legal_edit_by_hand_is_a_version_of_the_user(folder):
    strata = design_of(folder)["strata"]
    strata["2"]["terms"] = 2
    edit(folder, strata=strata)
    assert folder.status().edited
    record_some(folder, ProblemSource(folder.path).take(4))  # of version 0 still
    report = folder.next()
    assert (report.version, report.by) == (1, "user")
    assert report.line == "design.json was edited: 2 terms -1"
    assert design_of(folder)["version"] == 1
    assert not folder.status().edited
    assert folder.status().outcomes.keys() == {"0"}
    assert folder.next().version == 2
    assert folder.log()[1] == "1 by user: design.json was edited: 2 terms -1"


def test_a_model_that_answers_nothing_leaves_the_design_and_is_told_of_once(tmp_path):
    folder = begin_engineer(tmp_path / "e", teacher="self")
    record_some(folder, ProblemSource(folder.path).take(4))
    report = folder.next(ask=lambda messages, schema, seed: Reply("", 0))
    assert (report.version, report.line.count("not JSON")) == (0, 1)
    assert report.line.endswith("; applied: no change; from 16 answers")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"strata": {"2": {"share": 1.0, "terms": 9, "carry": 0.5}}}, [".2.terms", 9, "2 to 4"]),
        ({"strata": {"9": {"share": 1.0, "terms": 2, "carry": 0.5}}}, [".9", "1, 2, 3, 4"]),
        ({"strata": {"2": {"share": 0.5, "terms": 2, "carry": 0.5}}}, ["sum to 0.5"]),
        ({"strata": {"2": {"share": 1.0, "terms": 2}}}, [".2.carry", "missing"]),
        ({"strata": {"2": "all"}}, ["strata.2"]),
        ({"note": "mine"}, ["field 'note'"]),
        ({"environment": "lake"}, ["environment", "'lake'"]),
    ],
)
def test_an_illegal_edit_is_refused_with_its_place(folder, changes, place):
    edit(folder, **changes)
    for command in (folder.next, folder.undo):
        with refused(folder.path / "design.json", *place):
            command()
    assert folder.files.list_versions() == [0]
    (folder.path / "design.json").unlink()
    folder.next()
    assert design_of(folder)["version"] == 0


def edit_terms(folder, stratum="2"):
    """Edits the terms of a stratum by hand."""
    strata = design_of(folder)["strata"]
    strata[stratum]["terms"] = 5 - strata[stratum]["terms"]
    edit(folder, strata=strata)
    return strata[stratum]["terms"]


@pytest.mark.parametrize("moment", ["redesign", "the version is written", "the design is written"])
def test_an_edit_while_the_engineer_decides_is_a_version_and_not_lost(folder, monkeypatch, moment):
    edited = []

    def edit_once():
        if not edited:
            edited.append(edit_terms(folder))

    def edit_before(kind, name):
        function = getattr(kind, name)

        def edit_and_go_on(*values, **options):
            edit_once()
            return function(*values, **options)

        monkeypatch.setattr(kind, name, edit_and_go_on)

    record_some(folder, ProblemSource(folder.path).take(8))
    place = {"redesign": (Engineer, "redesign"), "the version is written": (VersionFiles, "write_version")}
    edit_before(*place.get(moment, (VersionFiles, "write_design")))
    report = folder.next()
    assert (report.by, report.design["strata"]["2"]["terms"]) == ("user", edited[0])
    assert design_of(folder) == report.design
    late = moment == "the design is written"  # when the version is there, and has read the outcomes
    authors = ["begin", "engineer", "user"] if late else ["begin", "user"]
    assert [line.split(":")[0] for line in folder.log()] == [f"{at} by {who}" for at, who in enumerate(authors)]
    assert folder.next().new != late, "outcomes that no version has read are read now"


def test_an_edit_while_a_version_is_undone_is_a_version_before_it(folder, monkeypatch):
    record_some(folder, ProblemSource(folder.path).take(8))
    folder.next()
    edited, read = [], VersionFiles.read_version

    def edit_and_read(files, number):
        if not edited:
            edited.append(edit_terms(folder))
        return read(files, number)

    monkeypatch.setattr(VersionFiles, "read_version", edit_and_read)
    folder.undo()
    assert [line.split(":")[0] for line in folder.log()][1:] == ["1 by engineer", "2 by user", "3 by undo"]
    assert folder.files.read_version(2).design.strata[2]["terms"] == edited[0]


def test_an_illegal_edit_while_the_engineer_decides_is_refused_and_stays(folder, monkeypatch):
    record_some(folder, ProblemSource(folder.path).take(8))
    redesign = Engineer.redesign

    def edit_and_redesign(*values):
        edit(folder, strata={"2": {"share": 1.0, "terms": 9, "carry": 0.5}})
        return redesign(*values)

    monkeypatch.setattr(Engineer, "redesign", edit_and_redesign)
    with refused("design.json:", "terms", 9):
        folder.next()
    assert design_of(folder)["strata"]["2"]["terms"] == 9
    assert folder.files.list_versions() == [0]


def test_a_user_who_never_stops_editing_is_told(folder, monkeypatch):
    record_some(folder, ProblemSource(folder.path).take(8))
    chance = random.Random(0)
    monkeypatch.setattr(VersionFiles, "_read_bytes", lambda files: chance.randbytes(4))
    with refused("design.json:", 3):
        folder.next()


@pytest.mark.parametrize("lost", [[2], [1], [1, 2], [0]])
def test_a_folder_that_lost_versions_is_refused(folder, lost):
    source = ProblemSource(folder.path)
    for _ in range(2):
        record_some(folder, source.take(8))
        folder.next()
    for number in lost:
        folder.files.version_path(number).unlink()
    for doing in (folder.next, folder.status, folder.undo, folder.log, lambda: source.take(1)):
        with refused(f"versions/000{lost[0]}.json", "missing", "SHA256SUMS"):
            doing()


def test_a_design_of_a_version_that_is_not_there_is_refused(folder):
    record_some(folder, ProblemSource(folder.path).take(8))
    folder.next()
    folder.files.version_path(1).unlink()
    (folder.path / "versions" / "SHA256SUMS").unlink()
    with refused("design.json: version", 1, 0):
        folder.next()


@pytest.mark.parametrize("name", ["0000 (copy).json", "0001.json~", "00001.json", "1.json", "²345.json", "9.9.json"])
def test_other_files_beside_the_versions_are_ignored(folder, name):
    (folder.path / "versions" / name).write_text("{}")
    record_some(folder, ProblemSource(folder.path).take(8))
    assert folder.next().version == 1
    assert (folder.files.list_versions(), folder.undo().version) == ([0, 1], 2)


# After a renaming it is as before the next, except for a file that is not whole.
@pytest.mark.parametrize("before", [True, pytest.param(False, marks=pytest.mark.deep)])
def test_a_kill_at_any_renaming_ends_with_the_same_versions(tmp_path, monkeypatch, before):
    train_with_engineer(tmp_path / "whole")
    undisturbed = state_of(tmp_path / "whole")
    assert undisturbed["status"]["version"] == 3
    for renamings in range(12):  # up to version 1
        path = tmp_path / str(renamings)
        with monkeypatch.context() as patch:
            cut_power(patch, renamings if before else renamings + 1, before=before)
            with pytest.raises(PowerCutError):
                train_with_engineer(path)
        train_with_engineer(path)
        assert state_of(path) == undisturbed, renamings


def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch):
    train_with_engineer(tmp_path / "steady")
    chance, write = random.Random(0), VersionFiles.write_design

    def write_at_any_time(files, design):
        write(files, design)
        at = chance.randrange(4 * 10**9)  # seconds, until the year 2096
        os.utime(files.design_path, (at, at))

    monkeypatch.setattr(VersionFiles, "write_design", write_at_any_time)
    monkeypatch.setattr(time, "time", lambda: chance.randrange(4 * 10**9))
    train_with_engineer(tmp_path / "jumping")
    assert state_of(tmp_path / "jumping") == state_of(tmp_path / "steady")


def test_one_engineer_works_at_a_time(folder):
    with locked(folder.path), refused("another process"):
        folder.next()


def test_what_cannot_be_begun_or_opened_is_refused(folder, tmp_path):
    with refused("begun"):
        begin_engineer(folder.path)
    with refused("lakewright engineer begin"):
        EngineerFolder(tmp_path / "elsewhere")
    with refused("teacher base", "checkpoint", "self"):
        begin_engineer(tmp_path / "base", teacher="base")
    with refused("held_out", -1):
        begin_engineer(tmp_path / "few", held_out=-1)
    setup = json.loads((folder.path / "engineer.json").read_text())
    with listed(folder.path / "engineer.json"):
        write_json(folder.path / "engineer.json", {**setup, "environment": "lake"})
    with refused("design space of lake"):
        EngineerFolder(folder.path)


ANSWER = {"edits": {"2": {"share": 0.05, "terms": -1, "carry": 0, "reason": "too hard"}}}


@pytest.mark.usefixtures("quick_endpoint")
@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (saying(json.dumps(ANSWER)), "2 share +0.05, terms -1 (too hard)"),
        (saying("no idea"), "answer: not JSON"),
        (saying(None), "answer: not JSON"),
    ],
    ids=["an answer", "nonsense", "nothing"],
)
def test_a_served_model_may_be_the_engineer(tmp_path, reply, line):
    with serving(reply) as server:
        endpoint = EndpointSettings(url=server.url, model="policy", retries=0)
        folder = begin_engineer(tmp_path, teacher="endpoint", settings=FolderSettings(endpoint=endpoint))
        record_some(folder, ProblemSource(folder.path).take(8))
        report = folder.next()
    assert line in report.line
    assert report.version == int(line.startswith("2"))
    assert folder.next().line.startswith("no outcomes")
    assert (folder.path / "spending.jsonl").exists()


def test_a_server_that_is_down_decides_nothing_and_is_asked_about_the_same_outcomes_again(tmp_path):
    replies = [failing(500)]
    with serving(lambda request, body: replies[-1](request, body)) as server:
        endpoint = EndpointSettings(url=server.url, model="policy", retries=0)
        folder = begin_engineer(tmp_path, teacher="endpoint", settings=FolderSettings(endpoint=endpoint))
        record_some(folder, ProblemSource(folder.path).take(8))
        report = folder.next(step=1)
        assert (report.new, report.version, folder.status().pending) == (False, 0, 32)
        assert "undecided: endpoint" in report.line
        assert "answers 500" in report.line
        replies.append(saying(json.dumps(ANSWER)))
        assert folder.next(step=1).version == 1
    assert folder.status().pending == 0
