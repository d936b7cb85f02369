"""What the code of an environment does wrong is one line that names place, value and remedy."""

import math
import sys

import msgspec
import numpy as np
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer import Cell, Delta, DesignSpace, Edit, Engineer, Environment, Given, Knob, Problem, Verdict
from lakewright.engineer.argument_checks import check_observations
from lakewright.engineer.difficulty import Observation
from lakewright.engineer.evidence.vocabulary import vocabulary_of
from lakewright.engineer.guard import can_draw_row, is_drawable
from lakewright.engineer.number_limits import MOST_REWARD
from lakewright.engineer.samplers.pcl import PclSampler
from lakewright.engineer.start import choose_start, find_start
from lakewright.engineer.words import Words
from lakewright.experiments.loop.records.stage_rollouts import write_problems
from tests.engineer.test_environment import BOARDS, DESIGN, Odd, Sums
from tests.support.samples.evidence import SPACE

KNOBS = (Knob(name="n", low=1, high=9, step=1, reach=2, whole=True), Knob(name="odd", trait=True))
TEAMS = DesignSpace(("a", "b"), KNOBS, givens=[Given(name="agents", middle=2)], grades=("short",))


class Teams(Environment):
    """Problems of n numbers for some agents."""

    space = TEAMS

    def make(self, cell: Cell, rng) -> Problem:
        """Refuses what `drawable` excludes."""
        assert self.drawable(cell)
        return Problem(f"{cell['n']} {cell['agents']} {rng.random()}", "1")

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """Whether it is the answer."""
        return Verdict(answer == "1", 0.0, "" if answer == "1" else "wrong")


class Few(Teams):
    """Of which only problems of more numbers than agents can be drawn, and none of five."""

    def drawable(self, cell: Cell) -> bool:
        """Reads knobs and givens by their names."""
        return cell["n"] > cell["agents"] and cell["n"] != 5 and not (cell["odd"] and cell["n"] == 9)


def change(base: type[Environment], **members: object) -> Environment:
    """An environment with other members."""
    return type("Changed", (base,), members)()


def raise_(error: BaseException):
    raise error


def assert_line(call, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 600


def test_drawable_reads_knobs_and_givens_by_name_wherever_it_is_asked():
    few = Few()
    design = few.space.uniform(agents=6)
    assert not is_drawable(few, Cell("a", (6, True)), design)
    assert is_drawable(few, Cell("a", (7, True)), design)
    assert is_drawable(few, Cell("a", (6, True), (2,)), design), "its own givens count"
    assert not can_draw_row("a", {"share": 0.5, "n": 9, "odd": 0.5}, few, design.given)
    assert can_draw_row("a", {"share": 0.5, "n": 9, "odd": 0.0}, few, design.given)
    engineer = Engineer(few, "random")
    problems = engineer.draw(8)
    engineer.observe(few.groups(problems, [["1", "2"]] * 8))
    assert engineer.redesign().design.given == {"agents": 2}
    assert all(cell.cell.values[0] not in (1, 5) for cell in engineer.forecast.held_out)


@pytest.mark.parametrize(
    ("drawable", "problem"),
    [
        (
            lambda self, cell: cell["m"] > 1,
            "cell a 5 1 | 2: drawable raised KeyError: .*'m' is not a knob; choose from n",
        ),
        (lambda self, cell: np.bool_(True), r"drawable gave np\.True_; return a bool, such as bool"),
        (lambda self, cell: None, "drawable gave None; return a bool"),
        (lambda self, cell: sys.exit(3), r"drawable ended the program \(3\); return instead"),
        (lambda self, cell: raise_(ValueError("a\nb")), r"drawable raised ValueError: a\\nb; correct it"),
    ],
)
def test_a_drawable_that_fails_ends_a_redesign_instead_of_refusing_a_change(drawable, problem):
    engineer = Engineer(change(Teams, drawable=drawable), design=TEAMS.uniform())
    assert_line(lambda: engineer.judge_delta(Delta({"a": Edit({"n": 0}, "why")}), None), problem.replace("|", r"\|"))
    assert_line(lambda: engineer.draw(1), problem.replace("|", r"\|"))
    assert_line(engineer.redesign, "drawable")


def test_a_cell_without_its_givens_says_so():
    with pytest.raises(KeyError, match="'agents' is a given, which this cell lacks"):
        TEAMS.name_cell(Cell("a", (1, True)))["agents"]


def test_the_default_start_is_the_nearest_to_the_middle_that_can_be_drawn():
    assert Few().start().strata["a"] == {"share": 0.5, "n": 4, "odd": 0.5}
    assert Few().start().given == {"agents": 2}
    assert Teams().start() == TEAMS.uniform()
    assert choose_start(Few(), agents=8).strata["b"] == {"share": 0.5, "n": 9, "odd": 0.0}
    assert len(Engineer(Few()).draw(4)) == 4


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"drawable": lambda self, cell: False}, "Changed.start: no problems of a were found .*; override start"),
        ({"start": lambda self: 1 / 0}, "Changed.start raised ZeroDivisionError: division by zero; correct it"),
        ({"start": lambda self: None}, "Changed.start: None is not a Design"),
        ({"start": lambda self: TEAMS.uniform()}, r"Changed.start: strata.a: no problems with n 5 .* can be drawn"),
    ],
)
def test_a_start_that_cannot_be_used_is_one_line(members, problem):
    assert_line(lambda: find_start(change(Few, **members)), problem)
    assert_line(lambda: Engineer(change(Few, **members)), problem)


def test_a_first_design_that_cannot_be_drawn_is_refused():
    engineer = Engineer(Few(), design=TEAMS.uniform())
    assert_line(lambda: engineer.draw(1), "engineer: design: strata.a: no problems with n 5 .*; change its knobs")


@pytest.mark.parametrize("name", ["self", "rows", "space", "bounds", "drawable", "class"])
def test_a_given_may_have_any_name(name):
    space = DesignSpace(("a",), KNOBS, givens=[Given(name=name, middle=2)])
    assert space.uniform(**{name: 3}).given == {name: 3}
    assert space.design(space.uniform().strata, **{name: 4}).given == {name: 4}
    assert choose_start(change(Teams, space=space), **{name: 5}).given == {name: 5}


@pytest.mark.parametrize("scale", [lambda stratum: 1 / 0, lambda stratum: math.nan, lambda stratum: "x"])
def test_a_scale_that_fails_is_one_line(scale):
    space = DesignSpace(("a", "b"), KNOBS, ranked=True, scale=scale)
    assert_line(lambda: Engineer(change(Sums, space=space)).redesign(), "space: scale of 'a' ")


@pytest.mark.parametrize("describe", [lambda *_: 1 / 0, lambda *_: None])
def test_a_description_that_fails_is_one_line(describe):
    sums = change(Sums, describe=describe)
    verdicts = sums.verdicts(BOARDS[:2], ["x", "x"])
    assert_line(lambda: sums.cases(BOARDS[:2], ["x", "x"], verdicts, 2), "Changed.describe: on 'x' to")


@pytest.mark.parametrize(
    "measures",
    [lambda *_: 1 / 0, lambda *_: None, lambda *_: {"n": "long"}, lambda *_: {"n": math.nan}, lambda *_: {1: 2}],
)
def test_measures_that_fail_are_one_line(measures):
    assert_line(
        lambda: change(Sums, measures=measures).statistics(BOARDS), "Changed.measures: of 12 problems of 'sums'"
    )


@pytest.mark.parametrize("features", [lambda *_: 1 / 0, lambda *_: None, lambda *_: ["x"], lambda *_: [math.inf]])
def test_features_that_fail_are_one_line(features):
    sums, sampler = change(Sums, features=features), PclSampler()
    rollouts = [(BOARDS[0], sums.groups(BOARDS[:1], [["17"]])[0])]
    assert_line(lambda: sampler.learn(rollouts, 0, sums), "Changed.features: of '.*'")


def test_an_error_of_a_library_in_the_code_of_an_environment_has_its_place():
    def refuse(self, *_):
        raise InputError("digits is 0; choose more")

    said = "digits is 0; choose more$"
    assert_line(lambda: change(Sums, make=refuse).draw(DESIGN, 1, 0), f"Changed: cell 3 4 1: make: {said}")
    assert_line(lambda: change(Sums, judge=refuse).tallies(BOARDS[:1], ["1"]), f"Changed.judge: on '1' to .*: {said}")
    assert_line(lambda: find_start(change(Few, start=refuse)), f"Changed.start: {said}")
    assert_line(lambda: change(Few, drawable=refuse).start(), f"Changed: cell .*: drawable: {said}")


def test_problems_of_another_space_are_neither_grouped_nor_counted():
    foreign = Teams().draw(TEAMS.uniform(), 1, 0)
    for call in (Sums().groups, Sums().tallies):
        assert_line(lambda call=call: call(foreign, ["1"]), "problems: cell .* of this environment; leave it out")
    assert_line(lambda: Sums().tallies([Problem("1")], ["1"]), "problems: cell .* of this environment")


def test_bounds_that_no_design_can_have_are_refused():
    assert_line(lambda: Knob(name="n", low=1 / 3), "knob 'n': 0.333333333.* has more than 6 decimals; choose 0.333333$")
    knobs = [Knob(name="n", high=9)]
    assert_line(
        lambda: DesignSpace(("a", "b"), knobs, limits={"a": {"n": (0, 20 / 3)}}),
        "space: limits.a.n: 6.6666.* choose 6.666667",
    )


class Silent(Exception):  # noqa: N818
    """Whose text cannot be read."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("verdict", "problem"),
    [
        (Verdict(np.bool_(True), 1.0), r"valid is np.True_; give True or False"),
        (Verdict(None, 0.0, "wrong"), "valid is None; give True or False"),
        (Verdict(2, 0.0), "valid is 2; give True"),
        (Verdict(True, -(2**2000)), "reward is .*; give a finite number"),
        (Verdict(True, 10**5000), "reward is .*; give a finite number"),
        (Verdict(True, 2 * MOST_REWARD), "reward is 2e.100; give a finite number, an int or a float of at most 1e.100"),
        (Verdict(True, np.float32(1)), "reward is np.float32"),
        (Verdict(True, 1.0, "wrong"), "failure is 'wrong' though the answer is valid; leave it empty"),
        (Verdict(False, 1.0, ["wrong"]), r"failure \['wrong'\] is not declared"),
        (Verdict(True, 1.0, grades=("long",)), "grade 'long' is not declared; choose from short"),
        (Verdict(True, 1.0, grades=None), "grades are None; give a tuple"),
        (Verdict(True, 1.0, place="x"), "place is 'x'; give a whole number, at least -1"),
        (Verdict(True, 1.0, place=-2), "place is -2"),
        (Silent(), "judge.*raised Silent: an error whose text cannot be read; give a verdict on any text"),
        (ValueError("long " * 1000), "raised ValueError: long long"),
    ],
)
def test_a_verdict_that_breaks_a_promise_is_refused(verdict, problem):
    assert_line(lambda: Odd(verdict).check_verdict(BOARDS[0], "17"), problem)


@pytest.mark.parametrize("reward", [0, -(2**70), 1e99, np.float64(0.5)])
def test_rewards_of_any_size_that_a_group_can_average_are_counted(reward):
    (group,) = Odd(Verdict(True, reward)).groups(BOARDS[:1], [["1", "2"]])
    assert group.reward == float(reward)
    assert math.isfinite(group.spread)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (Problem("1\ud800", "2"), "valid Unicode"),
        (Problem("1", "\udc00"), "valid Unicode"),
        (Problem("1", data=["\ud800"]), "valid Unicode"),
        (Problem("1", data=object()), "does not fit into JSON .*; let its data be JSON values"),
        (Problem("1", key=5), "return a Problem with texts as prompt, answer and key"),
        (Problem("1", key=None), "return a Problem with texts as prompt, answer and key"),
    ],
)
def test_a_problem_that_no_file_can_hold_is_refused_when_it_is_made_and_when_it_is_written(made, problem, tmp_path):
    assert_line(
        lambda: Odd(problem=made).draw(DESIGN, 1, seed=0), rf"Odd\.make: gave Problem.* for cell 3 4 1; .*{problem}"
    )
    assert_line(lambda: write_problems(tmp_path / "problems.jsonl", [BOARDS[0], made]), f"problem 2 is .*{problem}")
    assert list(tmp_path.iterdir()) == []


def test_answers_may_come_one_at_a_time_and_must_be_lists():
    sums, texts = Sums(), [["17", "18"]] * 3
    assert sums.groups(iter(BOARDS[:3]), (iter(text) for text in texts)) == sums.groups(BOARDS[:3], texts)
    assert sums.tallies(iter(BOARDS[:3]), iter("123")) == sums.tallies(BOARDS[:3], list("123"))
    assert_line(lambda: sums.groups(BOARDS[:1], [1]), "answers: 1 to .*; give a list of at least one text")
    assert_line(lambda: sums.groups(5, [["1"]]), "problems is 5")
    assert_line(lambda: sums.tallies(BOARDS[:1], [1]), "an answer is a text, not int")


def test_a_written_problem_is_read_as_it_was():
    for problem in BOARDS[:3]:
        assert msgspec.json.decode(msgspec.json.encode(problem), type=Problem) == problem


def test_a_cell_without_givens_gets_those_of_the_design_when_its_group_is_observed():
    teams = Teams()
    engineer = Engineer(teams, design=TEAMS.uniform(agents=6))
    problems = [Problem(str(number), "1", cell=Cell("a", (5, False))) for number in range(3)]
    engineer.observe(teams.groups(problems, [["1", "2"]] * 3))
    assert engineer.state_dict()["seen"][0]["cell"][2] == (6,)
    assert engineer.redesign().forecast.model.abilities


@pytest.mark.parametrize(
    "cell",
    [("a", (math.inf, True)), ("a", ("2", True)), ("a", (2, True), (1, 2)), ("a", (2, True), (math.nan,))],
)
def test_cells_with_values_that_no_problem_has_are_refused(cell):
    problem = Problem("1", cell=Cell(*cell))
    assert_line(lambda: Teams().groups([problem], [["1"]]), "problems: cell .* of this environment; leave it out")
    assert_line(lambda: Engineer(Teams(), held_out=[problem]), "held_out: cell .* of this environment")


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"words": Words(traits={"evn": ("even", "not even")})}, "words have phrases of 'evn', which is not a trait"),
        ({"words": Words(traits={"odd": "odd numbers"})}, "words of odd are 'odd numbers'; give a phrase with and one"),
        ({"words": Words(rates={"odd": "odd numbers"})}, "words.rates of odd are 'odd numbers'; give RateWords"),
        (
            {"words": Words(question='{"edits": 1}')},
            "question of words has .*edits.*; its fields are {stratum}, .*others",
        ),
        ({"knobs": [Knob(name="n"), Knob(name="m", word="n")]}, "space: word 'n' appears twice; name each once"),
        ({"failures": ("too_hard",)}, "space: failure 'too_hard' appears twice"),
    ],
)
def test_words_that_nobody_can_use_are_refused(parts, problem):
    assert_line(lambda: DesignSpace(**{"strata": ("a",), "knobs": KNOBS} | parts), problem)


def test_two_tokens_that_are_equal_are_refused():
    space = DesignSpace((1, 2), KNOBS, words=Words(token="round"))
    assert_line(lambda: vocabulary_of(space), "space: two words have the token <round_1>; choose another token")


def test_canonical_cells_of_the_lake_beyond_the_range_of_a_knob_are_of_its_space():
    seen = Observation(Cell(3, (0.6, False), (2,)), groups=2, success=1.0, variance=0.0)
    assert check_observations([seen], SPACE, "seen") is None
