"""The groups of answers in a folder's outcomes: answers that count, and the groups that they make as they are read."""

import functools
from array import array
from collections import Counter

import msgspec
import numpy as np

from lakewright.core_jax.results import RolloutGroup
from lakewright.engineer.cells import Cell
from lakewright.engineer.problems import Group, Problem, Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.trainers.outcome_lines import Line
from lakewright.experiments.trainers.stratum_counts import MOST_OPEN

FEW = 32  # answers of a group


class Answer(msgspec.Struct, frozen=True):
    """A line that counts.

    group: the name of its group, of one version and one problem. end: the bytes up to its end. fresh: whether the
    engineer has not read it yet.
    """

    line: Line
    cell: Cell
    group: bytes
    end: int
    fresh: bool

    @property
    def verdict(self) -> Verdict:
        """The verdict on the answer."""
        line = self.line
        return Verdict(line.valid, line.reward, line.failure, line.grades)

    @property
    def problem(self) -> Problem:
        """The problem, without its text."""
        return Problem("", cell=self.cell, version=self.line.version, key=self.line.key)


class GroupBook:
    """The groups of answers to problems, of one version and one cell each, as their answers are read."""

    def __init__(self, space: DesignSpace) -> None:
        self._codes = {name: place for place, name in enumerate(["", *space.failures], 1)}  # 0: a valid answer
        self._open: dict[bytes, tuple[Problem, array[int], array[float], array[int]]] = {}

    def add_answer(self, answer: Answer) -> bool:
        """Adds an answer; whether it is the first of its group."""
        line = answer.line
        if new := answer.group not in self._open:
            self._open[answer.group] = (answer.problem, array("H"), array("d"), array("q"))
        _, codes, rewards, tokens = self._open[answer.group]
        codes.append(0 if line.valid else self._codes[line.failure])
        rewards.append(line.reward)
        tokens.append(line.tokens)
        return new

    def close_some(self) -> list[Group]:
        """The half of the groups that began first, if there are too many to begin another."""
        return self.close_groups(MOST_OPEN // 2) if len(self._open) >= MOST_OPEN else []

    def close_groups(self, count: int | None = None) -> list[Group]:
        """The groups that began first, which get no further answers; by default all."""
        names = list(self._open)[:count]
        return [self._make_group(*self._open.pop(name)) for name in names]

    def _make_group(
        self, problem: Problem, codes: "array[int]", rewards: "array[float]", tokens: "array[int]"
    ) -> Group:
        count = _count_few if len(codes) <= FEW else _count_rewards
        fields = msgspec.structs.asdict(count(codes.tobytes(), rewards.tobytes())) | {"key": problem.key}
        counted = Counter(codes)
        fields["failures"] = {name: counted[code] for name, code in self._codes.items() if name and counted[code]}
        # A trainer that gives no lengths gives 0 for all; a single answer may be empty.
        fields["tokens"] = sum(tokens) if any(tokens) else msgspec.UNSET
        return Group(**fields, rewards=tuple(rewards), cell=problem.cell, version=problem.version)


def _count_rewards(codes: bytes, rewards: bytes) -> RolloutGroup:
    return RolloutGroup.of("", np.frombuffer(codes, "H") == 0, np.frombuffer(rewards))


_count_few = functools.lru_cache(1 << 10)(_count_rewards)  # most groups are like others
