"""The campaign: N times, one thing in one file that a command reads is damaged, and what the command does is judged.

python -m tests.campaigns corruption 1000

What is damaged follows from seed and number of a case alone, so that a case can be repeated by its number. Finished
cases are noted in a journal, so that a campaign that was killed resumes.
"""

import contextlib
import io
import os
import shutil
import signal
import tempfile
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest import mock

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.experiments import preset_files
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.jobs.resumable.journal import LineJournal
from tests.campaigns.corruption.commands import COMMANDS, Command, target_in, without_clock
from tests.campaigns.corruption.damages import TENSORS, damage_file, list_kinds
from tests.campaigns.corruption.fixtures import Main, enter_folder, make_fixtures, tiny_tier
from tests.campaigns.corruption.outside import outside_alike

LIMIT = 60.0  # seconds, within which a command on so little ends
REFUSED, SAME, DIFFERENT = "refused", "same", "different"
SILENT, TRACEBACK, HANG = "silent", "traceback", "hang"
OUTCOMES = (REFUSED, SAME, DIFFERENT, SILENT, TRACEBACK, HANG)
FAULTS = (SILENT, TRACEBACK, HANG)
MOST_SHOWN = 3  # faults of a command and a kind of file
ERROR = "lakewright: "
SHOWN = (b"was changed after it was written", b"Cannot show this page")  # what a page says instead of a result
HEAD = ("command", "file", "damaged", *OUTCOMES)


class Case(msgspec.Struct, frozen=True):
    """A case of a campaign of `seed`: what was damaged and how, and the outcome.

    what: what the file is. detail: for a fault, what is wrong.
    """

    seed: int
    number: int
    command: str
    what: str
    file: str
    kind: str
    change: str
    outcome: str
    detail: str = ""


class Total(msgspec.Struct, frozen=True):
    """The counts of outcomes of a command and a kind of file. faults: some of the cases that are faults."""

    command: str
    what: str
    outcomes: dict[str, int]
    faults: list[Case]


class Ended(NamedTuple):
    """The result of a command: its exit code, what it printed and wrote, its errors, and the end of a traceback."""

    code: int
    result: dict[str, bytes]
    errors: list[str]
    trace: str = ""


class TooLongError(BaseException):
    """A command takes longer than it may."""


def corrupt_files(
    main: Main,
    count: int,
    seed: int = 0,
    journal: Path | None = None,
    only: int | None = None,
    on_progress: Callable[[int], object] = lambda cases: None,
    named: str = "",
) -> list[Total]:
    """Runs `count` cases, or the one of the number `only`.

    Args:
        main: the program.
        seed: gives other cases.
        journal: keeps each finished case; those that it holds are not run again. The small folders that are damaged lie
            beside it.
        on_progress: gets how many more are done.
        named: only commands whose name holds one of these texts, with commas between them.

    Raises InputError if the journal is of another campaign, and if no command has such a name.
    """
    commands = [command for command in COMMANDS if any(text.strip() in command.name for text in named.split(","))]
    if not commands:
        raise InputError(
            f"--commands is {named!r:.60}, of which the campaign has none; run it without, to see their names"
        )
    with contextlib.ExitStack() as stack:
        place = Path(f"{journal}.folders") if journal else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        needed = {folder for command in commands for folder in command.folders}
        trials = Trials(main, make_fixtures(place.absolute(), main, needed), commands, seed)
        if only is not None:
            return sum_up([trials.run(only)])
        kept = stack.enter_context(LineJournal(journal, Case)) if journal else None
        found = _read_cases(kept, journal, seed, commands) if kept and journal else []
        on_progress(len(found))
        for number in range(len(found), count):
            found.append(trials.run(number))
            if kept:
                kept.add(found[-1])
            on_progress(1)
    return sum_up(found)


def _read_cases(kept: LineJournal[Case], path: Path, seed: int, commands: Sequence[Command]) -> list[Case]:
    found, names = list(kept), {command.name for command in commands}
    if others := {case.command for case in found} - names:
        raise InputError(f"{path}: holds cases of {min(others)!r}; repeat the same --commands, or choose another file")
    for place, case in enumerate(found):
        if (case.seed, case.number) != (seed, place):
            raise InputError(
                f"{path}:{place + 1}: is case {case.number} of seed {case.seed}, not {place} of seed {seed}; "
                "repeat that seed, or choose another file"
            )
    return found


class Trials:
    """Runs cases on copies of the fixtures, which all lie at one place, as some records hold paths.

    Args:
        main: the program.
        fixtures: the folder that is copied.
        commands: that are run.
        seed: gives other cases.
    """

    def __init__(self, main: Main, fixtures: Path, commands: Sequence[Command], seed: int) -> None:
        self._main, self._fixtures, self._commands, self._seed = main, fixtures, commands, seed
        self._work = fixtures.parent / "work"
        self._expected: dict[str, Ended] = {}
        weights = np.array([command.weight for command in commands])
        self._weights = weights / weights.sum()

    def run(self, number: int) -> Case:
        """The case of a number."""
        random = np.random.default_rng((self._seed, number))
        command = self._commands[int(random.choice(len(self._commands), p=self._weights))]
        targets = command.targets(self._fixtures)
        kinds = sorted({what for what, _ in targets})
        what = kinds[int(random.integers(len(kinds)))]
        files = [file for name, file in targets if name == what]
        file = files[int(random.integers(len(files)))]
        expected = self._expect(command)
        self._copy(command)
        target = target_in(self._work, self._fixtures, file)
        possible = list_kinds(target)
        kind = possible[int(random.integers(len(possible)))]
        before, times = target.path.read_bytes(), {path: path.stat() for path in (target.path, target.path.parent)}
        target.path.unlink()  # it may be a link
        target.path.write_bytes(before)
        change = damage_file(target, kind, random)
        for path, stat in times.items():
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # a disk that errs does not say when
        damaged = without_clock(target.path.read_bytes())
        ended = self._call(command)
        if ended.result.get(file) == damaged:  # the file itself is not a result
            ended = ended._replace(result=ended.result | {file: expected.result.get(file, b"")})
        outcome, detail = judge(ended, expected, command.is_input(file))
        return Case(self._seed, number, command.name, what, file, kind, change, outcome, detail)

    def _expect(self, command: Command) -> Ended:
        """The result of a command with undamaged files, the same each time."""
        if command.name not in self._expected:
            self._copy(command)
            first = self._call(command)
            self._copy(command)
            second = self._call(command)
            if first != second or first.code not in (0, 1):
                differing = _list_differing(first, second)
                raise RuntimeError(f"{command.name}: differs each time in {differing}: {second.errors} {second.trace}")
            self._expected[command.name] = first
        return self._expected[command.name]

    def _copy(self, command: Command) -> None:
        """Copies the folders of a command. Weights, which no command writes in place, are links unless damaged."""
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        for folder in command.folders:
            source, copy = self._fixtures / folder, self._work / folder
            if source.is_dir():
                shutil.copytree(source, copy, symlinks=True, copy_function=_copy_file)
            else:
                shutil.copy2(source, copy)

    def _call(self, command: Command) -> Ended:
        said, problems, code, trace = io.StringIO(), io.StringIO(), -1, ""
        presets = self._work / "presets" if "presets" in command.folders else preset_files.FOLDER
        with (
            enter_folder(self._work),
            tiny_tier(),
            outside_alike(),
            mock.patch.object(preset_files, "FOLDER", presets),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(problems),
            _limit_time(LIMIT),
        ):
            try:
                code = self._main(list(map(str, command.words)))
            except TooLongError:
                trace = HANG
            except BaseException:  # whatever it is, it is the finding
                trace = "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
        errors = [line for line in problems.getvalue().splitlines() if line.startswith(ERROR)]
        result = dict(command.results(self._work)) | {"stdout": without_clock(said.getvalue().encode())}
        return Ended(code, result, errors, trace)


def judge(ended: Ended, expected: Ended, harmless: bool) -> tuple[str, str]:
    """The outcome of a case, and what is wrong. harmless: whether another result is right.

    ended, expected: what the command did with damaged and with undamaged files.
    """
    if ended.trace:
        return (HANG, "") if ended.trace == HANG else (TRACEBACK, ended.trace)
    if ended.code == 2:
        new = [error for error in ended.errors if error not in expected.errors]
        one = len(new) == 1 and not ended.result["stdout"]
        return (REFUSED, "") if one else (TRACEBACK, f"refused in {len(new)} lines: {new}")
    if (ended.code, ended.result) == (expected.code, expected.result):
        return SAME, ""
    differing = _list_differing(ended, expected)
    if ended.code == 1 and ended.errors != expected.errors:
        return (DIFFERENT if harmless else REFUSED), ""
    if any(words in ended.result.get(name, b"") for name in differing for words in SHOWN):
        return REFUSED, ""
    return (DIFFERENT, "") if harmless else (SILENT, f"differs in {', '.join(differing[:5])}")


def _list_differing(one: Ended, other: Ended) -> list[str]:
    """The names of the results that differ."""
    names = sorted({*one.result, *other.result})
    return [name for name in names if one.result.get(name) != other.result.get(name)]


def _copy_file(source: str, copy: str) -> str:
    if source.endswith(TENSORS):
        os.link(source, copy)
        return copy
    return shutil.copy2(source, copy)


@contextlib.contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise TooLongError

    before: Any = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def sum_up(cases: list[Case]) -> list[Total]:
    """The cases by command and kind of file."""
    alike: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        alike[case.command, case.what].append(case)
    totals = []
    for (command, what), some in sorted(alike.items()):
        faults = [case for case in some if case.outcome in FAULTS]
        totals.append(Total(command, what, dict(Counter(case.outcome for case in some)), faults[:MOST_SHOWN]))
    return totals


def has_faults(totals: list[Total]) -> bool:
    """Whether a result was silently different, or a command ended in a traceback or not at all."""
    return any(total.faults for total in totals)


def format_totals(totals: list[Total]) -> str:
    """The campaign as Markdown, and the faults, each with its number."""
    rows = [_format_row(total.command, total.what, total.outcomes) for total in totals]
    pooled: Counter[str] = Counter()
    for total in totals:
        pooled.update(total.outcomes)
    faults = [msgspec.json.encode(case).decode() for total in totals for case in total.faults]
    return "\n".join([*format_markdown(HEAD, [*rows, _format_row("all", "", pooled)]), *faults])


def _format_row(command: str, what: str, outcomes: dict[str, int]) -> tuple[str, ...]:
    return command, what, str(sum(outcomes.values())), *(str(outcomes.get(name, 0)) for name in OUTCOMES)
