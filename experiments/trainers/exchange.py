"""Problems of a folder as lines of a file, and answers to them from such a file, for programs in any language.

    {"place": 0, "split": "train", "seed": 0, "version": 0, "key": "...", "stratum": "2", "knobs": {}, "prompt": "..."}
    {"place": 0, "split": "train", "seed": 0, "answers": ["57", "58"], "tokens": [2, 2], "group": "step 1 place 0"}

A line of answers may be a problem's line to which a program added `answers`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import decode_line, make_whole, replacing
from lakewright.engineer.number_limits import WholeNumber
from lakewright.engineer.problems import Problem, Verdict
from lakewright.experiments.trainers.outcome_lines import Split
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource


class ProblemLine(msgspec.Struct, frozen=True):
    """A problem. given: the values of its givens, if the space has any."""

    place: int
    split: Split
    seed: int
    version: int
    key: str
    stratum: str
    knobs: dict[str, int | float | bool]
    prompt: str
    given: dict[str, int | float] = {}


class ProblemAnswers(msgspec.Struct, frozen=True):
    """Answers to a problem; further fields are left alone, but a `key` must be the problem's.

    outcomes: a verdict or a reward for each answer, as in `OutcomeRecorder.record`; by default the environment judges.
    tokens: the length of each answer. group: the name that these answers share; by default a digest of the line, so
    that a line which is recorded twice counts once.
    """

    place: WholeNumber
    answers: Annotated[list[str], msgspec.Meta(min_length=1)]
    split: Split = "train"
    seed: int = 0
    outcomes: list[Verdict | float] | None = None
    tokens: list[WholeNumber] | None = None
    group: str = ""
    key: str | None = None


class RecordedAnswers(msgspec.Struct, frozen=True):
    """The rewards of the answers to a problem, and their verdicts."""

    place: int
    split: Split
    rewards: list[float]
    valid: list[bool]
    failures: list[str]


def draw_lines(
    folder: Path, count: int, *, seed: int = 0, first: int | None = None, held_out: bool = False
) -> list[ProblemLine]:
    """Problems of a folder, of the current version, whose places are pinned; or all held-out problems.

    Args:
        folder: the engineer's folder.
        count: how many.
        seed: the seed of the problems.
        first: the first place, whose problem is always the same; by default the next that nobody has asked for.
        held_out: whether to give the held-out problems instead.

    Raises InputError without an engineer, or without held-out problems.
    """
    source = ProblemSource(folder, seed)
    if held_out and not source.held_out:
        raise InputError(f"{folder}: has no held-out problems; begin the engineer with --held-out 200")
    source.position = source.find_free_place() if first is None else first
    split: Split = "held_out" if held_out else "train"
    start = 0 if held_out else source.position
    problems = source.held_out if held_out else source.take(count)
    return [_describe_problem(place, split, source, problem) for place, problem in enumerate(problems, start)]


def _describe_problem(place: int, split: Split, source: ProblemSource, problem: Problem) -> ProblemLine:
    space, cell = source.environment.space, problem.cell
    return ProblemLine(
        place=place,
        split=split,
        seed=source.seed,
        version=problem.version,
        key=problem.key,
        stratum=str(cell.stratum),
        knobs={knob.name: value for knob, value in zip(space.knobs, cell.values, strict=True)},
        prompt=problem.prompt,
        given={given.name: value for given, value in zip(space.givens, cell.given, strict=False)},
    )


def record_lines(folder: Path, path: Path) -> list[RecordedAnswers]:
    """Records the answers of a file, a line for each problem, and returns what they earned.

    All lines are judged first. Called again after a kill, it counts each answer once. Raises InputError, and records
    nothing, on a line of another form, on a place that was not drawn, and as `OutcomeRecorder.record`.
    """
    sources: dict[int, ProblemSource] = {}
    recorder, found = OutcomeRecorder(folder), []
    for number, text in _number_lines(path):
        where = f"{path}:{number}"
        try:
            line = msgspec.convert(make_whole(decode_line(text)), ProblemAnswers)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(
                f"{where}: {error}; write place and answers, see lakewright engineer record --help"
            ) from None
        if line.seed not in sources:
            sources[line.seed] = ProblemSource(folder, line.seed)
        problem = _find_problem(line, sources[line.seed], where)
        if line.key not in (None, problem.key):
            said = f"key is {line.key!r:.40}, but place {line.place} is the problem {problem.key!r:.40} here"
            raise InputError(f"{where}: {said}; record answers in the folder that drew the problems")
        try:
            judged = recorder.judge_answers(problem, line.answers, line.outcomes, split=line.split, tokens=line.tokens)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        found.append((line, problem, judged, line.group or f"file {hashlib.sha256(text).hexdigest()[:32]}"))
    for line, problem, (verdicts, lengths), group in found:
        recorder.append_verdicts(problem, verdicts, lengths, split=line.split, group=group, first=0)
    return [_describe_verdicts(line, verdicts) for line, _, (verdicts, _), _ in found]


def _number_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    if not path.is_file():
        raise InputError(f"{path}: is not a file; write a line of answers for each problem into it")
    text = path.read_bytes()
    if text and not text.endswith(b"\n"):
        text += b"\n"
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield number, line.strip()


def _find_problem(line: ProblemAnswers, source: ProblemSource, where: str) -> Problem:
    if line.split == "held_out":
        if line.place >= len(source.held_out):
            most = len(source.held_out)
            raise InputError(f"{where}: place is {line.place}, but there are {most} held-out problems; draw them again")
        return source.held_out[line.place]
    problem = source.find_pinned(line.place)
    if problem is None:
        raise InputError(f"{where}: place {line.place} of seed {line.seed} was not drawn here; draw it first")
    return problem


def _describe_verdicts(line: ProblemAnswers, verdicts: Sequence[Verdict]) -> RecordedAnswers:
    return RecordedAnswers(
        line.place,
        line.split,
        [float(verdict.reward) for verdict in verdicts],
        [verdict.valid for verdict in verdicts],
        [verdict.failure for verdict in verdicts],
    )


def write_lines(path: Path, lines: Sequence[msgspec.Struct]) -> None:
    """Writes a file with a line for each."""
    with replacing(path) as beside:
        beside.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def refuse_inside(folder: Path, out: Path | None) -> None:
    """Raises InputError if a file to write is in the folder of an engineer, whose own files it might replace."""
    if out is not None and out.absolute().resolve().is_relative_to(folder.absolute().resolve()):
        raise InputError(f"{out}: is inside {folder}, which has files of its own; choose another --out")
