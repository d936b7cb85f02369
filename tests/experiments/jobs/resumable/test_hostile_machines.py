"""Long commands on a full disk, on one that is read-only, beside themselves, and under a clock that jumps."""

import contextlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.machines import jumping_clock
from tests.support.machines.small_disk import PLENTY, SmallDisk
from tests.support.processes.commands import HOUSE
from tests.support.processes.killable import begin, code_of, server
from tests.support.processes.long_commands import CASES, Case, write_inputs
from tests.support.processes.random_kills import Command, kill_at_random
from tests.support.processes.watching import assert_session_ends

ALONE = [name for name, case in CASES.items() if case.shares == 1]
STEADY = [name for name in CASES if name != "sweep on Ray"]  # processes of Ray's own go by the clock
DEEP = [pytest.param(name, marks=pytest.mark.deep) for name in CASES]
SUMMED_UP = {
    "SHA256SUMS",
    "results.json",
    "table.txt",
    "study.svg",
    "curves.svg",
    "failure.txt",
}  # of a study, anew after each attempt
LITTLE, FULL_DISKS = 1 << 12, 40  # bytes left at first, and again after each that is full
KILLS = 5  # of a command under a clock that jumps


class Bench:
    """A command on a disk of its own, or its shards side by side, in children of one server each."""

    def __init__(self, folder: Path, case: Case) -> None:
        write_inputs(folder)
        self.case, self.said = case, folder / "said.txt"
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self._servers = [self._stack.enter_context(server(case.kind, self.said)) for _ in range(case.shares)]
        self.disk = SmallDisk(folder / "disk", self._servers)
        self.out = self.disk.path / case.out
        self.lines = case.lines(folder, self.disk.path)

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)
        self.disk.close()

    def run(self) -> int:
        """Runs it: the exit code, of shards the largest. `said` holds what it said meanwhile."""
        os.truncate(self.said, 0)
        children = [begin(one, json.dumps(line)) for one, line in zip(self._servers, self.lines, strict=True)]
        codes = [code_of(one) for one in self._servers]
        for child in children:
            assert_session_ends(child, self.case.goodbye)
        return max(codes)

    def state(self) -> object:
        """What it wrote, as far as that must be the same at every end."""
        return self.case.state(self.out)

    def undisturbed(self) -> object:
        """What it writes where nothing is in its way."""
        return undisturbed(self.folder, self.case, self._servers)

    def assert_refused(self, *remedies: str) -> None:
        """Whatever failed ended with a line that names a place on the disk, and one of the remedies."""
        lines = [line for line in self.said.read_text().splitlines() if line.startswith("lakewright")]
        assert 0 < len(lines) <= max(self.case.shares, self.case.runs), lines
        for line in lines:
            assert str(self.disk.path) in line, line
            assert any(remedy in line for remedy in remedies), line
        assert "Traceback" not in self.said.read_text(), self.said.read_text()

    def finished(self) -> dict[Path, bytes]:
        """The bytes of what is finished: of files that are there whole, and of lines of those that grow."""
        files = [path for path in self.disk.path.rglob("*") if path.is_file() and not _unfinished(path)]
        return {path: _whole_lines(path) for path in files}


def _unfinished(path: Path) -> bool:
    """Whether it may be made anew; of a run a stage counts from its done.json on."""
    stages = [folder for folder in path.parents if folder.name.startswith(("stage_", "warmup"))]
    if not all((stage / "done.json").exists() for stage in stages) or path.name in SUMMED_UP:
        return True
    return any(part.startswith(".") and not part.endswith(".parts") for part in path.parts) or "whole" in path.name


def _whole_lines(path: Path) -> bytes:
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1] if path.suffix == ".jsonl" else data


@pytest.fixture
def bench(tmp_path, name):
    with Bench(tmp_path, CASES[name]) as opened:
        yield opened


def undisturbed(folder: Path, case: Case, servers: Sequence[subprocess.Popen]) -> object:
    """What the command writes in a folder where nothing is in its way."""
    Command(list(servers), case.lines(folder), case.workers, case.goodbye).run()
    return case.state(folder / case.out)


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_on_a_disk_that_is_full_again_and_again_nothing_is_lost_and_the_end_is_the_same(bench):
    expected, kept = bench.undisturbed(), {}
    for full in range(FULL_DISKS):
        bench.disk.leave(LITTLE << full // bench.case.fillings)
        if not (code := bench.run()):
            break
        assert code == 2 or (code == 1 and bench.case.runs > 1), bench.said.read_text()
        bench.assert_refused("free disk space and run the same command again")
        now = bench.finished()
        for path, data in kept.items():
            assert now[path].startswith(data), f"{path} was finished, and is altered"
        kept = now
    assert 0 < full < FULL_DISKS - 1, "the disk is full at least once, and the command comes to its end"
    assert bench.state() == expected


@pytest.mark.parametrize("name", DEEP)
def test_where_nothing_can_be_written_nothing_is_lost_and_the_end_is_the_same(bench):
    expected = bench.undisturbed()
    for room in (LITTLE, 16 * LITTLE, PLENTY):
        before = bench.finished()
        with bench.disk.read_only():
            assert bench.run() == 2, bench.said.read_text()
            bench.assert_refused("choose a folder that can be written", "check the path and the disk")
        assert bench.finished() == before
        bench.disk.leave(room)
        bench.run()
    assert bench.state() == expected


@pytest.mark.deep
@pytest.mark.parametrize("name", ALONE)
def test_of_two_commands_at_once_one_is_refused_while_the_other_works(tmp_path, name):
    case = CASES[name]
    write_inputs(tmp_path)
    both = tmp_path / "both"
    (line,) = case.lines(tmp_path, both)
    said = [tmp_path / "one.txt", tmp_path / "other.txt"]
    with server(case.kind, said[0]) as one, server(case.kind, said[1]) as other:
        for process in (one, other):
            begin(process, json.dumps(line))
        codes = [code_of(process) for process in (one, other)]
        expected = undisturbed(tmp_path, case, [one])
    for code, text in zip(codes, said, strict=True):
        problems = [words for words in text.read_text().splitlines() if words.startswith("lakewright")]
        assert len(problems) == (code == 2), problems
        assert all("another process" in words for words in problems), problems
    assert 0 in codes
    assert set(codes) <= {0, 2}, codes  # both end well where one begins after the other's end
    assert case.state(both / case.out) == expected


@pytest.mark.deep
@pytest.mark.parametrize("name", STEADY)
def test_a_clock_that_jumps_and_kills_change_nothing(tmp_path, name):
    case = CASES[name]
    write_inputs(tmp_path)
    path = os.pathsep.join([*jumping_clock.__path__, str(HOUSE)])
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server(case.kind, PYTHONPATH=path)) for _ in range(case.shares)]
        command = Command(servers, case.lines(tmp_path, tmp_path / "jumping"), case.workers, case.goodbye)
        kills = kill_at_random(command, tmp_path / "jumping" / case.out, case.state, KILLS, seed=0)
    with contextlib.ExitStack() as stack:
        expected = undisturbed(tmp_path, case, [stack.enter_context(server(case.kind)) for _ in range(case.shares)])
    assert all(end == expected for end in [kills.undisturbed, *kills.ends]), str(kills)
