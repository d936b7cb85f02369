"""The teacher `gain`: plans that give problems to what gains most on the held-out problems."""

import json

import msgspec
import numpy as np
import pytest
from msgspec import UNSET

from lakewright.core_jax.errors import InputError
from lakewright.engineer import DesignSpace, Engineer, Environment, Group, Knob, Problem, Verdict
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import edit_design
from lakewright.engineer.difficulty import (
    DifficultySettings,
    HeldOutCell,
    Learners,
    Observation,
    estimate_worth,
    make_forecast,
)
from lakewright.engineer.difficulty.forecasting import find_costs
from lakewright.engineer.evidence.evidence import Evidence, show_evidence
from lakewright.engineer.evidence.modules import PRESETS
from lakewright.engineer.evidence.text_form import evidence_text
from lakewright.engineer.evidence.token_form import evidence_tokens
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.tally import Tally
from lakewright.engineer.teachers.difficulty import WorthTeacher
from lakewright.engineer.teachers.gain import NOTHING_VALID, REASON, GainTeacher, count_rounds_ahead, list_candidates
from lakewright.engineer.windows import list_windowed
from tests.support.refusals import refused

LEVEL = Knob(name="level", low=1, high=8, step=1, reach=2, whole=True)
SPACE = DesignSpace(("add", "sort", "spell"), (LEVEL,), ranked=False)
DESIGN = SPACE.uniform()
HELD_OUT = [HeldOutCell(Cell(task, (level,)), 1 / 24) for task in SPACE.strata for level in range(1, 9)]


def answer(abilities, held_out=HELD_OUT, **how):
    """A forecast from as many answers to held-out problems as make it sure."""
    seen = []
    for task, ability in abilities.items():
        for level in range(1, 9):
            p = 1 / (1 + np.exp(1.5 * (level - ability)))
            seen.append(Observation(Cell(task, (level,)), 200, 200 * float(p), None, 0, 200))
    return make_forecast(DESIGN, [], held_out, DifficultySettings(**how), SPACE, tested=seen)


def propose(known, teacher=None, space=SPACE, **changes):
    evidence = Evidence(design=DESIGN, outcomes={}, round=1, rounds=4, forecast=known, **changes)
    return (teacher or GainTeacher()).propose(evidence, DESIGN, space, make_key(1))


def goal(proposal):
    """The rows that a proposal asks for."""
    edits = proposal.delta.edits
    return {
        task: {name: row[name] + edits[task].changes.get(name, 0.0) for name in row} if task in edits else row
        for task, row in DESIGN.strata.items()
    }


def test_each_task_gets_the_level_of_the_most_signal():
    rows = goal(propose(answer({"add": 2.0, "sort": 4.0, "spell": 7.0})))
    assert [rows[task]["level"] for task in SPACE.strata] == [2, 4, 7]


def test_what_cannot_be_learned_at_any_level_gets_nothing():
    rows = goal(propose(answer({"add": 4.0, "sort": -9.0, "spell": 30.0})))
    assert rows["add"]["share"] > 0.9


def test_tasks_get_more_the_more_of_the_held_out_problems_they_are():
    heavy = [HeldOutCell(Cell(task, (4,)), share) for task, share in zip(SPACE.strata, (0.6, 0.3, 0.1), strict=True)]
    even = {"add": 4.0, "sort": 4.0, "spell": 4.0}
    shares = [goal(propose(answer(even, heavy)))[task]["share"] for task in SPACE.strata]
    assert shares[0] > shares[1] > shares[2]
    alike = [goal(propose(answer(even, heavy, weigh="strata")))[task]["share"] for task in SPACE.strata]
    assert max(alike) - min(alike) < 0.25


def test_an_equal_key_makes_an_equal_plan():
    known = answer({"add": 2.0, "sort": 4.0, "spell": 7.0})
    assert propose(known) == propose(known)


def test_without_answers_nothing_is_proposed():
    assert propose(make_forecast(DESIGN, [], HELD_OUT, DifficultySettings(), SPACE)).delta.edits == {}
    assert propose(None).delta.edits == {}


@pytest.mark.parametrize(("harder", "easiest"), [(1, 2), (-1, 8), (0, 5)])
def test_while_nothing_was_valid_levels_become_the_easiest_and_shares_stay(harder, easiest):
    level = Knob(name="level", low=2, high=8, step=1, reach=2, whole=True, harder=harder)
    noise = Knob(name="noise", low=0, high=1, step=0.1, reach=0.5, trait=True, harder=harder)
    space = DesignSpace((1, 2), (level, noise), ranked=True)
    row = {"share": 0.5, "level": 5, "level_high": 6, "noise": 0.5}
    design = space.design({1: row, 2: row})
    seen = [Observation(Cell(task, (5, False)), 20, 0.0, 0.0, 0, 80) for task in space.strata]
    known = make_forecast(design, seen, [], DifficultySettings(), space)
    evidence = Evidence(design=design, outcomes={}, round=1, rounds=4, forecast=known)
    made = GainTeacher().propose(evidence, design, space, make_key(1))
    for row in edit_design(design, made.delta, space).values():
        assert row["share"] == 0.5
        assert list_windowed(row, space.knobs) == ([level] if harder == 0 else [])
        assert row["level"] == easiest
        assert row["noise"] == pytest.approx({1: 0.05, -1: 0.95, 0: 0.5}[harder])


def test_one_valid_answer_to_a_held_out_problem_is_enough_to_plan():
    seen = [Observation(Cell(task, (5,)), 20, 0.0, 0.0, 0, 80) for task in SPACE.strata]
    known = make_forecast(DESIGN, seen, HELD_OUT, DifficultySettings(), SPACE)
    nothing = {task: Tally(problems=20, valid=0) for task in SPACE.strata}
    reasons = []
    for valid in (0, 1):
        outcomes = nothing | {"sort": Tally(problems=20, valid=valid)}
        evidence = Evidence(design=DESIGN, outcomes=outcomes, round=1, rounds=4, forecast=known)
        made = GainTeacher().propose(evidence, DESIGN, SPACE, make_key(1))
        reasons.append({edit.reason for edit in made.delta.edits.values()})
    assert reasons == [{NOTHING_VALID}, {REASON}]


def test_a_regression_has_no_learning_rates_and_is_refused():
    with pytest.raises(InputError, match="model is regression"):
        propose(answer({"add": 4.0}, model="regression"))


def test_learners_that_are_trained_gain_what_was_expected():
    """The expected gain of few problems is the change of the held-out P(valid) after training on them."""
    known = answer({"add": 3.0, "sort": 4.0, "spell": 6.0})
    learners = Learners(known, DESIGN, SPACE, np.random.default_rng(0), 16)
    cell, held_out = Cell("sort", (4,)), [part.cell for part in HELD_OUT]
    before = known.model.abilities and _valid(learners, held_out)
    expected = learners.estimate_gains([cell])[:, 0] * 0.01
    learners.train([cell] * 16, 0.01)
    assert _valid(learners, held_out) - before == pytest.approx(expected, rel=0.02, abs=1e-7)


def _valid(learners, cells):
    return learners.predict(cells).mean(axis=1)


def test_candidates_are_all_levels_with_and_without_traits_or_one_knob_at_a_time():
    assert [cell.values for cell in list_candidates("add", DESIGN, SPACE)] == [(level,) for level in range(1, 9)]
    knobs = [Knob(name=f"k{place}", low=0, high=1) for place in range(4)]
    wide = DesignSpace(("a",), (*knobs, Knob(name="t", trait=True)))
    found = list_candidates("a", wide.uniform(), wide)
    assert len(found) == len(set(found)) <= (1 + 4 * 9) * 2
    levels = [{cell.values[:-1] for cell in found if cell.values[-1] == having} for having in (False, True)]
    assert levels[0] == levels[1]  # so levels are compared by the same kinds of problems


def test_the_worth_of_a_problem_is_its_signal_by_what_the_signal_moves():
    """Designs, trials and evidence share it: a stratum with more held-out problems has the larger leverage."""
    heavy = [HeldOutCell(Cell(task, (4,)), share) for task, share in zip(SPACE.strata, (0.6, 0.3, 0.1), strict=True)]
    known = answer({"add": 4.0, "sort": 4.0, "spell": 4.0}, heavy)
    leverage = [known.model.find_leverage(task, SPACE) for task in SPACE.strata]
    assert leverage[0] > leverage[1] > leverage[2]
    assert np.mean(leverage) == pytest.approx(1)
    worth = {task: estimate_worth(known.model, {Cell(task, (4,)): 1.0}, SPACE).mean for task in SPACE.strata}
    assert worth["add"] / worth["spell"] == pytest.approx(leverage[0] / leverage[2], rel=0.1)
    told = {found.cell.stratum: found.worth for found in known.grid if found.cell.values == (4,)}
    assert told["add"] > told["sort"] > told["spell"]
    evidence = Evidence(design=DESIGN, outcomes={}, round=1, rounds=4, forecast=known)
    assert f"worth {told['add']:.2f}" in evidence_text(evidence, SPACE)


def cost(tokens):
    """A forecast of tasks that are alike but for the lengths of the answers to them; None for unknown lengths."""
    seen = []
    for task in SPACE.strata:
        length = tokens.get(task)
        seen.append(Observation(Cell(task, (4,)), 50, 25.0, 12.0, 0, 400, tokens=400 * length if length else UNSET))
    return make_forecast(DESIGN, seen, HELD_OUT, DifficultySettings(), SPACE)


def shares(known, **options):
    rows = goal(propose(known, GainTeacher(**options)))
    return [rows[task]["share"] for task in SPACE.strata]


def test_a_task_whose_answers_cost_ten_times_more_gets_less_per_token_and_as_much_per_problem():
    dear = cost({"add": 100, "sort": 10, "spell": 10})
    assert dear.tokens == {"add": 100, "sort": 10, "spell": 10}
    assert shares(dear)[0] < 0.05
    assert min(shares(dear, per="problem")) > 0.2
    assert min(shares(cost({}))) > 0.2  # of unknown lengths a gain is per problem
    assert shares(cost({})) == shares(dear, per="problem")
    told = {found.cell.stratum: found.worth for found in dear.grid if found.cell.values == (4,)}
    assert told["add"] == pytest.approx(told["sort"] / 10, rel=0.2)


def test_a_task_of_unknown_lengths_costs_what_the_others_cost():
    assert find_costs({"add": 30.0, "sort": 10.0}, SPACE.strata).tolist() == [30, 10, 20]
    assert find_costs({}, SPACE.strata).tolist() == [1, 1, 1]


def test_lengths_of_answers_come_with_groups_and_recent_ones_count_more():
    engineer = Engineer(Steps(), "gain", seed=0)
    for length in (10, 40):
        for problem in engineer.draw(30):
            verdicts = [Verdict(True, 1.0), Verdict(False, 0.0, "wrong")]
            engineer.observe([Group.from_verdicts(problem, verdicts, tokens=2 * length)])
        engineer.redesign()
    assert set(engineer.forecast.tokens) == set(SPACE.strata)
    assert all(25 < length < 40 for length in engineer.forecast.tokens.values())
    again = Engineer(Steps(), "gain", seed=0)
    again.load_state_dict(json.loads(json.dumps(engineer.state_dict())))
    assert again.forecast.tokens == engineer.forecast.tokens
    with refused("tokens", -1):
        engineer.observe([Group.from_verdicts(engineer.draw(1)[0], [Verdict(True, 1.0)], tokens=-1)])


class Steps(Environment):
    space = SPACE

    def make(self, cell, rng):
        return Problem(f"{cell} {rng.random()}")

    def judge(self, problem, answer):
        return Verdict(False, 0.0, "wrong")


def test_tokens_tell_the_worth_of_cells_if_asked_to_and_no_other_prompt_changes():
    heavy = [HeldOutCell(Cell(task, (4,)), share) for task, share in zip(SPACE.strata, (0.8, 0.1, 0.1), strict=True)]
    known = answer({"add": 4.0, "sort": 4.0, "spell": 4.0}, heavy)
    evidence = Evidence(design=DESIGN, outcomes={}, round=1, rounds=4, forecast=known)

    def tell(preset, of=evidence):
        return evidence_tokens(show_evidence(of, PRESETS[preset], make_key(0)), SPACE)

    plain, told = tell("forecast"), tell("worth")
    assert told[: len(plain) - 1] == plain[:-1]
    parts = " ".join(told[len(plain) - 1 : -1]).split("<forecast> ")[1:]
    found = {part.split()[0]: max(int(word[2:-1]) for word in part.split()[1:]) for part in parts}
    assert found["<stratum_add>"] == 10
    assert found["<stratum_add>"] > 3 * found["<stratum_sort>"]
    bare = msgspec.structs.replace(known, grid=[msgspec.structs.replace(one, worth=UNSET) for one in known.grid])
    assert tell("worth", msgspec.structs.replace(evidence, forecast=bare)) == plain


def test_in_steps_the_rule_moves_toward_the_best_level_and_the_task_that_gains_most():
    known = answer({"add": 3.0, "sort": 6.0, "spell": -9.0})
    evidence = Evidence(design=DESIGN, outcomes={}, round=1, rounds=4, forecast=known)
    found = WorthTeacher(power=2.0).make_delta(evidence, DESIGN, SPACE).edits
    assert found["add"].changes["level"] == -2  # toward 2, which tokens tell beside 5
    assert found["sort"].changes["level"] == 0
    assert found["spell"].changes["share"] < 0
    nothing = WorthTeacher().make_delta(msgspec.structs.replace(evidence, forecast=None), DESIGN, SPACE)
    assert nothing.edits == {}


TWISTED = DesignSpace(("add", "sort"), (LEVEL, Knob(name="twist", trait=True)), ranked=False)


def share_twists(plain, twisted, **options):
    """The share of problems with a twist that the teacher asks for; P(valid) without and with one."""
    cells = [Cell(task, (level, twist)) for task in TWISTED.strata for level in range(1, 9) for twist in (False, True)]
    seen = [Observation(cell, 100, 100 * (twisted if cell.values[1] else plain), None, 0, 100) for cell in cells]
    held_out = [HeldOutCell(cell, 1 / len(cells)) for cell in cells]
    design = TWISTED.uniform()
    known = make_forecast(design, [], held_out, DifficultySettings(), TWISTED, tested=seen)
    evidence = Evidence(design=design, outcomes={}, round=1, rounds=4, forecast=known)
    edits = GainTeacher(**options).propose(evidence, design, TWISTED, make_key(1)).delta.edits
    return design.strata["add"]["twist"] + (edits["add"].changes.get("twist", 0.0) if "add" in edits else 0.0)


def test_problems_with_a_trait_and_without_it_are_mixed_by_what_both_gain():
    assert 0.2 < share_twists(0.5, 0.5) < 0.8
    assert share_twists(0.99, 0.5) > 0.8
    assert share_twists(0.5, 0.99) < 0.2
    assert abs(share_twists(0.5, 0.5, mixing=0.0) - 0.5) == pytest.approx(0.45)


def test_looking_ahead_gives_more_to_what_is_hardly_solved_yet():
    soon, later = (share_twists(0.9, 0.06, horizon=horizon) for horizon in (0.0, 8.0))
    assert later > soon + 0.1


@pytest.mark.parametrize(("rounds", "ahead"), [(8, [0, 1, 2, 3, 4, 3, 2, 1, 1]), (None, [0, 1, 2, 3, 4, 5, 6, 7, 8])])
def test_gain_looks_no_further_than_training_goes(rounds, ahead):
    known = [Evidence(design=DESIGN, outcomes={}, round=number, rounds=rounds) for number in range(9)]
    assert list(map(count_rounds_ahead, known)) == ahead
