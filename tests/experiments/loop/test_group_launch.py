"""The launch of a stage in a placement group: a command in each bundle, all of which end together."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from lakewright.experiments.jobs.executors.executor import NodeLostError
from lakewright.experiments.loop.settings import launch as launching
from lakewright.experiments.loop.settings.launch import LaunchSettings, launch_command, launch_stage
from tests.support.refusals import refused

ARGUMENTS = "import sys; print([word for word in sys.argv if word.startswith('--m')])"


class ThreadGroup:
    """Three bundles, each a thread of this process. lost: whether the node of the second is."""

    count, address = 3, "127.0.0.1"

    def __init__(self, lost: bool = False) -> None:
        self.lost, self.threads, self.cancelled = lost, ThreadPoolExecutor(), 0

    def submit(self, place: int, function, *items) -> Future:
        return self.threads.submit(function, *items)

    def results(self, references, patience=None) -> list:
        done, _ = wait(references, patience)
        if self.lost:
            raise NodeLostError("lost")
        return [one.result() for one in done]

    def cancel(self, references) -> None:
        self.cancelled += len(references)


def train(tmp_path, monkeypatch, program: str, group: ThreadGroup, **settings: object) -> None:
    """Trains a stage by a program that stands for `accelerate launch` and is given its arguments."""
    monkeypatch.setattr(launching, "find_group", lambda: group)
    monkeypatch.setattr(launching, "launch_command", lambda one, *_: [sys.executable, "-c", program, *one.more])
    launch = LaunchSettings(processes=3, **settings)
    launch_stage(launch, tmp_path, 0, tmp_path, 1.0, tmp_path / "launch.log", lambda: None)


def test_each_process_is_a_machine_that_meets_the_others_at_a_port_of_the_first(tmp_path, monkeypatch):
    group = ThreadGroup()
    train(tmp_path, monkeypatch, ARGUMENTS, group)
    said = [(tmp_path / name).read_text() for name in ("launch.log", "launch_1.log", "launch_2.log")]
    for rank, words in enumerate(said):
        assert "--num_machines" not in words, "only what begins with --m is printed"
        assert "--main_process_ip=127.0.0.1" in words
        assert f"--machine_rank={rank}" in words
    ports = {words.partition("--main_process_port=")[2].partition("'")[0] for words in said}
    assert len(ports) == 1
    assert group.cancelled == 2


def test_the_machines_of_a_group_count_though_the_command_says_one_before(tmp_path):
    settings = launching._name_machines(LaunchSettings(processes=3), ThreadGroup())[1]
    words = launch_command(settings, tmp_path, 0, tmp_path, 1.0)
    assert words.index("--num_machines=3") > words.index("--num_machines"), "of an option given twice the last counts"


def test_settings_that_start_machines_themselves_are_left_alone(tmp_path, monkeypatch):
    train(tmp_path, monkeypatch, ARGUMENTS, ThreadGroup(), more=("--num_machines=2",))
    assert (tmp_path / "launch.log").read_text().strip() == "[]"
    assert not (tmp_path / "launch_1.log").exists()


def test_where_another_process_fails_the_first_is_ended_and_the_stage_has_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "NOTICED", 0.5)
    program = "import sys, time; sys.exit(7) if '--machine_rank=1' in sys.argv else time.sleep(60)"
    program = program.replace("time.sleep(60)", "time.sleep(60 if '--machine_rank=0' in sys.argv else 0)")
    with refused("stage 0: `accelerate launch`", "-15", "launch.log"):
        train(tmp_path, monkeypatch, program, ThreadGroup())


def test_a_lost_node_is_the_reason_and_not_the_failure_that_it_leads_to(tmp_path, monkeypatch):
    with pytest.raises(NodeLostError):
        train(tmp_path, monkeypatch, "raise SystemExit(1)", ThreadGroup(lost=True))
