"""reasoning-gym as an environment, with a package that stands for it; test_real_reasoning_gym.py has the real one."""

import os
import random
import subprocess
import sys
import time

import msgspec
import numpy as np
import pytest

from lakewright.engineer.cells import Cell
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.problems import Problem
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.teachers import make_teacher
from lakewright.experiments.environments.reasoning_gym import ReasoningGym
from lakewright.experiments.environments.registry import load_environment
from tests.support.environments.fake_reasoning_gym import install
from tests.support.environments.odd_spaces import key_of, know_everything
from tests.support.refusals import refused


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    install(monkeypatch)


def first_of(environment, seed=0) -> Problem:
    """The first problem of where an environment starts."""
    return environment.draw(environment.start(), 1, seed)[0]


def test_strata_are_the_ladder_of_an_attribute_and_the_others_are_knobs():
    space = ReasoningGym("sums").space
    assert space.strata == (0, 1, 2)
    assert [space.words.label(stratum) for stratum in space.strata] == ["num_terms 2", "num_terms 3", "num_terms 4"]
    assert [(knob.name, knob.low, knob.high, knob.whole) for knob in space.knobs] == [("num_digits", 0, 1, True)]
    assert ReasoningGym("sums", by="num_digits").space.strata == (0, 1)
    alone = ReasoningGym("sums", by="task").space
    assert alone.strata == ("sums",)
    assert [knob.name for knob in alone.knobs] == ["num_terms", "num_digits"]


def test_many_tasks_are_strata_with_levels_as_far_as_their_ladders_go():
    space = ReasoningGym(["sums", "intervals", "raises"]).space
    assert not space.ranked
    (level,) = space.knobs
    assert [space.limits(stratum, level) for stratum in space.strata] == [(0, 2), (0, 2), (0, 1)]
    assert level.name == "level"


def test_an_environment_is_named_by_its_tasks():
    assert load_environment("reasoning_gym:sums").space.strata == (0, 1, 2)
    assert load_environment("reasoning_gym:sums,raises").space.strata == ("sums", "raises")
    with refused("environment 'reasoning_gym:mase': reasoning_gym: 'mase'"):
        load_environment("reasoning_gym:mase")


def test_a_place_is_a_narrow_setting_that_holds_no_easier_ones():
    environment = ReasoningGym("sums")
    design = environment.space.design({2: {"share": 1, "num_digits": 1}})
    for problem in environment.draw(design, 20, seed=3):
        assert problem.prompt.count("+") == 3, "four terms"
    assert max(int(part) for one in environment.draw(design, 20, 3) for part in one.prompt.split(" + ")) > 9


def test_problems_are_those_of_design_seed_and_index_and_hold_plain_json():
    environment = ReasoningGym("sums")
    problems = environment.draw(environment.start(), 30, seed=1)
    assert environment.draw(environment.start(), 10, seed=1, first=20) == problems[20:]
    assert msgspec.json.decode(msgspec.json.encode(problems), type=list[Problem]) == problems


def test_adjacent_seeds_share_no_more_problems_than_chance():
    environment = ReasoningGym("sums")
    design = environment.space.design({2: {"share": 1, "num_digits": 1}})
    one, two = ({problem.prompt for problem in environment.draw(design, 50, seed)} for seed in (1000, 1001))
    assert not one & two


def test_an_answer_is_right_wrong_partial_or_missing():
    environment = ReasoningGym("sums")
    problem = first_of(environment)
    right = environment.check_verdict(problem, problem.answer)
    assert (right.valid, right.reward, right.failure) == (True, 1.0, "")
    assert environment.check_verdict(problem, f" {problem.answer}\n").valid, "white space around it is no error"
    for answer, failure in (("", "no_answer"), (" \n", "no_answer"), ("x", "wrong"), (problem.answer + "9", "partial")):
        verdict = environment.check_verdict(problem, answer)
        assert (verdict.valid, verdict.reward, verdict.failure) == (False, 0.0, failure), answer


def test_a_text_that_lists_all_answers_earns_a_part_only_where_that_is_asked_for():
    problem = first_of(ReasoningGym("sums"))
    everything = problem.answer + " or 1 or 2"
    assert ReasoningGym("sums").judge(problem, everything).reward == 0
    assert 0 < ReasoningGym("sums", graded=True).judge(problem, everything).reward < 1
    assert ReasoningGym("sums", threshold=0.05).judge(problem, everything).valid


def test_a_scorer_that_raises_scores_nothing():
    environment = ReasoningGym("raises", graded=True)
    problem = first_of(environment)
    assert environment.check_verdict(problem, "no idea").failure == "wrong"
    assert environment.check_verdict(problem, str(int(problem.answer) + 1)).reward == 0.5


def test_a_scorer_that_evaluates_sees_only_plain_expressions(tmp_path):
    environment = ReasoningGym("evaluates")
    problem = first_of(environment)
    assert environment.judge(problem, problem.prompt).valid, "2 + 3 is as right as 5"
    spy = tmp_path / "spy"
    assert environment.judge(problem, f"open({str(spy)!r}, 'w')").failure == "wrong"
    assert not spy.exists()
    begun = time.process_time()
    assert environment.judge(problem, "9**9**9**9").failure == "wrong"
    assert time.process_time() - begun < 1


@pytest.mark.deep
def test_problems_depend_on_no_hashes_of_the_process():
    program = """
from lakewright.experiments.environments.reasoning_gym import ReasoningGym
environment = ReasoningGym("hashed")
problems = environment.draw(environment.start(), 3, seed=0)
print([problem.prompt for problem in problems], environment.verdicts(problems, ["no"] * 3)[0].failure)
"""
    told = set()
    for hashes in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": hashes}
        told.add(subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True).stdout)
    assert len(told) == 1


@pytest.mark.parametrize(
    "answer", ["1e999999999", "is huge", "1e-999999999", "9" * 10**5, "[" * 10**5, "1.5e99999999*0"]
)
def test_a_text_that_no_parser_ends_with_is_wrong_within_the_seconds(answer):
    environment = ReasoningGym("fractions", seconds=1.0)
    problem = first_of(environment)
    assert environment.judge(problem, f"{problem.answer}.0").valid
    begun = time.monotonic()
    for judge in (environment.judge, environment.check_verdict):
        assert judge(problem, answer).failure == "wrong"
    assert environment.judge(problem, f"{problem.answer}.0").valid
    assert time.monotonic() - begun < 5


def test_problems_depend_on_no_data_set_that_was_made_later():
    environment = ReasoningGym("classwide")
    design = environment.space.design({0: {"share": 0.5}, 1: {"share": 0.5}})
    lengths = {(one.cell.stratum, len(one.prompt)) for one in environment.draw(design, 20, seed=0)}
    assert lengths == {(0, 1), (1, 2)}


def test_a_setting_that_the_task_refuses_cannot_be_drawn_and_the_guard_keeps_the_old_one():
    environment = ReasoningGym("intervals", by="task")
    assert environment.drawable(Cell("intervals", (1,)))
    assert environment.why_not(Cell("intervals", (2,))) == "AssertionError: high must be <= 20"
    design = environment.space.design({"intervals": {"share": 1, "bounds": 1}})
    evidence = know_everything(environment, design)
    delta = make_teacher("coaching", options={"success": 0, "failure": 0}).propose(
        evidence, design, environment.space, key_of(0)
    )
    verdict = project_delta(design, delta.delta, environment, GuardSettings(floor=0.05))
    assert (verdict.status, verdict.design) == ("projected", design)


def test_a_ladder_that_hangs_ends_in_time():
    environment = ReasoningGym("loops", by="task", seconds=0.2)
    begun = time.process_time()
    assert environment.why_not(Cell("loops", (1,))) == "no problem in 0.2 s"
    assert time.process_time() - begun < 3
    assert environment.why_not(Cell("loops", (0,))) == ""


def test_a_task_that_now_and_then_gives_no_problem_draws_another():
    environment = ReasoningGym("gaps")
    assert len(environment.draw(environment.start(), 60, seed=0)) == 60


def test_a_cell_without_problems_is_refused_in_a_line():
    environment = ReasoningGym("intervals", by="task")
    with refused(2, "<= 20"):
        environment.draw_one(Cell("intervals", (2,)), 0, 0)


def test_generators_of_the_process_go_on_as_if_nothing_had_been_drawn():
    environment = ReasoningGym("shared")
    random.seed(1)
    np.random.seed(1)
    expected = random.Random(1).random(), np.random.RandomState(1).random()
    problems = environment.draw(environment.start(), 3, seed=0)
    assert (random.random(), np.random.random()) == expected
    assert len({problem.prompt for problem in problems}) == 3
    assert ReasoningGym("shared").draw(environment.start(), 3, seed=0) == problems
    assert environment.judge(problems[1], problems[1].answer).valid


def test_a_task_without_known_answers_is_judged_all_the_same():
    environment = ReasoningGym("silent")
    problem = first_of(environment)
    assert problem.answer == ""
    assert environment.judge(problem, str(sum(map(int, problem.prompt.split(" + "))))).valid


def test_a_task_that_refuses_its_own_answers_has_no_place_to_start():
    environment = ReasoningGym("wrong")
    assert "its own answer" in environment.why_not(Cell(0, ()))
    with refused("wrong", "its own answer"):
        environment.start()


def test_strata_that_cannot_be_drawn_are_left_out_with_their_reason():
    environment = ReasoningGym("intervals")
    assert environment.space.strata == (0, 1)
    assert environment.left_out == {2: "AssertionError: high must be <= 20"}
    assert list(environment.start().strata) == [0, 1]
    assert ReasoningGym("wrong").space.strata == (0, 1), "all, if there were none: the start says why"
    assert list(ReasoningGym(["sums", "intervals"]).start().strata) == ["sums", "intervals"]


def test_fields_on_no_ladder_are_settings():
    environment = ReasoningGym("sums", settings={"sums": {"sign": "plus"}})
    assert " plus " in first_of(environment).prompt


def test_a_problem_of_another_version_is_refused():
    environment = ReasoningGym("sums")
    other = msgspec.structs.replace(first_of(environment), prompt="1 + 1 =")
    with refused("draws another problem"):
        environment.judge(other, "2")


@pytest.mark.parametrize(
    "data",
    [None, {}, {"task": "maze", "places": {}, "number": 1}, {"task": "sums", "places": {"num_terms": 9}, "number": 1}],
)
def test_data_of_no_problem_of_these_are_refused(data):
    with refused("reasoning_gym: data"):
        ReasoningGym("sums").judge(Problem("?", data=data), "2")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"tasks": "mase"}, ["'mase'", "classwide, evaluates"]),
        ({"tasks": []}, ["tasks", "empty"]),
        ({"by": "depth"}, ["'depth'", "num_terms, num_digits, task"]),
        ({"tasks": ["sums", "loops"], "by": "num_terms"}, ["each is a stratum"]),
        ({"threshold": 0}, ["threshold is 0", "more than 0"]),
        ({"seconds": float("nan")}, ["seconds", "nan"]),
        ({"settings": {"sums": {"colour": 1}}}, ["settings.sums.colour"]),
        ({"settings": {"maze": {}}}, ["settings.maze"]),
    ],
)
def test_bad_arguments_are_refused_in_a_line(arguments, told):
    with refused(*told):
        ReasoningGym(**({"tasks": "sums"} | arguments))


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with refused("pip install 'lakewright[reasoning-gym]'"):
        ReasoningGym("sums")


@pytest.mark.parametrize("teacher", ["coaching", "difficulty_pools", "learning_progress", "rlve"])
def test_an_engineer_redesigns_tasks_by_the_rules_of_other_projects(teacher):
    environment = ReasoningGym(["sums", "intervals"])
    engineer = Engineer(environment, teacher, environment.start())
    for _ in range(3):
        problems = engineer.draw(40)
        engineer.observe(environment.groups(problems, [[problem.answer] * 4 for problem in problems]))
        assert engineer.redesign().attempts[-1].verdict.status != "refused"
    levels = {stratum: row["level"] for stratum, row in engineer.design.strata.items()}
    assert levels["intervals"] <= 1, "its level 2 cannot be drawn"
    assert levels["sums"] == 2 or teacher != "coaching"
