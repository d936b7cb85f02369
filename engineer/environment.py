"""The `Environment`: a design space, problems drawn from designs of it, and verdicts on answers."""

import abc
import hashlib
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import assign_shares, strip_thoughts
from lakewright.engineer.calls import FailedCallError, escape_surrogates, run_call, show
from lakewright.engineer.cells import Cell, NamedCell, Stratum, list_parts
from lakewright.engineer.design import Design
from lakewright.engineer.judge_process import JudgeLimit, ask_process, find_maker
from lakewright.engineer.number_limits import is_reward, sum_lengths
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.problems import Group, Problem, Verdict, find_fault, find_fault_of_verdict, make_plain
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import check_cell_of, check_design
from lakewright.engineer.start import choose_start
from lakewright.engineer.tally import Case, Drawn

_JSON = msgspec.json.Encoder()
T = TypeVar("T")


class Environment(abc.ABC):
    """Problems drawn from a design, and verdicts on answers. You write three members; the rest has defaults.

    space: what may be changed, an attribute of the class or the object. judge_limit: with one, `judge` runs in another
    process, which stays for further answers and is ended if one takes too long; by default it is called here.
    reads_thoughts: whether `judge` gets everything that a model said; by default only the text after its last thought.
    """

    space: DesignSpace
    judge_limit: JudgeLimit | None = None
    reads_thoughts: bool = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'space', 'no space')!r})"

    @abc.abstractmethod
    def make(self, cell: Cell, rng: random.Random) -> Problem:
        """A problem of a cell.

        cell: `cell.stratum`, and its knobs by name: `cell["digits"]` is an int of a whole level, a bool of a trait,
        else a float. rng: the only source of randomness, so that equal seeds give equal problems.
        """

    @abc.abstractmethod
    def judge(self, problem: Problem, answer: str) -> Verdict:
        """The verdict on any text as the answer to a problem; the same for the same text.

        problem: `problem.cell["digits"]` is a knob of it.
        """

    def maker(self) -> tuple[str, ...]:
        """The command-line words that recreate this environment in another process: `FILE.py:Class`, then arguments.

        By default the words for a class without arguments; empty if it needs some.
        """
        return find_maker(self)

    def start(self) -> Design:
        """The design to begin with: equal shares and middle values, or the nearest of some that can be drawn.

        Raises InputError if a stratum has no such design: override it, or correct `drawable`.
        """
        return choose_start(self)

    def drawable(self, cell: Cell) -> bool:
        """Return True if problems of a cell can be made. Override it if values of knobs exclude each other.

        cell: as in `make`, with its givens. It is asked often, so it should be fast.
        """
        return True

    def cells(self, design: Design) -> dict[Cell, float]:
        """The share of each cell, with its givens, of the problems of a design."""
        return {self.space.complete_cell(cell, design): share for cell, share in self.space.cells(design).items()}

    def canonical(self, cell: Cell) -> Cell:
        """The cell that stands for all cells that draw the same problems.

        cell: as in `make`.
        """
        return cell

    def mix(self, design: Design) -> dict[Cell, float]:
        """The share of each canonical cell of the problems of a design; in order."""
        shares: dict[Cell, float] = {}
        for cell, share in self.cells(design).items():
            stands = self.canonical(self.space.name_cell(cell))
            shares[stands] = shares.get(stands, 0.0) + share
        return shares

    def measures(self, problems: Sequence[Problem]) -> dict[str, float]:
        """Further measures of problems of one stratum, means by name."""
        return {}

    def features(self, problem: Problem) -> list[float]:
        """Numbers from which a sampler may predict how hard a problem is; by default its cell."""
        cell = problem.cell
        return [self.space.scale(cell.stratum), *map(float, cell.values), *map(float, cell.given)]

    def describe(self, problem: Problem, answer: str, verdict: Verdict) -> str:
        """A problem and an answer, for people and language models."""
        return f"{problem.prompt}\nanswer: {answer[:500]}"

    def draw(self, design: Design, count: int, seed: int, first: int = 0) -> list[Problem]:
        """Problems first .. first + count - 1 of the set of a design and a seed.

        Args:
            design: the distribution of the problems.
            count: how many.
            seed, first: which problems.

        Design, seed and index alone determine a problem. In every prefix each cell has its share of the problems,
        within one. Raises InputError on a design of another space, and if `make` fails or gives no problem.
        """
        check_design(design, self.space)
        for name, number in (("count", count), ("first", first)):
            if not isinstance(number, int) or not 0 <= number < 2**63:
                raise InputError(f"draw: {name} is {show(number, 20)}; give a whole number, at least 0, below 2^63")
        mix = self.cells(design)
        cells, shares = list(mix), list(mix.values())
        places, _ = assign_shares(shares, first, count)
        return [
            self.draw_one(cells[place], seed, first + number, design.version)
            for number, place in enumerate(places.tolist())
        ]

    def draw_cell(self, cell: Cell, count: int, seed: int, first: int = 0) -> list[Problem]:
        """Problems first .. first + count - 1 of the set of a cell, which has its givens, and a seed.

        Args:
            cell: canonical, from `mix`.
            count: how many.
            seed, first: which problems.
        """
        return [self.draw_one(cell, seed, first + number) for number in range(count)]

    def draw_one(self, cell: Cell, seed: int, index: int, version: int = 0) -> Problem:
        """The problem of a cell, a seed and an index, with its key.

        Args:
            cell: with its givens.
            seed, index: which problem.
            version: the design version to record in the problem.

        Raises InputError if `make` fails, or gives no problem that a file can hold.
        """
        rng = random.Random(f"{seed} {index} {cell}")
        where = f"{type(self).__name__}: cell {cell}: make"
        named = self.space.name_cell(cell)
        problem = run_call(where, lambda: self.make(named, rng))
        if fault := find_fault(problem):
            raise FailedCallError(f"{type(self).__name__}.make: gave {show(problem)} for cell {cell}; {fault}")
        key = problem.key or hashlib.sha256(problem.prompt.encode()).hexdigest()[:16]
        return msgspec.structs.replace(problem, cell=named, version=version, key=key)

    def check_verdict(self, problem: Problem, answer: str) -> Verdict:
        """The verdict on an answer, checked. Raises InputError if `judge` fails, or gives no proper verdict."""
        where = f"{type(self).__name__}.judge: on {answer!r:.60} to {problem.prompt!r:.60}"
        if not isinstance(answer, str):
            raise InputError(f"{where}: an answer is a text, not {type(answer).__name__}; return texts")
        judge = self._judge_apart if self.judge_limit else self.judge
        text = answer if self.reads_thoughts or answer == problem.answer else strip_thoughts(answer)
        verdict = run_call(where, lambda: judge(self._name_cell(problem), text), remedy="give a verdict on any text")
        if fault := find_fault_of_verdict(verdict, self.space):
            raise FailedCallError(f"{where}: {fault}")
        return make_plain(verdict)

    def reply(self, request: bytes) -> bytes:
        """The verdict of `judge` on a problem and an answer, all in JSON, for a process of judges."""
        problem, answer = msgspec.json.decode(request, type=tuple[Problem, str])
        return _JSON.encode(self.judge(self._name_cell(problem), answer))

    def _judge_apart(self, problem: Problem, answer: str) -> Verdict:
        """The verdict of `judge` in a process of its own."""
        limit = self.judge_limit
        assert limit
        if not (maker := self.maker()):
            raise InputError("judge_limit needs a class that another process can create; override maker")
        request = _JSON.encode((problem, answer.encode(errors="replace").decode()))
        found = ask_process(maker, request, limit.seconds)
        return msgspec.json.decode(found, type=Verdict) if found else Verdict(False, 0.0, limit.failure)

    def check_features(self, problem: Problem) -> list[float]:
        """The features of a problem, checked. Raises InputError if `features` fails, or gives no finite numbers."""
        where = f"{type(self).__name__}.features: of {problem.prompt!r:.60}"
        found = run_call(where, lambda: list(map(float, self.features(self._name_cell(problem)))))
        if not all(map(math.isfinite, found)):
            raise FailedCallError(f"{where}: gave {show(found)}; return finite numbers")
        return found

    def groups(
        self,
        problems: Sequence[Problem],
        answers: Sequence[Sequence[str]],
        tokens: Sequence[Sequence[int]] | None = None,
    ) -> list[Group]:
        """A group for each problem from a list of answers to each. tokens: likewise the lengths of the answers.

        Raises InputError on problems of another space, and unless there is a length for each answer.
        """
        listed = []
        for problem, texts in self._pair_in_cells(problems, answers):
            given = () if isinstance(texts, str) or not isinstance(texts, Iterable) else tuple(texts)
            if not given:
                raise InputError(f"answers: {texts!r:.60} to {problem.prompt!r:.60}; give a list of at least one text")
            listed.append((problem, given))
        sums: Sequence[int | msgspec.UnsetType] = [msgspec.UNSET] * len(listed)
        if tokens is not None:
            sums = sum_lengths([texts for _, texts in listed], tokens)
        return [
            Group.from_verdicts(problem, [self.check_verdict(problem, text) for text in texts], length)
            for (problem, texts), length in zip(listed, sums, strict=True)
        ]

    def verdicts(self, problems: Sequence[Problem], answers: Sequence[str]) -> list[Verdict]:
        """The verdict on one answer to each problem.

        Raises InputError if there are not as many answers as problems, and as `check_verdict`.
        """
        return [self.check_verdict(problem, text) for problem, text in _pair_answers(problems, answers)]

    def tallies(self, problems: Sequence[Problem], answers: Sequence[str]) -> Outcomes:
        """Outcomes by stratum of one answer to each problem, such as greedy ones to held-out problems.

        Raises InputError on problems of another space.
        """
        pairs = self._pair_in_cells(problems, answers)
        found = [problem for problem, _ in pairs]
        return Outcomes.of(self.space, found, self.verdicts(found, [text for _, text in pairs]))

    def cases(
        self, problems: Sequence[Problem], answers: Sequence[str], verdicts: Sequence[Verdict], most: int
    ) -> list[Case]:
        """Answers that failed, evenly over the problems.

        Args:
            problems, answers, verdicts: one judged answer to each problem.
            most: the most cases.

        Raises InputError if `describe` fails, or gives no text.
        """
        chosen = choose_evenly([place for place, verdict in enumerate(verdicts) if not verdict.valid], most)
        cases = []
        for problem, answer, verdict in ((problems[place], answers[place], verdicts[place]) for place in chosen):
            text = self._describe(problem, answer, verdict)
            cases.append(Case(problem.cell.stratum, text, verdict.failure, verdict.place))
        return cases

    def statistics(self, problems: Sequence[Problem]) -> dict[Stratum, Drawn]:
        """Statistics of the problems that were really drawn, by stratum. Raises InputError if `measures` fails."""
        found: dict[Stratum, list[Problem]] = defaultdict(list)
        for problem in problems:
            found[problem.cell.stratum].append(problem)
        return {stratum: self._describe_drawn(found[stratum]) for stratum in self.space.sort_strata(found)}

    def _pair_in_cells(self, problems: Iterable[Problem], answers: Iterable[Any]) -> list[tuple[Problem, Any]]:
        """Pairs problems with their answers, after a check that the problems belong to the space."""
        pairs = _pair_answers(problems, answers)
        for problem, _ in pairs:
            check_cell_of(problem, Problem, self.space, "problems")
        return pairs

    def _name_cell(self, problem: Problem) -> Problem:
        """The problem with a cell that is read by name, also if it comes from a file."""
        if isinstance(problem.cell, NamedCell) or len(problem.cell.values) != len(self.space.knobs):
            return problem
        return msgspec.structs.replace(problem, cell=self.space.name_cell(problem.cell))

    def _describe(self, problem: Problem, answer: str, verdict: Verdict) -> str:
        where = f"{type(self).__name__}.describe: on {answer!r:.60} to {problem.prompt!r:.60}"
        text = run_call(where, lambda: self.describe(self._name_cell(problem), answer, verdict))
        if not isinstance(text, str):
            raise FailedCallError(f"{where}: gave {show(text)}; return a text")
        return escape_surrogates(text)

    def _describe_drawn(self, problems: Sequence[Problem]) -> Drawn:
        values = np.array([problem.cell.values for problem in problems], float).reshape(len(problems), -1)
        means = values.mean(axis=0).tolist()
        knobs = {knob.name: mean for knob, mean in zip(self.space.knobs, means, strict=True)}
        where = f"{type(self).__name__}.measures: of {len(problems)} problems of {problems[0].cell.stratum!r:.60}"
        found = run_call(where, lambda: self.measures([self._name_cell(problem) for problem in problems]))
        if not isinstance(found, dict) or not all(isinstance(name, str) and is_reward(found[name]) for name in found):
            raise FailedCallError(f"{where}: gave {show(found)}; return finite numbers by name")
        return Drawn(len(problems), knobs, found)


def check_environment_type(environment: object, where: str) -> None:
    """Raises InputError if this is not an environment with a space."""
    if isinstance(environment, type):
        name = environment.__name__
        raise InputError(f"{where}: environment is the class {name}; give an object, such as {name}()")
    if not isinstance(environment, Environment) or not isinstance(getattr(environment, "space", None), DesignSpace):
        raise InputError(f"{where}: {environment!r:.60} is not an Environment with a space; give one")


def _pair_answers(problems: Iterable[Problem], answers: Iterable[Any]) -> list[tuple[Problem, Any]]:
    """Pairs each problem with its answers. Raises InputError if their numbers differ."""
    problems, answers = list_parts("problems", problems, Problem), list_parts("answers", answers)
    if len(problems) != len(answers):
        raise InputError(f"answers: {len(answers)} for {len(problems)} problems; give one entry for each problem")
    return list(zip(problems, answers, strict=True))


def choose_evenly(found: Sequence[T], most: int) -> list[T]:
    """Chooses at most `most` items, evenly spread."""
    return [found[int(at)] for at in np.linspace(0, len(found) - 1, min(most, len(found)))]
