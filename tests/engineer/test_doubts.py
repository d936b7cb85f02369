"""A broken grader is not a hard task: what the engineer doubts gets the least share, until a valid answer comes."""

import random

import numpy as np
import pytest

from lakewright.engineer import DesignSpace, Engineer, Environment, Knob, Problem, Verdict
from lakewright.engineer.design import Delta, Edit
from lakewright.engineer.difficulty.abilities_fit import fit_abilities
from lakewright.engineer.difficulty.forecasting import make_forecast
from lakewright.engineer.difficulty.model import DifficultySettings, Observation
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.signal import DOUBTED, DOUBTED_UNRANKED, ROUNDS_TO_RECHECK, Doubt, find_doubts
from lakewright.engineer.tally import Tally
from lakewright.experiments.bench.worlds import HELD_OUT, KINDS, World

SKILL = {1: 0.9, 2: 0.7, 3: 0.5, 4: 0.3}  # of the policy, P(valid)
SEEN = 13  # letters of a prompt that the policy reads, where prompts are cut off
FLOOR = GuardSettings().least_share(4)


class Sums(Environment):
    """Sums of numbers of 1 to 4 digits. fault: what is broken, of which stratum."""

    space = DesignSpace(
        (1, 2, 3, 4),
        (Knob(name="terms", low=2, high=5, step=1, reach=1, whole=True),),
        failures=("no_number", "wrong"),
        ranked=True,
    )

    def __init__(self, fault: str, stratum: int) -> None:
        self.fault, self.stratum = fault, stratum

    def make(self, cell, rng):
        terms = [rng.randrange(10 ** (cell.stratum - 1), 10**cell.stratum) for _ in range(cell["terms"])]
        wrong = self.fault == "wrong reference" and cell.stratum == self.stratum
        return Problem("+".join(map(str, terms)) + "=", str(sum(terms) + wrong), data={"sum": str(sum(terms))})

    def judge(self, problem, answer):
        refused = self.fault == "refused format" and problem.cell.stratum == self.stratum
        if refused or not answer.isdigit():
            return Verdict(False, 0.0, "no_number")
        return Verdict(True, 1.0) if answer == problem.answer else Verdict(False, 0.0, "wrong")


def answer(environment: Sums, problem: Problem, rng: random.Random) -> str:
    """The policy's answer: the true sum as often as it is able, else another number."""
    if environment.fault == "prompt cut off" and len(problem.prompt) > SEEN:
        return "what is the question"
    able = {**SKILL, environment.stratum: 0.0} if environment.fault == "hard" else SKILL
    return problem.data["sum"] if rng.random() < able[problem.cell.stratum] else str(rng.randrange(9))


def play_rounds(environment: Sums, teacher: str, rounds: int, *, held_out: bool = True) -> list:
    """The decisions of some rounds."""
    engineer, rng = Engineer(environment, teacher, seed=3), random.Random(1)
    tested = environment.draw(engineer.design, 120, seed=9)
    decisions = []
    for _ in range(rounds):
        problems = engineer.draw(48)
        texts = [[answer(environment, problem, rng) for _ in range(6)] for problem in problems]
        engineer.observe(environment.groups(problems, texts))
        greedy = [answer(environment, problem, rng) for problem in tested]
        decisions.append(engineer.redesign(environment.tallies(tested, greedy) if held_out else None))
        engineer.load_state_dict(engineer.state_dict())
    return decisions


def share(decision, stratum) -> float:
    return decision.design.strata[stratum]["share"]


@pytest.mark.parametrize(
    ("fault", "stratum", "said", "teacher"),
    [
        ("refused format", 3, "answers fail as no_number", "gain"),
        ("wrong reference", 2, "while harder ones succeed: 3 ", "gain"),
        ("prompt cut off", 4, "answers fail as no_number", "gain"),
        ("refused format", 3, "answers fail as no_number", "proportional"),
        ("wrong reference", 2, "while harder ones succeed: 3 ", "coaching"),
    ],
)
def test_a_planted_fault_gets_the_floor_from_any_teacher_and_a_line(fault, stratum, said, teacher):
    decisions = play_rounds(Sums(fault, stratum), teacher, 3 + ROUNDS_TO_RECHECK)
    first = next(place for place, one in enumerate(decisions) if one.forecast.doubts)
    assert first == 2  # with 30 held-out answers of each a round
    for place, decision in enumerate(decisions[first : first + ROUNDS_TO_RECHECK], 1):
        assert said in decision.explain() or decision.rolled_back
        if place < ROUNDS_TO_RECHECK and decision.attempts and decision.attempts[-1].proposal.delta.edits:
            assert share(decision, stratum) <= FLOOR + 1e-6
    assert f"checked again after {ROUNDS_TO_RECHECK} rounds" in decisions[first + ROUNDS_TO_RECHECK - 1].explain()


def test_a_doubted_stratum_whose_share_stays_is_not_said_to_get_the_least():
    decision = play_rounds(Sums("refused format", 3), "fixed", 2, held_out=False)[-1]
    assert share(decision, 3) == 0.25
    assert "broken grader" in decision.explain()
    assert "least share" not in decision.explain()


def test_training_answers_alone_are_enough():
    decisions = play_rounds(Sums("refused format", 3), "gain", 2, held_out=False)
    assert share(decisions[-1], 3) <= FLOOR + 1e-6


@pytest.mark.parametrize("stratum", [1, 4])
def test_a_fault_is_told_from_a_hard_task_by_how_answers_fail_and_by_harder_tasks(stratum):
    decisions = play_rounds(Sums("hard", stratum), "gain", 3)
    doubted = {doubt.stratum for one in decisions for doubt in one.forecast.doubts or ()}
    assert doubted == ({1} if stratum == 1 else set())  # nobody adds long numbers and cannot add short ones


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_of_worlds_that_are_only_hard_are_not_doubted(kind):
    world, rng = World(kind, 0), random.Random(0)
    tested, start, rounds = world.draw_held_out(), world.draw_start(), []
    never = set(world.truth.broken) | {place for place, ability in enumerate(world.truth.ability) if ability < -5}
    for number in range(8):
        problems = world.draw(start, 32, seed=number)
        groups = world.groups(problems, [world.answer(problem, rng, 8) for problem in problems])
        world.train([(world.find_place(one), group.valid / 8) for one, group in zip(problems, groups, strict=True)])
        rounds.append(world.tallies(tested, [world.answer(problem, rng, 1)[0] for problem in tested]))
        doubted = {world.space.ranks[doubt.stratum] for doubt in find_doubts(rounds, world.space)}
        enough = (number + 1) * HELD_OUT >= DOUBTED_UNRANKED * len(world.space.strata)
        assert doubted <= (never if enough else set())  # a task that is out of reach for good looks like a broken one
    assert doubted == never or kind == "stuck"


def tally(valid: int, **failures: int) -> Tally:
    return Tally(valid + sum(failures.values()), valid, failures)


def test_a_doubt_needs_more_answers_than_a_line_in_the_status_and_one_valid_answer_ends_it():
    space, half = Sums("", 0).space, DOUBTED // 2
    good, bad = tally(20, wrong=20), tally(0, no_number=half)
    assert find_doubts([{1: good, 2: bad, 3: good}], space) == []
    twice = find_doubts([{1: good, 2: bad, 3: good}] * 2, space)
    assert [(one.stratum, one.rounds) for one in twice] == [(2, 1)]
    (again,) = find_doubts([{1: good, 2: bad, 3: good}] * (ROUNDS_TO_RECHECK + 1), space)
    assert again.rounds == ROUNDS_TO_RECHECK
    assert not again.holds
    assert find_doubts([*[{1: good, 2: bad, 3: good}] * 3, {1: good, 2: tally(1, wrong=half)}], space) == []


def test_tasks_in_no_order_are_doubted_by_their_neighbours_only_after_many_answers():
    space = DesignSpace(["sort", "reverse"], (), failures=("no_number", "wrong"))
    good, bad = tally(50, wrong=50), tally(0, wrong=DOUBTED_UNRANKED // 2)
    assert find_doubts([{"sort": bad, "reverse": good}], space) == []
    (doubt,) = find_doubts([{"sort": bad, "reverse": good}] * 3, space)
    assert (doubt.stratum, doubt.rounds) == ("sort", 2)
    assert find_doubts([{"sort": bad, "reverse": bad}] * 9, space) == []  # nothing succeeds yet


def test_what_a_held_stratum_loses_goes_to_the_others_at_once():
    environment = Sums("", 0)
    design = environment.space.uniform()
    delta = Delta({4: Edit({"share": 0.3}, ""), 1: Edit({"share": -0.02}, "")})
    verdict = project_delta(design, delta, environment, GuardSettings(), held=[4])
    shares = [row["share"] for row in verdict.design.strata.values()]
    assert shares[3] == pytest.approx(FLOOR)
    assert sum(shares) == pytest.approx(1)
    assert min(shares[:3]) > 0.25
    assert "4.share: proposed 0.55, applied 0.02" in verdict.summary()
    assert project_delta(design, Delta({}), environment, GuardSettings(), held=[4]).design == design


def test_a_held_stratum_stays_at_the_floor_if_the_proposal_wants_nothing_else():
    environment = Sums("", 0)
    delta = Delta({stratum: Edit({"share": 0.75 if stratum == 4 else -0.25}, "") for stratum in range(1, 5)})
    guard = GuardSettings(reach={"share": 1.0})
    verdict = project_delta(environment.space.uniform(), delta, environment, guard, held=[4])
    shares = [row["share"] for row in verdict.design.strata.values()]
    assert shares[3] == pytest.approx(FLOOR)
    assert min(shares[:3]) > 0.3


@pytest.mark.parametrize("model", ["abilities", "regression"])
def test_what_is_doubted_says_nothing_of_others(model):
    space = Sums("", 0).space
    good = [Observation(cell, 8, 6.0, 1.0, answers=64) for cell in space.grid({1: {}, 2: {}, 3: {}})]
    bad = [Observation(cell, 8, 0.0, 0.0, answers=64) for cell in space.grid({4: {}})]
    how, design = DifficultySettings(model=model), space.uniform()
    cells = [one.cell for one in good]

    def predict(observations, doubts=()):
        return make_forecast(design, observations, [], how, space, doubts=doubts).model.predict(cells, space).mean

    doubted = predict([*good, *bad], [Doubt(4, "", 1)])
    assert doubted == pytest.approx(predict(good), abs=0.01)
    assert np.abs(predict([*good, *bad]) - predict(good)).max() > 0.01
    fitted = fit_abilities([*good, *bad], [], space, "learnability", [4])
    assert fitted.abilities.mean[3][0] < fitted.abilities.mean[2][0] - 1  # its own ability is what was seen


class Essays(Environment):
    """A task whose answers are valid or not, and one that nobody solves yet, whose answers earn more or less."""

    space = DesignSpace(("sums", "essays"), (), failures=("wrong", "no_answer"))

    def make(self, cell, rng):
        return Problem(f"{cell.stratum} {rng.random()}", "1")

    def judge(self, problem, answer):
        if problem.cell.stratum == "sums":
            return Verdict(True, 1.0) if float(answer) > 0.2 else Verdict(False, 0.0, "wrong")
        return Verdict(False, 0.9 * float(answer), "no_answer")


def test_graded_rewards_teach_where_no_answer_is_valid_so_that_the_grader_is_not_doubted():
    environment, rng = Essays(), random.Random(0)
    held_out = environment.draw(environment.space.uniform(), 200, seed=1)
    engineer = Engineer(environment, held_out=held_out)
    for _ in range(3):
        problems = engineer.draw(32)
        engineer.observe(environment.groups(problems, [[str(rng.random()) for _ in range(8)] for _ in problems]))
        decision = engineer.redesign(environment.tallies(held_out, [str(rng.random()) for _ in held_out]))
        assert not decision.forecast.doubts
        assert decision.design.strata["essays"]["share"] > 2 * GuardSettings().least_share(2)
    # Four times the variance of rewards that are uniform from 0 to .9.
    graded = dict(zip(environment.space.strata, decision.forecast.model.abilities.graded, strict=True))
    assert graded["essays"] == pytest.approx(4 * 0.9**2 / 12 * 7 / 8, rel=0.2)
    restored = Engineer(environment, held_out=held_out)
    restored.load_state_dict(engineer.state_dict())
    assert restored.forecast == engineer.forecast
