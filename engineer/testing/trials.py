"""Trials of an environment: each call with all that can go wrong in it."""

import copy
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta_parsing import encode_delta, read_answer
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.environment import Environment
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.problems import Group, Problem, Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.space_checks import SHARE_TOLERANCE, check_design
from lakewright.engineer.tally import Case, Drawn
from lakewright.engineer.testing.isolation import CallError, Calls
from lakewright.engineer.testing.redraw import JUDGED, list_answers, show_case, show_problem
from lakewright.engineer.testing.report import Fault, Report
from lakewright.engineer.testing.search import LATE, Deadline, find_smallest
from lakewright.engineer.testing.strategies import ODD_ANSWERS, list_attacks

MOST_CONSTANT = 0.5  # share of valid answers that a constant answer may have without a warning
ATTACK_SECONDS = 5.0


class Draw(NamedTuple):
    """The cell, seed and index that determine a problem."""

    cell: Cell
    seed: int
    place: int

    def __str__(self) -> str:
        return f"cell {self.cell}, seed {self.seed}, index {self.place}"


class Trials:
    """An environment whose calls are isolated. Each raises CallError if the environment breaks a promise."""

    def __init__(self, environment: Environment, calls: Calls) -> None:
        self.environment = environment
        self.space = environment.space
        self.calls = calls
        self.said: dict[Cell, bool] = {}

    def is_drawable(self, cell: Cell) -> bool:
        """Return True if the environment can draw a cell; asked once."""
        if cell in self.said:
            return self.said[cell]
        named = self.space.name_cell(cell)
        said = self.calls.run_call("drawable", f"cell {cell}", lambda: self.environment.drawable(named))
        if not isinstance(said, bool):
            raise CallError(f"drawable gave {said!r:.60}; return a bool")
        self.said[cell] = said
        return said

    def start(self) -> Design:
        """The design to begin with, which is legal."""
        try:
            design = self.calls.run_call("start", "start()", self.environment.start)
            check_design(design, self.space, "start")
        except (CallError, InputError) as error:
            raise CallError(f"{error}; override start") from error
        return design

    def draw_one(self, draw: Draw) -> Problem:
        """A problem drawn alone, which JSON can hold."""
        problem = self.calls.run_call("make", str(draw), lambda: self.environment.draw_one(*draw))
        return self._check_json(problem)

    def draw(self, design: Design, count: int, seed: int, first: int = 0) -> list[Problem]:
        """Problems of a design."""
        case = f"{show_design(design)}, seed {seed}, problems {first} to {first + count - 1}"
        return self._draw_list("draw", case, lambda: self.environment.draw(design, count, seed, first), count)

    def mix(self, design: Design) -> dict[Cell, float]:
        """The share of each canonical cell of the problems of a design."""
        return self._map_shares("mix", design, self.environment.mix)

    def cells(self, design: Design) -> dict[Cell, float]:
        """The share of each cell of the problems of a design, with the shares and values of its rows."""
        found = self._map_shares("cells", design, self.environment.cells)
        for stratum, row in design.strata.items():
            mine = {cell: share for cell, share in found.items() if cell.stratum == stratum}
            total = sum(mine.values())
            values = {self.space.share.name: total}
            for place, knob in enumerate(self.space.knobs if total else ()):
                values[knob.name] = sum(share * cell.values[place] for cell, share in mine.items()) / total
            for name, value in values.items():
                if not row[name] - SHARE_TOLERANCE <= value <= row.get(f"{name}_high", row[name]) + SHARE_TOLERANCE:
                    said = f"cells give {name} {value:.3g} for {stratum}, but the design has {row[name]:.3g}"
                    raise CallError(f"{said}; return the cells of the design in their shares")
        return found

    def check_shares(self, design: Design, problems: Sequence[Problem]) -> None:
        """Raises CallError if problems are of other cells than the design's, or in other shares."""
        self.cells(design)
        mix = self.mix(design)
        counts = Counter(self.canonical(problem.cell) for problem in problems)
        if strange := [cell for cell in counts if cell not in mix]:
            raise CallError(f"a problem is of cell {strange[0]}, which is not in the design; draw only its cells")
        for cell, share in mix.items():
            # Within one of its share, and within one more for each value that the givens have in turn.
            room = 1 + len({other.given for other in mix})
            if abs(counts[cell] - share * len(problems)) > room:
                said = f"{counts[cell]} of {len(problems)} problems are of cell {cell}, whose share is {share:.3g}"
                raise CallError(f"{said}; draw each cell in its share")
        if wrong := [problem for problem in problems if problem.version != design.version]:
            raise CallError(f"a problem has version {wrong[0].version}, but the design {design.version}; pass it on")

    def _map_shares(self, what: str, design: Design, give: Callable[[Design], dict[Cell, float]]) -> dict[Cell, float]:
        def map_shares() -> dict[Cell, float]:
            return {Cell(*cell): float(share) for cell, share in give(design).items()}

        found = self.calls.run_call(what, show_design(design), map_shares)
        if wrong := [cell for cell in found if len(cell.values) != len(self.space.knobs)]:
            raise CallError(f"{what} gave cell {wrong[0]!r:.60}; give a value of each knob")
        return found

    def canonical(self, cell: Cell) -> Cell:
        """The cell that stands for a cell."""
        return self.calls.run_call("canonical", f"cell {cell}", lambda: Cell(*self.environment.canonical(cell)))

    def draw_cell(self, cell: Cell, count: int, seed: int, first: int = 0) -> list[Problem]:
        """Problems of a canonical cell, as a trial draws them."""
        case = f"cell {cell}, seed {seed}, problems {first} to {first + count - 1}"
        return self._draw_list("draw_cell", case, lambda: self.environment.draw_cell(cell, count, seed, first), count)

    def describe(self, problem: Problem) -> None:
        """Tries what evidence and samplers read of a problem."""
        case = show_problem(problem)
        drawn = self.calls.run_call("statistics", case, lambda: self.environment.statistics([problem]))
        if not isinstance(drawn, dict) or not all(isinstance(one, Drawn) for one in drawn.values()):
            raise CallError(f"statistics gave {drawn!r:.60}; return Drawn objects by stratum")
        self.calls.run_call("features", case, lambda: self.environment.check_features(problem))
        try:
            verdict = self.judge_empty(problem)
        except CallError:  # named where any text is judged
            return
        cases = self.calls.run_call("cases", case, lambda: self.environment.cases([problem], [""], [verdict], 1))
        if not isinstance(cases, list) or not all(isinstance(one, Case) for one in cases):
            raise CallError(f"cases gave {cases!r:.60}; return Case objects")

    def _draw_list(self, what: str, case: str, draw: Callable[[], list[Problem]], count: int) -> list[Problem]:
        problems = self.calls.run_call(what, case, draw, count)
        if not isinstance(problems, list) or len(problems) != count:
            raise CallError(f"{what} gave {problems!r:.60}; return a list of {count} problems")
        return [self._check_json(problem) for problem in problems]

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """The verdict on an answer, with all that it promises."""
        case = show_case((problem, answer))
        before = encode_problem(problem)
        own = problem
        if isinstance(problem.data, dict | list):  # which a judge may change, and other properties try it, too
            own = msgspec.structs.replace(problem, data=copy.deepcopy(problem.data))
        verdict = self.calls.run_call("judge", case, lambda: self.environment.check_verdict(own, answer))
        if encode_problem(own) != before:
            raise CallError("judge modified the problem; do not mutate its data")
        again = msgspec.json.decode(before, type=Problem)
        case = f"{case}, read from JSON"
        if self.calls.run_call("judge", case, lambda: self.environment.check_verdict(again, answer)) != verdict:
            said = "judge gave a different verdict on the problem as read from JSON"
            raise CallError(f"{said}; leave out chance, clocks and state, and let data be JSON values")
        return verdict

    def judge_empty(self, problem: Problem) -> Verdict:
        """The verdict on a policy that does nothing."""
        return self.judge(problem, "")

    def judge_case(self, case: tuple[Problem, str]) -> Verdict:
        """The verdict on an answer, as `judge`."""
        return self.judge(*case)

    def judge_together(self, problems: Sequence[Problem]) -> None:
        """Tries `groups`, `verdicts` and `tallies`, whose results must equal single verdicts."""
        # The last answers are right and wrong in turn, so that an order shows.
        listed = [list_answers(problem) for problem in problems]
        answers = [texts[place % 2 :] + texts[: place % 2] for place, texts in enumerate(listed)]
        pairs = list(zip(problems, answers, strict=True))
        single = [[self.judge(problem, text) for text in texts] for problem, texts in pairs]
        last, environment = [texts[-1] for texts in answers], self.environment
        outcomes = Outcomes.of(self.space, problems, [verdicts[-1] for verdicts in single])
        wanted = {
            "groups": [_list_counts(Group.from_verdicts(*pair)) for pair in zip(problems, single, strict=True)],
            "verdicts": [verdicts[-1] for verdicts in single],
            "tallies": (dict(outcomes), outcomes.valid),
        }
        ways: dict[str, Callable[[], Any]] = {
            "groups": lambda: list(map(_list_counts, environment.groups(problems, answers))),
            "verdicts": lambda: list(environment.verdicts(problems, last)),
            "tallies": lambda: (dict(result := environment.tallies(problems, last)), result.valid),
        }
        for name, way in ways.items():
            result = self.calls.run_call(name, show_problem(problems[0]), way)
            if result != wanted[name]:
                said = f"{name} disagrees with judge: {result!r:.80} instead of {wanted[name]!r:.80}"
                raise CallError(f"{said}; make it call judge in order")

    def _check_json(self, problem: Problem) -> Problem:
        if not isinstance(problem, Problem):
            raise CallError(f"draw gave {problem!r:.60}; return problems")
        try:
            again = msgspec.json.decode(encode_problem(problem), type=Problem)
            if isinstance(problem.data, msgspec.Struct):
                again = msgspec.structs.replace(again, data=msgspec.convert(again.data, type(problem.data)))
            if repr(again.data) != repr(problem.data):  # unlike ==, True is not 1 there, nor 1 1.0
                said = f"data {problem.data!r:.60} are {again.data!r:.60} after JSON"
                raise CallError(f"{said}; let data be JSON values: no tuples, sets, NaN or keys that are not texts")
            if again != problem:
                raise CallError("a problem changes in JSON; let its key be a text")
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise CallError(f"a problem does not fit into JSON ({error}); let its data be JSON values") from error
        return problem


def _list_counts(group: Group) -> tuple[object, ...]:
    """The parts of a group that a redesign reads."""
    failures = {name: count for name, count in group.failures.items() if count}
    return group.key, group.cell, group.version, group.completions, group.valid, tuple(group.rewards), failures


def encode_problem(problem: Problem) -> bytes:
    """A problem in JSON."""
    return msgspec.json.encode(problem)


def check_round_trips(design: Design, delta: Delta, space: DesignSpace) -> None:
    """Raises CallError if a design or a delta changes in JSON, or as an answer."""
    if msgspec.json.decode(msgspec.json.encode(design), type=Design) != design:
        raise CallError("a design changes in JSON; give strata names that differ as text")
    if msgspec.json.decode(msgspec.json.encode(delta), type=Delta) != delta:
        raise CallError("a delta changes in JSON; give strata names that differ as text")
    try:
        read, _ = read_answer(encode_delta(delta), space)
    except InputError as error:
        raise CallError(f"a legal delta is refused as an answer ({error}); correct the space") from error
    if read != delta:
        raise CallError("a delta changes as an answer; give strata names that differ as text")


def judge_attacks(problems: Sequence[Problem], trials: Trials, deadline: Deadline) -> Fault | None:
    """The fault of the first text that a judge fails on, of texts that exhaust parsers; None without one.

    Args:
        problems: one problem of each stratum is tried.
        trials: judges the answers.
        deadline: the end; the texts get ATTACK_SECONDS at least.
    """
    chosen = {problem.cell.stratum: problem for problem in reversed(problems)}
    cases = [(problem, text) for problem in chosen.values() for text in list_attacks(problem.answer)]
    return find_smallest(JUDGED, cases, None, trials.judge_case, show_case, deadline.extend(ATTACK_SECONDS))


def score_constants(pool: Sequence[Problem], trials: Trials, report: Report, deadline: Deadline) -> None:
    """Measures the score of the best constant answer to some problems, and the rate of verdicts.

    Args:
        pool: the problems.
        trials: judges the answers.
        report: gets the figures, and a warning.
        deadline: the end, after which no further answer is tried.
    """
    common = [answer for answer, _ in Counter(problem.answer for problem in pool).most_common(3)]
    best = ("", -1.0, 0.0)
    judged, took = 0, 0.0
    for answer in dict.fromkeys((*common, *ODD_ANSWERS[:6])):
        if judged and deadline.is_over():
            break
        begun = time.monotonic()
        try:
            trials.judge(pool[0], answer)
            slow = len(pool) * (time.monotonic() - begun) / max(LATE, deadline.count_seconds())
            pool = pool[:: max(1, min(math.ceil(slow), len(pool) // 8))]
            begun = time.monotonic()
            verdicts = [trials.judge(problem, answer) for problem in pool]
        except CallError:  # named by `judge_any_text`
            continue
        judged, took = judged + 2 * len(pool), took + time.monotonic() - begun
        valid = sum(verdict.valid for verdict in verdicts) / len(pool)
        reward = sum(verdict.reward for verdict in verdicts) / len(pool)
        best = max(best, (answer, valid, reward), key=lambda one: one[1:])
    if judged:
        report.verdicts_per_second = judged / max(1e-9, took)
        report.constant = best
    if best[1] > MOST_CONSTANT:
        report.warnings.append(f"always answering {best[0]!r:.40} is valid for {best[1]:.0%} of the problems")


def estimate_distinct(keys: Sequence[str]) -> int:
    """At least about how many distinct problems there are (A. Chao, Scandinavian Journal of Statistics 11, 1984)."""
    counts = Counter(Counter(keys).values())
    once, twice = counts[1], counts[2]
    return len(set(keys)) + once * (once - 1) // (2 * (twice + 1))


def show_design(design: Design) -> str:
    """A design for people."""
    return f"design {msgspec.json.encode(design.strata).decode()}"


def show_first(problems: Sequence[Problem]) -> str:
    """Several problems for people."""
    return f"{len(problems)} problems, the first {show_problem(problems[0])}"
