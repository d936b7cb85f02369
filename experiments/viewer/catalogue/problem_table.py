"""The problems in text of a run, each with policies' answers: the held-out ones, and a stage's."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import check_digest
from lakewright.engineer.problems import Problem
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_stage_problems
from lakewright.experiments.viewer.catalogue.board_table import PAGE, VERDICTS
from lakewright.experiments.viewer.catalogue.board_tables import find_growing_file, policies_of
from lakewright.experiments.viewer.catalogue.discovery import MissingError

T = TypeVar("T")
MOST_ANSWERS = 8  # shown of a problem
_GROUP = msgspec.json.Decoder(RolloutGroup)


class ProblemFilters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter of problems; an empty field doesn't filter. policy: whose answers, by default the last."""

    stratum: str = ""
    verdict: str = ""
    policy: str = ""
    page: int = 0

    def __post_init__(self) -> None:
        if self.verdict not in ("", *VERDICTS):
            raise ValueError(f"verdict is {self.verdict!r:.40}; choose from {', '.join(VERDICTS)}")
        if not 0 <= self.page < 1 << 40:
            raise ValueError(f"page is {self.page}; pages count from 0")


class TextAnswer(msgspec.Struct, frozen=True):
    """An answer; its failure is `none` if it is valid."""

    text: str = ""
    failure: str = "none"


class AnsweredProblem(NamedTuple):
    """A problem and what was answered. place: in its file. valid: how many of `answers` sampled are valid."""

    place: int
    problem: Problem
    shown: list[TextAnswer]
    valid: int
    answers: int

    @property
    def verdict(self) -> str:
        """`all`, `none` or `some` answers are valid; empty without answers."""
        if not self.answers:
            return ""
        return "valid" if self.valid == self.answers else "mixed" if self.valid else "failed"


class ProblemTable(NamedTuple):
    """Problems in the order of their file. title: what they are; policies: whose answers there are."""

    title: str
    problems: list[AnsweredProblem]
    policies: list[str]

    def page(self, filters: ProblemFilters) -> tuple[list[AnsweredProblem], int]:
        """The problems of a page, and how many there are on all pages."""
        found = [one for one in self.problems if _is_wanted(one, filters)]
        return found[filters.page * PAGE : (filters.page + 1) * PAGE], len(found)


def read_problem_table(folder: RunFolder, name: str, part: str, policy: str = "") -> ProblemTable:
    """The problems of a run with their answers.

    Args:
        folder: the run folder.
        name: the run's name.
        part: `held-out` or `stage-N`.
        policy: the policy whose answers to held-out problems are shown.

    Raises MissingError if the part doesn't exist yet, InputError if a file is damaged.
    """
    if part == "held-out":
        return _read_held_out(folder, name, policy)
    number = part.removeprefix("stage-")
    if not (part.startswith("stage-") and number.isascii() and number.isdigit() and len(number) < 4):
        raise MissingError(f"{name}: has no problems called {part!r:.40}; choose held-out or stage-0, stage-1 ...")
    stage = folder.stage(int(number))
    if not stage.problems.exists():
        raise MissingError(f"{name}: {stage.problems.name} of {part} does not exist yet; load the page again later")
    groups = _count_groups(find_growing_file(stage.groups))
    found = _join_answers(read_stage_problems(stage), _read_answers(find_growing_file(stage.rollouts)), groups)
    return ProblemTable(f"Problems of stage {int(number)}", found, [])


def _read_held_out(folder: RunFolder, name: str, policy: str) -> ProblemTable:
    if not folder.held_out.exists():
        raise MissingError(f"{name}: {folder.held_out.name} does not exist yet; load the page again later")
    policies = policies_of(folder)
    if policy and policy not in policies:
        raise MissingError(f"{name}: no policy {policy!r:.40} is validated; choose from {', '.join(policies)}")
    chosen = policy or next(reversed(policies), "")
    answers = _read_answers(policies[chosen].plans) if chosen else {}
    counts = {key: (sum(one.failure == "none" for one in given), len(given)) for key, given in answers.items()}
    of = f", answers of {chosen.replace('-', ' ').replace('warmup', 'the warm-up')}" if chosen else ""
    return ProblemTable(f"Held-out problems{of}", _join_answers(read_held_out(folder), answers, counts), list(policies))


def _join_answers(
    problems: list[Problem], answers: Mapping[str, list[TextAnswer]], counts: Mapping[str, tuple[int, int]]
) -> list[AnsweredProblem]:
    return [
        AnsweredProblem(place, one, answers.get(one.key, [])[:MOST_ANSWERS], *counts.get(one.key, (0, 0)))
        for place, one in enumerate(problems)
    ]


class _Line(msgspec.Struct):
    problem: str
    answers: list[TextAnswer]


def _read_answers(path: Path) -> dict[str, list[TextAnswer]]:
    """The answers to each problem, by its key; a line that is being written is ignored."""
    found: dict[str, list[TextAnswer]] = {}
    for line in _read_lines(path, _LINE):
        found.setdefault(line.problem, []).extend(line.answers)
    return found


def _count_groups(path: Path) -> dict[str, tuple[int, int]]:
    """The numbers of valid answers and of all answers, by problem."""
    valid: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for group in _read_lines(path, _GROUP):
        valid[group.key] += group.valid
        answers[group.key] += group.completions
    return {key: (valid[key], answers[key]) for key in answers}


def _read_lines(path: Path, decoder: msgspec.json.Decoder[T]) -> list[T]:
    """The lines of a file that are whole; empty if it isn't there. Raises InputError if one is damaged."""
    if not path.exists():
        return []
    check_digest(path)
    try:
        return list(map(decoder.decode, path.read_bytes().split(b"\n")[:-1]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not lines of JSON ({error}); run the stage again") from error


def _is_wanted(found: AnsweredProblem, filters: ProblemFilters) -> bool:
    stratum = not filters.stratum or str(found.problem.cell.stratum) == filters.stratum
    return stratum and filters.verdict in ("", found.verdict)


_LINE = msgspec.json.Decoder(_Line)
