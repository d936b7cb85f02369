"""The examples of docs/trainers.md train tiny models, redesign at least twice, and resume with the same problems."""

import runpy
import subprocess
import sys

import pytest
from transformers.trainer_utils import get_last_checkpoint

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.trl import EngineerTasks
from tests.support.processes.commands import HOUSE, surroundings
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import ADDITION, begin_engineer, read_groups, state_of
from tests.support.samples.trl_trainers import FEW_TRIED

EXAMPLES = HOUSE / "docs" / "examples"


@pytest.fixture
def run_example(monkeypatch):
    def run(name, folder):
        monkeypatch.setattr(sys, "argv", [name, str(folder)])
        return runpy.run_path(str(EXAMPLES / name), run_name="__main__")

    return run


def test_the_plain_loop_redesigns_and_a_second_start_changes_nothing(run_example, tmp_path, capsys):
    run_example("torch_loop.py", tmp_path)
    ended = state_of(tmp_path)
    assert ended["status"]["version"] >= 1
    groups = read_groups(tmp_path)
    assert (len(groups), {len(lines) for lines in groups.values()}) == (320, {8})
    run_example("torch_loop.py", tmp_path)
    assert state_of(tmp_path) == ended
    assert "was decided already" in capsys.readouterr().out


def test_trl_redesigns_and_resumes_with_the_same_problems(run_example, tmp_path, capsys):
    done = run_example("trl_engineer.py", tmp_path)
    path = tmp_path / "engineer"
    assert [report.version for report in done["tasks"].decided] == [1, 2, 2], "nothing is easier than version 2"
    groups = read_groups(path)
    assert (len(groups), {len(lines) for lines in groups.values()}) == (24, {4})
    assert all(len({(line.version, line.key) for line in lines}) == 1 for lines in groups.values())
    steps = {group: int(group.split()[-1]) for group in groups}
    seen = [{groups[group][0].version for group in groups if steps[group] == step} for step in range(6)]
    assert seen == [{0}, {0}, {0}, {1}, {1}, {2}], "a change arrives one step later, in spite of TRL's shuffling"

    ended = state_of(path)
    for number in (5, 6):  # the trainer is set back to the fourth step
        for file in sorted((tmp_path / "trl" / f"checkpoint-{number}").rglob("*"), reverse=True):
            file.unlink()
        (tmp_path / "trl" / f"checkpoint-{number}").rmdir()
    assert get_last_checkpoint(tmp_path / "trl").endswith("checkpoint-4")
    again = run_example("trl_engineer.py", tmp_path)
    assert again["trainer"].state.global_step == 6
    assert state_of(path) == ended


@pytest.mark.deep
def test_trl_trains_on_episodes_of_several_turns(run_example, tmp_path):
    done = run_example("trl_hunt.py", tmp_path)
    folder = done["tasks"].folder
    first = folder.files.read_version(1)
    assert (first.step, folder.status().held_out, folder.status().version >= 2) == (0, 16, True)
    groups = [lines for lines in read_groups(folder.path).values() if lines[0].split == "train"]
    assert (len(groups), {len(lines) for lines in groups}) == (24, {4})
    assert all(len({(line.version, line.key) for line in lines}) == 1 for lines in groups)
    assert any(line.valid for lines in groups for line in lines), "the random model guesses by the tool"


def test_a_message_to_a_chat_model_and_held_out_problems(tmp_path):
    folder = begin_engineer(tmp_path, held_out=3)
    tasks = EngineerTasks(tmp_path, chat=True, places=8)
    prompt = tasks.source[5].prompt
    assert tasks.train_dataset[5] == {"prompt": [{"role": "user", "content": prompt}], "place": 5, "split": "train"}
    rows = tasks.eval_dataset[:]
    right = [[{"role": "assistant", "content": problem.answer}] for problem in folder.held_out()]

    class State:
        global_step = 4

    told = {"place": rows["place"], "split": rows["split"], "completion_ids": [[1]] * 3, "trainer_state": State()}
    assert tasks.judge_answers(right, **told) == [1.0] * 3
    assert folder.status().held_out == 3
    with refused("every", "0, places 100000"):
        EngineerTasks(tmp_path, every=0)
    with refused("first", 6, "choose 1 to 5"):
        EngineerTasks(tmp_path, every=5, first=6)


@pytest.mark.parametrize(
    ("first", "due"), [(None, [8, 16, 24, 32]), (1, [1, 3, 7, 15, 23, 31]), (3, [3, 9, 17, 25]), (8, [8, 16, 24, 32])]
)
def test_first_decisions_may_come_sooner_and_each_wait_is_twice_the_one_before(tmp_path, first, due):
    tasks = EngineerTasks(begin_engineer(tmp_path / "e").path, every=8, first=first)
    assert [step for step in range(1, 33) if tasks.is_due(step)] == due


TWO = """
import runpy, sys, trl
config = trl.GRPOConfig
trl.GRPOConfig = lambda *given, **named: config(*given, **{**named, "per_device_train_batch_size": 2})
runpy.run_path(sys.argv[1], run_name="__main__")
"""


HUNT = f"{EXAMPLES / 'hunt.py'}:Hunt"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("example", "environment", "versions"), [("trl_engineer.py", ADDITION, "012"), ("trl_hunt.py", HUNT, "01")]
)
def test_two_processes_of_trl_share_groups_and_one_decides(tmp_path, example, environment, versions):
    path = tmp_path / "out" / "engineer"
    EngineerFolder.begin(path, environment, "difficulty", settings=FEW_TRIED, held_out=4 * (environment == HUNT))
    (tmp_path / "two.py").write_text(TWO.replace("sys.argv[1]", repr(str(EXAMPLES / example))))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    program = [*launch, str(tmp_path / "two.py"), str(tmp_path / "out")]
    ended = subprocess.run(program, capture_output=True, text=True, env=surroundings(), check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr[-2000:]
    groups = {name: lines for name, lines in read_groups(path).items() if lines[0].split == "train"}
    assert sorted(EngineerFolder(path).status().outcomes)[: len(versions)] == list(versions)
    for lines in groups.values():
        assert sorted(line.answer for line in lines) == [0, 1, 2, 3]
        assert len({(line.version, line.key) for line in lines}) == 1
