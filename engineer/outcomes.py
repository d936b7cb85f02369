"""Outcomes: tallies by stratum of answers to problems."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.difficulty.model import Observation
from lakewright.engineer.problems import Problem, Verdict, find_fault_of_verdict
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import check_cell_of
from lakewright.engineer.tally import Tally, pool_tallies, subtract_tally


class InCell(Protocol):
    """A problem."""

    @property
    def cell(self) -> Cell:
        """The cell that it was drawn from."""

    @property
    def key(self) -> str:
        """Its key."""


class Outcomes(dict[Stratum, Tally]):
    """Tallies by stratum.

    valid: a digit for each problem in their order, 1 if the answer is valid. problem_keys: the problems' keys; empty if
    they are not known. answers: how many there are to problems of each cell, and valid or not; None if it is not known.
    observations: what the difficulty model is fitted to, if problems have several answers; else it is `answers`.
    """

    valid: str = ""
    problem_keys: tuple[str, ...] = ()
    answers: Counter[tuple[Cell, bool]] | None = None
    observations: Sequence[Observation] | None = None

    @classmethod
    def of(cls, space: DesignSpace, problems: Iterable[Problem], verdicts: Iterable[Verdict]) -> "Outcomes":
        """The outcomes of problems with these verdicts on their answers.

        Raises InputError unless there is a verdict for each problem that the space allows, and on a problem of another
        space.
        """
        problems, verdicts = list(problems), list(verdicts)
        _check_verdicts(space, problems, verdicts)
        pairs = list(zip(problems, verdicts, strict=True))
        outcomes = cls(tally_by_stratum(((problem.cell, count_verdict(one, space)) for problem, one in pairs), space))
        outcomes.valid = "".join("01"[verdict.valid] for _, verdict in pairs)
        outcomes.problem_keys = tuple(problem.key for problem, _ in pairs)
        outcomes.answers = Counter((problem.cell, verdict.valid) for problem, verdict in pairs)
        return outcomes


def _check_verdicts(space: DesignSpace, problems: Sequence[Problem], verdicts: Sequence[Verdict]) -> None:
    """Raises InputError as `Outcomes.of`."""
    if len(problems) != len(verdicts):
        said = f"{len(verdicts)} verdict{'s' * (len(verdicts) != 1)} on {len(problems)} problems"
        raise InputError(f"Outcomes.of: {said}; give one for each")
    for problem, verdict in zip(problems, verdicts, strict=True):
        check_cell_of(problem, Problem, space, "Outcomes.of: problems")
        if fault := find_fault_of_verdict(verdict, space):
            raise InputError(f"Outcomes.of: the verdict on {problem.prompt!r:.60}: {fault}")


def tally_by_stratum(parts: Iterable[tuple[Cell, Tally]], space: DesignSpace) -> dict[Stratum, Tally]:
    """The tallies of problems of these cells by stratum, with the counts of the problems that have each trait."""
    strata: dict[Stratum, list[tuple[Cell, Tally]]] = defaultdict(list)
    for cell, part in parts:
        strata[cell.stratum].append((cell, part))
    return {stratum: _tally_stratum(strata[stratum], space) for stratum in space.sort_strata(strata)}


def _tally_stratum(parts: Sequence[tuple[Cell, Tally]], space: DesignSpace) -> Tally:
    whole = pool_tallies(part for _, part in parts)
    none = subtract_tally(whole, whole)  # which names the same failures and grades
    traits = {
        space.knobs[place].name: pool_tallies([none, *(part for cell, part in parts if cell.values[place])])
        for place in space.traits
    }
    return msgspec.structs.replace(whole, traits=traits)


def count_verdict(verdict: Verdict, space: DesignSpace) -> Tally:
    """The tally of one answer. An invalid one counts as such even if the space doesn't have its failure."""
    failures = {name: int(not verdict.valid and verdict.failure == name) for name in space.failures}
    grades = {name: int(verdict.valid and name in verdict.grades) for name in space.grades}
    return Tally(1, int(verdict.valid), failures, grades)


class HeldOutAnswers(NamedTuple):
    """Answers to the held-out problems: a 0 or 1 for each, and a digest of the problems, as `order_answers` says."""

    digits: str
    digest: str


def order_answers(outcomes: Any, held_out: Sequence[InCell] | None) -> HeldOutAnswers:
    """The digits of held-out answers in an order that is the same in each round, and a digest of the problems.

    They are in the order of `held_out`, or without held-out problems in the order of their keys. Outcomes that name no
    problems keep their order, and have an empty digest. Raises InputError if the problems are not the ones held out.
    """
    valid, keys = getattr(outcomes, "valid", ""), getattr(outcomes, "problem_keys", ())
    if not keys:
        return HeldOutAnswers(valid, "")
    order = sorted(range(len(keys)), key=keys.__getitem__)
    digest = hashlib.sha256("\n".join(keys[place] for place in order).encode()).hexdigest()[:16]
    if held_out is None:
        return HeldOutAnswers("".join(valid[place] for place in order), digest)
    own = [problem.key for problem in held_out]
    if sorted(keys) != sorted(own):
        said = f"redesign: {len(keys)} answers, {(Counter(keys) & Counter(own)).total()} of them to held-out problems"
        raise InputError(f"{said}; give environment.tallies an answer to each of the {len(own)} problems in held_out")
    digits = dict(zip(sorted(range(len(own)), key=own.__getitem__), (valid[place] for place in order), strict=True))
    return HeldOutAnswers("".join(digits[place] for place in range(len(own))), digest)
