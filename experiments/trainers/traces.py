"""The traces of verifiers and prime-rl, read into the outcomes of an engineer's folder.

A line is an episode. prime-rl writes `rollouts/step_N/train/all/traces.jsonl` in the folder of its run, `vf-eval` one
`traces.jsonl`.
"""

import contextlib
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import make_whole
from lakewright.engineer.environment import Environment
from lakewright.engineer.number_limits import MOST_REWARD, WholeNumber, is_reward
from lakewright.engineer.problems import Problem, Verdict
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.outcome_index import (
    NO_TRACES,
    Names,
    Prefix,
    TraceFile,
    TraceIndex,
    digest_name,
    read_index,
    write_index,
)
from lakewright.experiments.trainers.outcome_lines import Split, read_lines
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource

TRACES, FAILURE = "traces.jsonl", "failure/"  # the name of a file, and the beginning of a metric's
LONGEST_EPISODE = 1 << 28  # bytes of a line


class Reward(msgspec.Struct, frozen=True):
    """A reward of a trace."""

    score: float
    weight: float = 1.0


class Trace(msgspec.Struct, frozen=True):
    """The actions of one agent. metrics: `valid`, and 1 for each `failure/NAME` and `grade/NAME` that applies."""

    ok: bool = False
    rewards: dict[str, Reward | None] = {}
    metrics: dict[str, float | None] = {}
    num_output_tokens: WholeNumber | None = 0


class TaskData(msgspec.Struct, frozen=True):
    """The origin of a problem: the fields of `EngineerData`."""

    place: WholeNumber
    seed: WholeNumber
    version: WholeNumber
    split: Split


class TracedTask(msgspec.Struct, frozen=True):
    """The task of an episode; `data` of other tasksets has other fields."""

    data: dict[str, Any]


class Identity(msgspec.Struct, frozen=True):
    """The identity of a group or a run."""

    id: str


class Episode(msgspec.Struct, frozen=True):
    """A line of `traces.jsonl`; further fields are left alone."""

    id: str
    task: TracedTask
    traces: list[Trace]
    group: Identity | None = None
    run: Identity | None = None


class Copied(msgspec.Struct, frozen=True):
    """The counts of lines: recorded now, recorded before, and left out, by reason."""

    recorded: int
    before: int
    left_out: dict[str, int]


class TracedAnswers(msgspec.Struct, frozen=True):
    """Of a line of `outcomes.jsonl`, what names its answer."""

    group: str = ""
    answer: int | None = None


class LeftOutError(Exception):
    """An episode that doesn't count as an outcome, and why."""


def record_traces(folder: str | Path, run: str | Path) -> Copied:
    """Appends the outcomes of episodes, each once however often this is called; only new lines are decoded.

    folder: the engineer's folder. run: the folder of a run of prime-rl or of `vf-eval`, or a file of traces. A last
    line that is still being written waits for the next time. Episodes of other tasksets, that failed before they were
    scored, or that cannot be read are left out.

    Raises InputError without an engineer or no such run.
    """
    opened, files = EngineerFolder(folder), _list_files(Path(run))
    path = opened.files.outcomes_path
    index = _read_outcomes(path, read_index(opened.files.traces_path, NO_TRACES))
    copier, read = Copier(opened, Names(index.names)), dict(index.files)
    recorded = before = 0
    for file in files:
        copied = _copy_file(copier, file, read.get(str(file), TraceFile()))
        recorded, before = recorded + copied.new, before + copied.read.recorded - copied.new
        read[str(file)] = copied.read
    # With what was just recorded, so that its loss is noticed too.
    index = _read_outcomes(path, msgspec.structs.replace(index, files=read))
    write_index(opened.files.traces_path, index)
    left_out: Counter[str] = Counter()
    for file in files:
        left_out.update(read[str(file)].left_out)
    return Copied(recorded, before, dict(left_out))


class CopiedFile(NamedTuple):
    """The counts of a file of traces, and how many of its episodes are newly recorded."""

    read: TraceFile
    new: int


def _copy_file(copier: "Copier", file: Path, read: TraceFile) -> CopiedFile:
    """Records the episodes of a file. read: what was read before, if the file still begins with it."""
    prefix = Prefix(file)
    if prefix.digest(read.offset) != read.digest:
        read, prefix = TraceFile(), Prefix(file)
    recorded, left_out, new, end = read.recorded, Counter(read.left_out), 0, read.offset
    for after, line in read_lines(file, read.offset, LONGEST_EPISODE):
        end = after
        try:
            new += copier.copy_episode(line)
            recorded += 1
        except LeftOutError as error:
            left_out[str(error)] += 1
    return CopiedFile(TraceFile(end, prefix.digest(end), recorded, dict(left_out)), new)


def _read_outcomes(path: Path, index: TraceIndex) -> TraceIndex:
    """The index, updated with all outcomes; it starts over if the outcomes don't begin as it says."""
    prefix = Prefix(path)
    if prefix.digest(index.offset) != index.digest:
        prefix, index = Prefix(path), NO_TRACES
    names, end = Names(index.names), index.offset
    for after, text in read_lines(path, index.offset):
        end = after
        try:
            line = msgspec.json.decode(text, type=TracedAnswers) if isinstance(text, bytes) else TracedAnswers()
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue  # of another writer; the engineer counts it
        names.add(_name_answer(line.group, line.answer))
    return msgspec.structs.replace(index, offset=end, digest=prefix.digest(end), names=names.encode())


def _name_answer(group: str, number: int | None) -> bytes:
    return digest_name(msgspec.json.encode((group, number)))


class Copier:
    """Turns episodes into outcomes of a folder. answers: the names of those that were recorded before."""

    def __init__(self, opened: EngineerFolder, answers: Names) -> None:
        self.path, self.environment, self.held_out = opened.path, opened.environment, opened.held_out()
        self._recorder = OutcomeRecorder(opened.path, opened.environment)
        self._sources: dict[int, ProblemSource] = {}
        self._decoder = msgspec.json.Decoder(Episode)
        self._answers = answers

    def copy_episode(self, line: bytes | int) -> bool:
        """Appends an episode; whether it wasn't there before. line: its length if it is too long.

        Raises LeftOutError.
        """
        if isinstance(line, int):
            raise LeftOutError(f"over {LONGEST_EPISODE >> 20} MB")
        try:
            episode = self._decode_episode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise LeftOutError("no episode") from None
        try:
            data = msgspec.convert(make_whole(episode.task.data), TaskData)
        except msgspec.ValidationError:
            raise LeftOutError("another taskset") from None
        if len(episode.traces) != 1:
            raise LeftOutError(f"{len(episode.traces)} traces")
        trace = episode.traces[0]
        verdict = _make_verdict(self.environment, trace)
        problem = self._find_problem(data)
        named = episode.group or episode.run or episode
        group = f"{data.split} {data.seed} {data.place} {named.id}"
        number = int.from_bytes(hashlib.sha256(episode.id.encode()).digest()[:6], "big")
        if not self._answers.add(_name_answer(group, number)):
            return False
        tokens = [trace.num_output_tokens or 0]
        try:
            self._recorder.append_verdicts(problem, [verdict], tokens, split=data.split, group=group, first=number)
        except InputError:  # such as an id that does not fit into a line
            raise LeftOutError("a trace that cannot be recorded") from None
        return True

    def _decode_episode(self, line: bytes) -> Episode:
        """The episode of a line, also if another tool wrote whole numbers as floats."""
        with contextlib.suppress(msgspec.ValidationError):
            return self._decoder.decode(line)
        return msgspec.convert(make_whole(msgspec.json.decode(line)), Episode)

    def _find_problem(self, data: TaskData) -> Problem:
        if data.split == "held_out":
            if data.place >= len(self.held_out):
                raise LeftOutError("an unknown place")
            return self.held_out[data.place]
        if data.seed not in self._sources:
            if not (self.path / f"pins-{data.seed}.jsonl").exists():  # which a source would make
                raise LeftOutError("an unknown seed")
            self._sources[data.seed] = ProblemSource(self.path, data.seed)
        problem = self._sources[data.seed].find_pinned(data.place)
        if problem is None:
            raise LeftOutError("an unknown place")
        if problem.version != data.version:
            raise LeftOutError("another version than the place has")
        return problem


def _make_verdict(environment: Environment, trace: Trace) -> Verdict:
    """The verdict that the task wrote down as metrics."""
    valid, space = trace.metrics.get("valid"), environment.space
    scored = [reward for reward in trace.rewards.values() if reward is not None]
    if not trace.ok or valid is None or len(scored) < len(trace.rewards):
        raise LeftOutError("not scored")
    reward = sum(one.score * one.weight for one in scored)
    if not is_reward(reward):
        raise LeftOutError(f"a reward over {MOST_REWARD:g}")
    if valid:
        grades = tuple(name for name in space.grades if trace.metrics.get(f"grade/{name}"))
        return Verdict(True, reward, grades=grades)
    failures = [name.removeprefix(FAILURE) for name, one in trace.metrics.items() if name.startswith(FAILURE) and one]
    # If it isn't declared, the answer counts without it: left out, it would make all the rest valid.
    return Verdict(False, reward, failures[0] if len(failures) == 1 else "")


def _list_files(run: Path) -> list[Path]:
    """All files of traces."""
    if not run.exists():
        raise InputError(f"{run}: no run was found; give the folder that has {TRACES} in it")
    return [file.resolve() for file in (sorted(run.rglob(TRACES)) if run.is_dir() else [run])]
