"""The properties that an environment must have. Each gives a fault with its smallest case, or nothing."""

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from statistics import median

from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta_parsing import encode_delta
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.environment import Environment
from lakewright.engineer.guard import GivenBounds, GuardSettings, project_delta
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.space_checks import check_design
from lakewright.engineer.testing.isolation import CallError, Calls
from lakewright.engineer.testing.redraw import (
    EQUAL,
    JUDGED,
    RedrawRequest,
    compare_redrawn,
    draw_sets,
    list_answers,
    redraw_elsewhere,
    show_case,
    show_problem,
)
from lakewright.engineer.testing.report import Fault, Report
from lakewright.engineer.testing.search import LATE, Deadline, find_smallest
from lakewright.engineer.testing.strategies import ODD_ANSWERS, answers, cells, deltas, designs, list_cells
from lakewright.engineer.testing.trials import (
    Draw,
    Trials,
    check_round_trips,
    encode_problem,
    estimate_distinct,
    judge_attacks,
    score_constants,
    show_design,
    show_first,
)

START, EVERY, TOGETHER = "the start is drawn", "every cell is drawn", "problems are judged together"  # of properties
TOGETHER_MOST = 4  # problems
SEEDS, INDICES = st.integers(0, 2**31 - 1), st.integers(0, 10**6)
SAMPLE = 64  # problems of a cell, from which the number of distinct ones is estimated
FEW = 200  # distinct problems of a cell; fewer are easy to memorise
MOST_SCORED = 256  # problems, for constant answers
CROSS_SECONDS = 3.0  # of drawing, for the cases that another process draws too


class Properties:
    """The properties of one environment, each tried until a deadline; what is measured goes into `report`.

    Args:
        environment: what is tried.
        calls: limits its calls in time.
        report: gets what is measured.
        maker: the words from which another process makes the environment, see `redraw`; empty if it cannot.

    Raises CallError if the environment gives no legal design to begin with, whose givens all cells have.
    """

    kind: type[Trials] = Trials

    def __init__(self, environment: Environment, calls: Calls, report: Report, maker: Sequence[str] = ()) -> None:
        self.trials = self.kind(environment, calls)
        self.environment, self.space, self.report, self.maker = environment, environment.space, report, maker
        try:
            self.start = self.trials.start()
        except CallError:
            if type(environment).start is not Environment.start:
                raise
            self.start = self.space.uniform()  # a stratum without problems, which has a fault of its own
        self.given = dict(self.start.given)
        self.listed = list_cells(self.space, **self.given)
        self.cells_at_bounds = set(self.listed)
        self.problems, self.took = dict[Draw, Problem](), dict[Draw, float]()
        self.bounds = GivenBounds(self.space, self._is_known_drawable)

    def draw_cells(self, some: Sequence[Cell], deadline: Deadline) -> Fault | None:
        """Problems come of some of the cells at bounds and bins."""
        return find_smallest(EVERY, [Draw(cell, 0, 0) for cell in some], None, self._try_cell, str, deadline)

    def judge_cells(self, fault: Fault | None) -> Fault | None:
        """The fault of drawing the cells at bounds and bins, or what it shows: a stratum without problems."""
        tried, undrawable = len(self.problems), sum(map(len, self.report.undrawable.values()))
        self.report.cells, self.report.drawn = len(self.listed), tried
        if fault or not tried:
            return fault or Fault(EVERY, "drawable is False for all cells; correct it", "the space")
        if left := len(self.listed) - tried - undrawable:
            said = f"time was up before {left} of {len(self.listed)} cells were drawn; give more seconds"
            self.report.warnings.append(said)
        for stratum in self.space.strata:
            mine = {cell for cell in self.listed if cell.stratum == stratum}
            if mine and len(self.report.undrawable.get(str(stratum), ())) == len(mine):
                return Fault("every stratum is drawn", "no cell of it can be drawn; leave it out", f"stratum {stratum}")
        return None

    def list_problems(self) -> list[tuple[int, Problem, float]]:
        """The problems of the cells at bounds and bins: the place of each cell, its problem, and its seconds."""
        places = {cell: place for place, cell in enumerate(self.listed)}
        return [(places[draw.cell], problem, self.took[draw]) for draw, problem in self.problems.items()]

    def add_problems(self, problems: Iterable[tuple[int, Problem, float]]) -> None:
        """Adds problems that another process drew, in the order of its list."""
        for place, problem, took in problems:
            draw = Draw(self.listed[place], 0, 0)
            self.problems[draw], self.took[draw] = problem, took

    def draw_start(self, deadline: Deadline) -> Fault | None:
        """Problems come of every cell of the design to begin with, and of that design."""

        def draw_cell(cell: Cell) -> None:
            try:
                if not self.trials.is_drawable(cell):
                    raise CallError("drawable is False; correct it")
                self.trials.draw_one(Draw(cell, 0, 0))
            except CallError as error:
                raise CallError(f"{error}, or override start") from error

        def try_start(attempt: Callable[[Design], object]) -> Fault | None:
            return find_smallest(START, [self.start], None, attempt, show_design, deadline)

        mix: dict[Cell, float] = {}
        if fault := try_start(lambda start: mix.update(self.trials.cells(start))):
            return fault
        simple = sorted(mix, key=lambda cell: self.space.hardness(cell, self.space.strata))
        fault = find_smallest(START, simple, None, draw_cell, lambda cell: f"cell {cell}", deadline)
        return fault or try_start(lambda start: self.trials.draw(start, 1, 0))

    def _choose_count(self, most: int, least: int, deadline: Deadline) -> int:
        """A number of problems to draw at once: the least if the most would take longer than there is time."""
        slow = most * median(self.took.values()) > max(LATE, deadline.count_seconds())
        return least if slow else most

    def try_between(self, deadline: Deadline) -> Fault | None:
        """Problems come at other values, seeds and indices, too."""
        between = st.builds(Draw, cells(self.space, self._is_known_drawable, **self.given), SEEDS, INDICES)
        return find_smallest(EVERY, (), between, self.trials.draw_one, str, deadline)

    def _try_cell(self, draw: Draw) -> None:
        if not self.trials.is_drawable(draw.cell):
            self.report.undrawable.setdefault(str(draw.cell.stratum), []).append(str(draw.cell))
            return
        begun = time.monotonic()
        self.problems[draw] = self.trials.draw_one(draw)
        self.took[draw] = time.monotonic() - begun

    def _is_known_drawable(self, cell: Cell) -> bool:
        """Return True if a cell can be drawn; of one at a bound or bin, if it was."""
        cell = self.space.complete_cell(cell, self.start)
        if cell in self.cells_at_bounds:
            return Draw(cell, 0, 0) in self.problems
        try:
            return self.trials.is_drawable(cell)
        except CallError:
            return False

    def draw_again(self, deadline: Deadline) -> Fault | None:
        """Equal cell, seed and index give the same problem, in any order."""

        def draw_twice(draw: Draw) -> None:
            first = self.problems.get(draw) or self.trials.draw_one(draw)
            self.trials.draw_one(Draw(draw.cell, draw.seed + 1, draw.place))
            if encode_problem(self.trials.draw_one(draw)) != encode_problem(first):
                raise CallError("two draws gave different problems; take all randomness from rng, and keep no state")

        more = st.builds(Draw, st.sampled_from([draw.cell for draw in self.problems]), SEEDS, INDICES)
        return find_smallest(EQUAL, self.problems, more, draw_twice, str, deadline, 30)

    def draw_slices(self, deadline: Deadline) -> Fault | None:
        """Problems of a design depend on design, seed and index alone, and are of its cells, in their shares."""

        count, size = self._choose_count(24, 4, deadline), 2

        def draw_part(case: tuple[Design, int, int]) -> None:
            design, seed, first = case
            part = self.trials.draw(design, size, seed, first)  # first, as it ends earlier where it never returns
            problems = self.trials.draw(design, count, seed)
            if list(map(encode_problem, part)) != list(map(encode_problem, problems[first : first + size])):
                raise CallError("drawing a slice gives different problems; let only design, seed and index matter")
            self.trials.check_shares(design, problems)

        def show(case: tuple[Design, int, int]) -> str:
            design, seed, first = case
            return f"{show_design(design)}, seed {seed}, problems {first} to {first + size - 1} of {count}"

        strategy = st.tuples(self._legal_designs(), SEEDS, st.integers(0, count - size))
        return find_smallest("draws follow the design", (), strategy, draw_part, show, deadline, 50)

    def draw_mixed_cells(self, deadline: Deadline) -> Fault | None:
        """Problems come of the canonical cells of designs, too, which a trial draws one by one."""
        name, mixed = "cells of a mix are drawn", dict[Cell, float]()

        def draw_mixed(cell: Cell) -> None:
            first, second = self.trials.draw_cell(cell, 2, 0)
            if (canonical := self.trials.canonical(first.cell)) != cell:
                raise CallError(f"draw_cell gave a problem of cell {canonical}; draw the requested cell")
            if list(map(encode_problem, self.trials.draw_cell(cell, 1, 0, 1))) != [encode_problem(second)]:
                raise CallError("draw_cell from 1 on gives a different problem 1; let only cell, seed and index matter")

        def add_mix(design: Design) -> None:
            mixed.update(self.trials.mix(design))

        mixes = [self.start, *(self._single_design(draw.cell) for draw in self.problems)]
        if fault := find_smallest(name, mixes, None, add_mix, show_design, deadline):
            return fault
        order = sorted(mixed, key=self._is_within_limits)  # no other property draws those beyond the limits
        return find_smallest(name, order, None, draw_mixed, lambda cell: f"cell {cell}", deadline)

    def _is_within_limits(self, cell: Cell) -> bool:
        limits = [(0, 1) if knob.trait else self.space.limits(cell.stratum, knob) for knob in self.space.knobs]
        return all(low <= value <= high for value, (low, high) in zip(cell.values, limits, strict=True))

    def _legal_designs(self) -> st.SearchStrategy[Design]:
        return designs(self.space, self.bounds, **self.given)

    def separate_seeds(self, deadline: Deadline) -> Fault | None:
        """Two seeds don't give the same problems, not even shifted."""

        count = self._choose_count(8, 4, deadline)

        def compare_seeds(draw: Draw) -> None:
            compare_sets("draw", partial(self._draw_cell, draw.cell, count))
            for cell in list(self.trials.mix(self._single_design(draw.cell)))[:1]:
                compare_sets("draw_cell", partial(self.trials.draw_cell, cell, count))

        def compare_sets(what: str, draw_set: Callable[[int], list[Problem]]) -> None:
            mine, *others = ([problem.key for problem in draw_set(seed)] for seed in (0, 1, 1000))
            if len(set(mine)) > 1 and others == [mine, mine]:
                raise CallError(f"{what}: other seeds give the same problems; let the problems depend on the seed")
            for other, first in itertools.product(others, range(1 + count // 4)):
                same = sum(left == right for left, right in zip(mine[first:], other, strict=False))
                if len(set(mine)) >= 0.75 * count and same >= count - first - 1:
                    said = f"{what}: another seed gives the same problems, {first} places on"
                    raise CallError(f"{said}; let the seed decide")

        return find_smallest("seeds share no problems", self.problems, None, compare_seeds, str, deadline)

    def _draw_cell(self, cell: Cell, count: int, seed: int) -> list[Problem]:
        """Problems of a design that has this cell alone, as far as the limits of traits allow it."""
        return self.trials.draw(self._single_design(cell), count, seed)

    def _single_design(self, cell: Cell) -> Design:
        row = dict(zip([knob.name for knob in self.space.knobs], cell.values, strict=True))
        for knob in (self.space.knobs[place] for place in self.space.traits):
            low, high = self.space.limits(cell.stratum, knob)
            row[knob.name] = min(max(float(row[knob.name]), low), high)
        return Design({cell.stratum: {self.space.share.name: 1.0, **row}}, given=self.given)

    def judge_references(self, deadline: Deadline) -> Fault | None:
        """The right answer of a problem is valid."""
        known = {draw: problem for draw, problem in self.problems.items() if problem.answer}
        if not known:
            self.report.warnings.append("problems have no reference answer, so a policy cannot be warmed up on them")

        def judge_reference(draw: Draw) -> None:
            problem = known.get(draw) or self.trials.draw_one(draw)
            if problem.answer and not self.trials.judge(problem, problem.answer).valid:
                raise CallError(f"judge finds the problem's own answer {problem.answer!r:.60} not valid; correct one")

        more = st.builds(Draw, st.sampled_from([draw.cell for draw in known]), SEEDS, INDICES) if known else None
        return find_smallest("the right answer is valid", known, more, judge_reference, str, deadline, 50)

    def judge_any_text(self, deadline: Deadline) -> Fault | None:
        """Any text is judged without an error, twice the same, with a declared failure and a finite reward."""
        problems = list(self.problems.values())
        odd = [(problems[0], text) for text in (*ODD_ANSWERS, problems[0].answer)]
        strategy = st.sampled_from(problems).flatmap(lambda problem: st.tuples(st.just(problem), answers(problem)))
        return find_smallest(JUDGED, odd, strategy, self.trials.judge_case, show_case, deadline, 300)

    def judge_attacks(self, deadline: Deadline) -> Fault | None:
        """A verdict comes, within the limit, on texts that exhaust parsers."""
        return judge_attacks(list(self.problems.values()), self.trials, deadline)

    def judge_together(self, deadline: Deadline) -> Fault | None:
        """Groups, verdicts and tallies of several problems equal single verdicts."""
        some = list(self.problems.values())[:TOGETHER_MOST]
        return find_smallest(TOGETHER, [some], None, self.trials.judge_together, show_first, deadline)

    def describe_problems(self, deadline: Deadline) -> Fault | None:
        """Statistics, features and cases come of problems."""
        problems = self.problems.values()
        return find_smallest("problems are described", problems, None, self.trials.describe, show_problem, deadline)

    def read_any_delta(self, deadline: Deadline) -> Fault | None:
        """Any delta of the schema leads to a legal design that can be drawn; both are the same after JSON."""

        def apply_delta(case: tuple[Design, Delta]) -> None:
            design, delta = case
            check_round_trips(design, delta, self.space)
            settings = GuardSettings()
            projected = project_delta(design, delta, self.bounds, settings).design
            try:
                check_design(projected, self.space)
            except InputError as error:
                raise CallError(f"a delta led to an illegal design ({error}); correct the limits") from error
            self.trials.draw(projected, count, 0)

        count = self._choose_count(4, 1, deadline)
        strategy = self._legal_designs().flatmap(lambda design: st.tuples(st.just(design), deltas(self.space, design)))

        def show(case: tuple[Design, Delta]) -> str:
            return f"{show_design(case[0])}, delta {encode_delta(case[1])}"

        return find_smallest("any delta leads to a legal design", (), strategy, apply_delta, show, deadline, 100)

    def measure_rates(self, deadline: Deadline) -> Fault | None:
        """Measures rates and distinct problems, and what a constant answer scores."""
        rates: list[tuple[int, float]] = []
        pool: list[Problem] = []
        count = self._choose_count(SAMPLE, 8, deadline)
        if count < SAMPLE:
            said = "problems come too slowly to estimate how many distinct ones there are; give more seconds"
            self.report.warnings.append(said)

        def measure_cell(draw: Draw) -> None:
            begun = time.monotonic()
            problems = self._draw_cell(draw.cell, count, 1)
            rates.append((count, time.monotonic() - begun))
            if count == SAMPLE:
                self.report.distinct[str(draw.cell)] = estimate_distinct([problem.key for problem in problems])
            pool.extend(problems[:32])

        quick = sorted(self.problems, key=lambda draw: self.space.hardness(draw.cell, self.space.strata))
        if fault := find_smallest(EVERY, quick, None, measure_cell, str, deadline):
            return fault
        self.report.problems_per_second = sum(count for count, _ in rates) / max(1e-9, sum(took for _, took in rates))
        few = [(count, name) for name, count in self.report.distinct.items() if count < FEW]
        if few := sorted(few, key=lambda one: one[0]):  # the easiest first
            cells = f"{len(few)} cell{'s' * (len(few) > 1)}, such as {few[0][1]}"
            about = "1 distinct problem; let make use rng, or" if few[0][0] == 1 else f"{few[0][0]} distinct problems;"
            self.report.warnings.append(f"memorising is easy in {cells}: about {about} give such cells a small share")
        self.score_pool(pool, deadline)
        return None

    def score_pool(self, pool: Sequence[Problem], deadline: Deadline) -> None:
        """Measures what a constant answer to some problems scores."""
        score_constants(pool[:: 1 + len(pool) // MOST_SCORED], self.trials, self.report, deadline)

    def compare_elsewhere(self, deadline: Deadline) -> Fault | None:
        """Another process, with other hashes and a later clock, gives equal results, and is not changed."""
        if not self.maker:
            said = "not compared with another process, which cannot make the class by its name; use `lakewright check`"
            self.report.warnings.append(said)
            return None
        cases, count, sets = self._choose_cases(), self._choose_count(4, 1, Deadline.after(0)), list[Problem]()
        with suppress(CallError):  # named by other properties
            sets = draw_sets(self.trials, self.start, count)
        mine = [*(self.problems[case] for case in cases), *sets]
        verdicts = self._judge_some(mine)
        request = RedrawRequest(cases, self.start if sets else None, count, len(verdicts))
        redrawn = redraw_elsewhere(self.maker, request, self.trials.calls)
        if isinstance(redrawn, str):
            return Fault(EQUAL, f"another process failed: {redrawn}", " ".join(self.maker))
        ways = [f"{what} of {show_design(self.start)}, seed 0" for what in ("draw", "draw_cell") for _ in range(count)]
        name, said, case = compare_redrawn(redrawn, [*map(str, cases), *ways], mine, verdicts)
        return Fault(name, said, case or " ".join(self.maker)) if said else None

    def _judge_some(self, problems: Sequence[Problem]) -> list[list[Verdict]]:
        """The verdicts on `list_answers` of the first problems, as many as a few seconds allow."""
        verdicts: list[list[Verdict]] = []
        deadline = Deadline.after(CROSS_SECONDS)
        with suppress(CallError):  # named where any text is judged
            for problem in problems:
                verdicts.append([self.trials.judge(problem, answer) for answer in list_answers(problem)])
                if deadline.is_over():
                    break
        return verdicts

    def _choose_cases(self) -> list[Draw]:
        """Draws that take a few seconds at most, to be compared with another process."""
        draws = list(self.problems)
        # The other process draws the same problems, so it needs about as long as this one did.
        totals = itertools.accumulate(self.took[draw] for draw in draws)
        return draws[: min(40, max(1, sum(total <= CROSS_SECONDS for total in totals)))]

    def in_order(self) -> list[tuple[Callable[[Deadline], Fault | None], int]]:
        """The properties after `draw_cells`, each with its percentage of the time."""
        return [
            (self.draw_start, 2),
            (self.try_between, 13),
            (self.draw_mixed_cells, 5),
            (self.draw_again, 10),
            (self.draw_slices, 10),
            (self.separate_seeds, 10),
            (self.judge_references, 10),
            (self.judge_any_text, 8),
            (self.judge_attacks, 1),
            (self.judge_together, 1),
            (self.describe_problems, 2),
            (self.read_any_delta, 13),
            (self.measure_rates, 15),
            (self.compare_elsewhere, 0),  # which takes CROSS_SECONDS, whatever the time is
        ]
