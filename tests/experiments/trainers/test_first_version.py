"""The first version is redesigned before training, from answers of the policy to the held-out problems."""

import json

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer.rollback import RollbackSettings
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.trl import EngineerTasks
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.inference import EndpointSettings
from tests.support.processes.commands import lakewright
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import ADDITION, begin_engineer, record_some
from tests.support.samples.trl_trainers import FEW_TRIED, make_trainer
from tests.support.servers.chat_server import completion, send, serving

pytestmark = pytest.mark.usefixtures("quick_endpoint")


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", teacher="difficulty", held_out=40, settings=FEW_TRIED)


def assert_redesigned(folder: EngineerFolder, answers: int = 40) -> None:
    """Asserts that there is a decision on the held-out answers alone, of which the evidence has all."""
    version = folder.files.read_version(folder.files.newest())
    (decision,) = version.decisions
    assert sum(part["problems"] for part in decision["evidence"]["outcomes"].values()) == answers
    assert (decision["evidence"]["round"], decision["evidence"]["problems"]) == (0, None)
    assert decision["attempts"][-1]["proposal"]["delta"]["edits"]
    assert (version.counts.answers, version.counts.held_out) == (0, answers)
    assert folder.status().held_out == answers


def answer_short_sums(folder: EngineerFolder):
    """Right where a sum is of numbers of one digit."""

    def roll_out(problems, samples, turn):
        texts = [[problem.answer if problem.cell.stratum == 1 else "?"] * samples for problem in problems]
        return folder.environment.groups(problems, texts), 5 * len(problems) * samples

    return roll_out


def test_a_policy_that_is_rolled_out_answers_them(folder):
    report = folder.next(answer_short_sums(folder))
    assert_redesigned(folder)
    lines = [json.loads(line) for line in folder.files.outcomes_path.read_text().splitlines()]
    assert sum(line["tokens"] for line in lines) == 5 * 40
    assert {(line["stratum"], line["valid"], line.get("failure", "")) for line in lines} == {
        (1, True, ""),
        *((stratum, False, "no_number") for stratum in (2, 3, 4)),
    }
    trial = folder.files.read_version(folder.files.newest()).decisions[0]["trial"]
    assert report.spent.trials == trial["tokens"] > 0
    assert not folder.next(answer_short_sums(folder)).new, "once"
    assert ProblemSource(folder.path)[0].version == report.version


def test_held_out_problems_of_another_design_draw_the_first_version_towards_it(tmp_path):
    usual = load_environment(ADDITION).space.uniform()

    def prefer(stratum):
        return usual.replace(
            {one: {**row, "share": 0.91 if one == stratum else 0.03} for one, row in usual.strata.items()}
        )

    drawn = {}
    for name, target in (("own", None), ("other", prefer(3))):
        folder = begin_engineer(tmp_path / name, teacher="gain", design=prefer(1), held_out=60, held_out_design=target)
        record_some(folder, EngineerFolder(folder.path).held_out(), split="held_out")
        assert folder.next().new
        drawn[name] = folder.files.read_version(1).design.strata[3]["share"]
    assert max(one.cell.stratum for one in folder.held_out()[:20]) == 3
    assert drawn["other"] > drawn["own"]


def test_a_held_out_design_that_is_not_used_or_not_legal_is_refused(tmp_path):
    uniform = load_environment(ADDITION).space.uniform()
    with refused("held_out_design has no effect", "held_out is 0"):
        begin_engineer(tmp_path / "e", held_out_design=uniform)
    with refused("held_out_design", 1.5):
        crowded = uniform.replace({1: {**uniform.strata[1], "share": 1.5}})
        begin_engineer(tmp_path / "e", held_out=5, held_out_design=crowded)


def test_recorded_answers_do_too_though_some_lack(folder):
    recorder = OutcomeRecorder(folder.path, folder.environment)
    for problem in folder.held_out()[:30]:
        recorder.record(problem, [problem.answer if problem.cell.stratum == 1 else "?"], split="held_out")
    assert folder.next().new
    assert_redesigned(folder, 30)
    assert folder.files.read_version(1).state["tested"]


def test_trl_begins_with_a_redesigned_version_without_another_line(folder, tmp_path):
    tasks = EngineerTasks(folder.path, every=100)
    trainer = make_trainer(tasks, tmp_path / "trl", max_steps=1)
    tasks.attach(trainer)
    trainer.train()
    assert_redesigned(folder)
    assert [report.version for report in tasks.decided] == [folder.files.newest()]
    assert tasks.source[0].version == folder.files.newest()


def test_a_server_that_has_the_policy_answers_them(tmp_path, capsys):
    with serving(lambda request, body: send(request, completion("7"))) as server:
        policy = EndpointSettings(url=server.url, model="policy", max_tokens=8, retries=0)
        settings = FolderSettings(rollouts=policy, trial=FEW_TRIED.trial)
        folder = begin_engineer(tmp_path / "e", teacher="rules", held_out=12, settings=settings)
        assert lakewright(capsys, "engineer", "next", folder.path)[0] == 0
    assert_redesigned(folder, 12)


@pytest.mark.parametrize("after", ["training", "a user's edit"])
def test_afterwards_the_policy_is_not_asked_for_them(folder, after):
    if after == "training":
        record_some(folder, ProblemSource(folder.path).take(4))
    else:
        raw = json.loads(folder.files.design_path.read_text())
        raw["strata"]["1"]["share"], raw["strata"]["2"]["share"] = 0.3, 0.2
        folder.files.design_path.write_text(json.dumps(raw))
        folder.next()
    folder.next(answer_short_sums(folder))
    assert folder.status().held_out == 0


def test_a_policy_that_gives_something_else_is_refused_and_nothing_is_recorded(folder):
    with pytest.raises(InputError, match=r"roll_out: gave .* for 40 problems"):
        folder.next(lambda problems, samples, turn: ([], 0))
    assert not folder.files.outcomes_path.exists()


@pytest.mark.parametrize("weights", [False, True])
def test_after_a_fall_the_next_answers_are_compared_with_those_of_the_policy_that_training_continues_from(
    tmp_path, weights
):
    changes = {"settings": FolderSettings(rollback=RollbackSettings(weights=True))} if weights else {}
    folder = begin_engineer(tmp_path / "e", teacher="fixed", held_out=40, **changes)
    recorder, fell = OutcomeRecorder(folder.path, folder.environment), []
    for right in (True, False, False):
        for problem in folder.held_out():
            recorder.record(problem, [problem.answer if right else "?"], split="held_out")
        fell.append(folder.next().rolled_back)
    assert fell == [False, True, weights]
