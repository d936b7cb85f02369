"""An environment draws the same problems in any pieces, counts answers rightly, and hears of a wrong verdict."""

import copy
import itertools
import math
import random
import sys
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.engineer.cells import Cell, Knob
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.space import DesignSpace
from tests.support.refusals import refused

SPACE = DesignSpace(
    ["sums", 3],
    [Knob(name="terms", low=2, high=9, whole=True), Knob(name="noise", trait=True)],
    failures=("wrong", "unread"),
    grades=("short",),
)


class Sums(Environment):
    """Sums of whole numbers; what is no number is unread."""

    space = SPACE

    def make(self, cell: Cell, rng: random.Random) -> Problem:
        """A sum of `terms` numbers, with a word in front where there is noise."""
        assert isinstance(cell["terms"], int)
        assert isinstance(cell["noise"], bool)
        numbers = [rng.randrange(100) for _ in range(cell["terms"])]
        return Problem(" + ".join(map(str, numbers)) + (" please" if cell["noise"] else ""), str(sum(numbers)))

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """Valid where the number is the sum; short without a blank."""
        if not answer.strip().lstrip("-").isdigit():
            return Verdict(valid=False, reward=0.0, failure="unread")
        right = answer.strip() == problem.answer
        return Verdict(right, float(right), "" if right else "wrong", ("short",) if answer == answer.strip() else ())


class Odd(Sums):
    """An environment that gives the verdict, or the problem, that it is given."""

    def __init__(self, verdict: object = None, problem: object = None) -> None:
        self.verdict, self.problem = verdict, problem

    def make(self, cell: Cell, rng: random.Random) -> Problem:
        """What it was given."""
        return self.problem or super().make(cell, rng)  # type: ignore[return-value]

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """What it was given."""
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict  # type: ignore[return-value]


def row(share: float, terms: int, noise: float) -> dict[str, float]:
    return {"share": share, "terms": terms, "noise": noise}


DESIGN = Design({"sums": row(0.3, 2, 0.25), 3: row(0.7, 4, 0.5)}, version=5)
BOARDS = Sums().draw(DESIGN, 40, seed=1)


@given(st.lists(st.integers(0, 40), max_size=4), st.randoms(use_true_random=False))
def test_a_problem_depends_on_design_seed_and_index_alone(cuts, rng):
    ends = sorted({0, *cuts, 40})
    pieces = list(itertools.pairwise(ends))
    rng.shuffle(pieces)
    drawn = {first: Sums().draw(DESIGN, last - first, 1, first) for first, last in pieces}
    assert [problem for first in sorted(drawn) for problem in drawn[first]] == BOARDS
    assert Sums().draw(DESIGN, 40, seed=2) != BOARDS


def test_every_prefix_has_the_shares_of_the_design_within_one_problem():
    for count in range(1, 41):
        seen = Counter(problem.cell for problem in BOARDS[:count])
        for cell, share in SPACE.cells(DESIGN).items():
            assert abs(seen[cell] - count * share) <= 1, (count, cell)
    assert {problem.version for problem in BOARDS} == {5}
    assert len({problem.key for problem in BOARDS}) == len({problem.prompt for problem in BOARDS})


answers = st.sampled_from(["right", " right", "17", "-4", "", "no idea"])


def write(answer: str, problem: Problem) -> str:
    return answer.replace("right", problem.answer)


@given(st.lists(answers, min_size=40, max_size=40))
def test_answers_are_counted_as_one_by_one(texts):
    given_answers = [write(text, problem) for text, problem in zip(texts, BOARDS, strict=True)]
    outcomes = Sums().tallies(BOARDS, given_answers)
    verdicts = [Sums().judge(problem, text) for problem, text in zip(BOARDS, given_answers, strict=True)]
    assert outcomes.valid == "".join(str(int(verdict.valid)) for verdict in verdicts)
    assert list(outcomes) == ["sums", 3]
    for stratum, tally in outcomes.items():
        mine = [(one, seen) for one, seen in zip(BOARDS, verdicts, strict=True) if one.cell.stratum == stratum]
        noisy = [seen for one, seen in mine if one.cell.values[1]]
        assert tally.problems == len(mine)
        assert tally.valid == sum(seen.valid for _, seen in mine)
        assert tally.failures == {name: sum(seen.failure == name for _, seen in mine) for name in SPACE.failures}
        assert tally.grades == {"short": sum(seen.valid and "short" in seen.grades for _, seen in mine)}
        assert tally.traits["noise"].problems == len(noisy)
        assert tally.traits["noise"].valid == sum(seen.valid for seen in noisy)


@given(st.lists(answers, min_size=1, max_size=6))
def test_a_group_counts_the_answers_to_its_problem(texts):
    problem = BOARDS[0]
    written = [write(text, problem) for text in texts]
    (group,) = Sums().groups([problem], [written])
    verdicts = [Sums().judge(problem, text) for text in written]
    assert (group.key, group.cell, group.version) == (problem.key, problem.cell, 5)
    assert (group.completions, group.valid) == (len(texts), sum(seen.valid for seen in verdicts))
    assert group.failures == dict(Counter(seen.failure for seen in verdicts if not seen.valid))
    assert group.rewards == tuple(seen.reward for seen in verdicts)
    assert group.reward == pytest.approx(sum(group.rewards) / len(texts))


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        (None, ["None", "Verdict"]),
        (True, ["True", "Verdict"]),
        (Verdict(valid=True, reward=math.nan), ["reward", "nan"]),
        (Verdict(valid=True, reward=math.inf), ["reward", "inf"]),
        (Verdict(valid=True, reward=True), ["reward", "True"]),
        (Verdict(valid=False, reward=0.0), ["failure ''", "wrong, unread"]),
        (Verdict(valid=False, reward=0.0, failure="late"), ["failure 'late'"]),
        (ZeroDivisionError("of one"), ["ZeroDivisionError: of one"]),
    ],
)
def test_a_wrong_verdict_is_refused_in_one_line(verdict, problem):
    with refused(*problem):
        Odd(verdict).check_verdict(BOARDS[0], "17\n18")


@pytest.mark.parametrize("made", ["a text", 7, Problem(prompt=None), Problem("1 + 1", answer=2)])  # type: ignore[arg-type]
def test_what_is_no_problem_is_refused_in_one_line(made):
    with refused("Odd.make", "cell", "Problem"):
        Odd(problem=made).draw(DESIGN, 1, seed=0)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda *_: sys.exit(0), "ended the program (0)"),
        (lambda _, cell, rng: cell.__setitem__("terms", 9), "AttributeError"),
    ],
    ids=["exits", "changes the cell"],
)
def test_a_generator_that_does_something_else_is_named_in_one_line(make, told):
    with refused("Odd: cell 3 4 1: make", told):
        type("Odd", (Sums,), {"make": make})().draw(DESIGN, 1, seed=0)
    assert Sums().draw(DESIGN, 1, seed=1) == BOARDS[:1]


@pytest.mark.parametrize(
    ("design", "count", "problem"),
    [
        (Design({"long": {"share": 1.0}}), 1, ["strata.long", "sums, 3"]),
        (Design({3: row(1.0, 99, 0.5)}), 1, ["strata.3.terms", "99", "2 to 9"]),
        ("3", 1, ["'3'", "Design", "space.design"]),
        (DESIGN, -1, ["count", "-1", "0"]),
        (DESIGN, 2.5, ["count", "2.5", "0"]),
    ],
)
def test_a_design_of_another_space_or_a_strange_count_is_refused(design, count, problem):
    with refused(*problem):
        Sums().draw(design, count, seed=0)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [("17", ["answers: '17'"]), ([], ["give a list of at least one text"]), ([17], ["an answer is a text, not int"])],
)
def test_answers_that_are_no_list_of_texts_are_refused(texts, problem):
    with refused(*problem):
        Sums().groups(BOARDS[:1], [texts])


def test_answers_that_are_too_few_are_refused():
    with refused("answers: 1", 40):
        Sums().tallies(BOARDS, ["17"])


def test_a_case_of_an_answer_with_half_a_surrogate_pair_fits_into_a_file():
    environment = Sums()
    problem = environment.draw(environment.start(), 1, seed=0)[0]
    verdict = environment.check_verdict(problem, "4\ud800")
    (case,) = environment.cases([problem], ["4\ud800"], [verdict], 1)
    assert case.text.endswith("answer: 4\\ud800")
    msgspec.json.encode(case)


def test_cases_are_failures_evenly_over_the_problems():
    texts = ["17"] * 40
    verdicts = Sums().verdicts(BOARDS, texts)
    cases = Sums().cases(BOARDS, texts, verdicts, 3)
    failed = [problem for problem, verdict in zip(BOARDS, verdicts, strict=True) if not verdict.valid]
    assert [case.text.splitlines()[0] for case in cases] == [failed[0].prompt, failed[19].prompt, failed[-1].prompt]
    assert {case.failure for case in cases} == {"wrong"}
    assert Sums().cases(BOARDS, texts, verdicts, 0) == []


def test_statistics_are_means_over_what_was_drawn():
    drawn = Sums().statistics(BOARDS)
    assert list(drawn) == ["sums", 3]
    assert sum(part.problems for part in drawn.values()) == 40
    assert (drawn["sums"].knobs["terms"], drawn[3].knobs["terms"]) == (2, 4)
    assert drawn[3].knobs["noise"] == pytest.approx(0.5)


class Reader(Sums):
    """Takes the last word of an answer, so that a draft would count."""

    def judge(self, problem, answer):
        valid = answer.split()[-1:] == [problem.answer]
        return Verdict(valid, float(valid), "" if valid else "wrong")


@pytest.mark.parametrize("begin", ["<think>", "[THINK]", "<|channel|>analysis<|message|>", "<reasoning>"])
def test_a_thought_that_was_cut_off_is_no_answer_unless_the_judge_reads_thoughts(begin):
    problem, draft = BOARDS[0], f"{begin}maybe {BOARDS[0].answer}"
    assert not Reader().check_verdict(problem, draft).valid
    assert Reader().check_verdict(problem, problem.answer).valid
    (group,) = Reader().groups([problem], [[draft, problem.answer]])
    assert group.rewards == (0.0, 1.0)
    assert type("Whole", (Reader,), {"reads_thoughts": True})().check_verdict(problem, draft).valid


class Named(Sums):
    """Sums that read the cell of a problem by name wherever they meet one."""

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """As of sums of two terms or more."""
        assert problem.cell["terms"] >= 2
        return super().judge(problem, answer)

    def describe(self, problem: Problem, answer: str, verdict: Verdict) -> str:
        """With the number of terms."""
        return f"{problem.cell['terms']} terms"

    def measures(self, problems):
        """The share with noise."""
        return {"noisy": sum(problem.cell["noise"] for problem in problems) / len(problems)}

    def canonical(self, cell: Cell) -> Cell:
        """The cell without noise stands for both."""
        return self.space.cell(cell.stratum, terms=cell["terms"], noise=False)


def test_a_cell_is_read_by_name_wherever_an_environment_meets_one():
    world = Named()
    problems = world.draw(world.space.uniform(), 8, seed=1)
    (cell,) = {problem.cell["terms"] for problem in problems}
    assert (cell, {type(problem.cell["noise"]) for problem in problems}) == (6, {bool})
    read = msgspec.json.decode(msgspec.json.encode(problems), type=list[Problem])
    assert read == problems == copy.deepcopy(problems)
    verdicts = world.verdicts(read, ["?"] * 8)
    assert world.cases(read, ["?"] * 8, verdicts, 1)[0].text == "6 terms"
    assert world.statistics(read)["sums"].measures == {"noisy": 0.5}
    assert [one["noise"] for one in world.mix(world.space.uniform())] == [False, False]
