"""Answers to the held-out problems of a folder: all count for the difficulty model, one of each problem for the
comparison of two policies.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from lakewright.engineer.cells import Stratum
from lakewright.engineer.difficulty import Observation, observe_groups
from lakewright.engineer.outcomes import Outcomes, count_verdict, tally_by_stratum
from lakewright.engineer.problems import Group, Problem
from lakewright.engineer.seen import pool_observations
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.experiments.trainers.answer_groups import Answer, GroupBook
from lakewright.experiments.trainers.versions import FirstAnswer

BEFORE_TRAINING = "before training"  # the group of an untrained policy's answers, each numbered by its problem's place
MOST_TALLIED = 1 << 10  # answers that are counted one by one

Find = Callable[[], Sequence[Problem]]


class TestedAnswers:
    """Fresh answers to held-out problems.

    count: how many there are. unknown: those to other problems, by key. untrained: the places of the problems that the
    policy answered before training.
    """

    __test__ = False  # for pytest, which takes it for tests

    def __init__(self, space: DesignSpace, find: Find | None, waiting: Mapping[str, FirstAnswer]) -> None:
        """Begins without answers.

        Args:
            space: the design space.
            find: finds the held-out problems of the folder; None without any.
            waiting: answers of earlier readings that wait for those to the other problems, by key.
        """
        self._space, self._find = space, find
        self._first = dict(waiting)
        self._some: list[Answer] = []
        self._strata: dict[Stratum, Tally] = {}
        self._groups, self._observed = GroupBook(space), list[Observation]()
        self.count = 0
        self.unknown = Counter[str]()
        self.untrained: set[int] = set()

    @functools.cached_property
    def _problems(self) -> Sequence[Problem]:
        return self._find() if self._find else ()

    @functools.cached_property
    def _keys(self) -> set[str]:
        return {problem.key for problem in self._problems}

    def add_answer(self, answer: Answer) -> None:
        """Adds an answer."""
        self.count += 1
        if answer.line.key in self._keys:
            self._note_first(answer)
            if answer.line.group == BEFORE_TRAINING and answer.line.answer is not None:
                self.untrained.add(answer.line.answer)
        elif self._keys:
            self.unknown[answer.line.key] += 1
        self._some.append(answer)
        if len(self._some) == MOST_TALLIED:
            self._tally_some()
        self._groups.add_answer(answer)
        self._observe(self._groups.close_some())

    def _note_first(self, answer: Answer) -> None:
        """Notes the answer if its group is another than before, or its number in the group a lower one."""
        line, group = answer.line, answer.group.hex()
        known = self._first.get(line.key)
        if known is None or known.group != group or (line.answer or 0) < (known.number or 0):
            self._first[line.key] = FirstAnswer(group, line.answer, line.valid)

    def _tally_some(self) -> None:
        answers, self._some = self._some, []
        parts = ((one.cell, count_verdict(one.verdict, self._space)) for one in answers)
        found = tally_by_stratum(parts, self._space)
        strata = [*self._strata, *(stratum for stratum in found if stratum not in self._strata)]
        self._strata = {
            stratum: pool_tallies(table[stratum] for table in (self._strata, found) if stratum in table)
            for stratum in strata
        }

    def _observe(self, groups: Iterable[Group]) -> None:
        if found := observe_groups((group.cell, group) for group in groups):
            self._observed = pool_observations([*self._observed, *found])

    @property
    def _is_whole(self) -> bool:
        return self.count > 0 and len(self._first) == len(self._keys) > 0

    @property
    def waiting(self) -> dict[str, FirstAnswer]:
        """The answers that wait for those to the other problems, by key; empty if all have one."""
        return {} if self._is_whole else self._first

    def tally(self) -> Outcomes | None:
        """The outcomes of the fresh answers, None without any.

        If, with those that waited, all problems of the folder have answers, there is one digit for each in their order,
        so that rounds can be compared: for the answer with the lowest number in the problem's last group. A majority
        would not do: one answer then and eight now would differ though the policy is the same.
        """
        if not self.count:
            return None
        self._tally_some()
        self._observe(self._groups.close_groups())
        outcomes = Outcomes({stratum: self._strata[stratum] for stratum in self._space.sort_strata(self._strata)})
        outcomes.observations = self._observed
        if self._is_whole:
            outcomes.problem_keys = tuple(problem.key for problem in self._problems)
            outcomes.valid = "".join("01"[self._first[key].valid] for key in outcomes.problem_keys)
        return outcomes
