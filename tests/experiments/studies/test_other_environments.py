"""Studies of environments whose problems are text: sums, in seconds."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest
import torch
from msgspec.structs import replace

from lakewright.core_jax.support import read_config
from lakewright.engineer.cells import Knob
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.cli import main
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_problems
from lakewright.experiments.loop.settings.run_settings import RunSettings, ValidationSettings
from lakewright.experiments.loop.training.trainee import Trainee, make_trainee
from lakewright.experiments.studies.learning_curves import average_curve, tokens_to_best
from lakewright.experiments.studies.random_configs import Configs, random_configs, spread_values
from lakewright.experiments.studies.results import Results
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.run_results import last_policy
from lakewright.experiments.studies.runner import run_study
from lakewright.experiments.studies.study import StudyFolder, draw_final_test, plan_study, read_prediction
from lakewright.policy.codecs.settings import TextSettings
from lakewright.policy.models import load_model
from lakewright.policy.text_play import play_texts
from tests.support.processes.commands import HOUSE
from tests.support.refusals import refused
from tests.support.samples.tiny_runs import quick

SPEC = Path(__file__).with_name("addition.toml")


def spec_of(tmp_path: Path, old: str = "", new: str = "") -> Path:
    """The spec with a line changed, which names the environment by its whole path."""
    text = SPEC.read_text().replace("docs/examples", f"{HOUSE}/docs/examples")
    assert old in text
    (tmp_path / "spec.toml").write_text(text.replace(old, new) if old else text)
    return tmp_path / "spec.toml"


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> tuple[StudyFolder, Results]:
    out = tmp_path_factory.mktemp("sums")
    with quick():
        results, failures = run_study(spec_of(out), out / "study")
    assert failures == {}
    return StudyFolder(out / "study"), results


def test_results_have_strata_and_traits_by_name_and_are_read_back(study):
    folder, results = study
    assert read_config(folder.results, Results) == results
    assert list(results.sizes) == [1, 2, 3, 4]
    assert list(results.traits["carry"]) == [1, 2, 3, 4]
    for run in results.runs:
        assert (run.forced, run.optimal, run.forced_sizes) == (None, None, {})
        tested = read_record(folder.folder / "runs" / f"{run.arm}-s{run.seed}" / "test.json", Validation)
        carried = [part.traits["carry"] for part in tested.outcomes.values()]
        share = sum(part.valid for part in carried) / sum(part.problems for part in carried)
        assert run.rates == {"carry": pytest.approx(100 * share)}
        folders = RunFolder(folder.folder / "runs" / f"{run.arm}-s{run.seed}").finished_stages()
        assert run.drawn == [stage.design().strata for stage in folders]
        assert set(run.drawn[0][2]) == {"share", "terms", "carry"}


def test_each_run_says_how_good_it_was_along_the_way_and_when_it_reached_the_baselines_best(study):
    _, results = study
    baselines = {run.seed: run.curve for run in results.runs if run.arm == "fixed"}
    for run in results.runs:
        assert run.along == average_curve(run.curve, results.budget)
        assert run.to_best == tokens_to_best(run.curve, baselines[run.seed])


def test_the_table_says_strata_and_traits(study):
    folder, results = study
    table = folder.table.read_text()
    warmup = next(line for line in table.splitlines() if line.startswith("warm-up") and "budget" in line)
    assert (
        f" of {results.held_out} problems, {results.probability:.1f} % probability of the reference; budget 200"
        in warmup
    )
    assert warmup.endswith(f"; equal time is {results.equal_time:.0f} s of a processor")
    assert re.search(r"^one answer to all +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+$", table, re.MULTILINE)
    assert "carry %" in table.splitlines()[0]
    titles = [line.split("  ")[0] for line in table.splitlines() if line.endswith("1    2    3    4")]
    assert titles == ["valid % by stratum", "carry"]
    assert not {"forced", "board", "size", "plan"} & set(table.lower().split())
    assert f"valid answers on {results.held_out} held-out problems" in folder.plot.read_text()


def test_the_probability_of_the_reference_answer_is_that_of_the_tokens_one_by_one(study):
    folder, results = study
    problems = read_problems(folder.test_problems)
    for run in results.runs:
        stage = last_policy(RunFolder(folder.folder / "runs" / f"{run.arm}-s{run.seed}"))
        model, tokenizer = load_model(stage.checkpoint)
        play = play_texts(model, tokenizer, lambda *_: [], (), text=TextSettings(max_tokens=16))
        found = [probability_one_by_one(model, play.encode_prompt(one), play.encode_reference(one)) for one in problems]
        assert run.probability == pytest.approx(100 * fmean(found), rel=1e-3)


@torch.inference_mode()
def probability_one_by_one(model, prompt: list[int], answer: list[int]) -> float:
    """The product of the probabilities of the tokens of an answer, each after a pass of its own."""
    found = 1.0
    for place, token in enumerate(answer):
        logits = model(input_ids=torch.tensor([prompt + answer[:place]])).logits[0, -1].double()
        found *= float(torch.softmax(logits, -1)[token])
    return found


def test_the_pairs_of_the_family_are_compared_by_the_probability_of_the_reference_answer_too(study):
    folder, results = study
    known = {(run.arm, run.seed): run.probability for run in results.runs}
    assert [(found.arm, found.other) for found in results.likely] == [(one.arm, one.other) for one in results.tests]
    for found in results.likely:
        seeds = [seed for arm, seed in known if arm == found.arm and (found.other, seed) in known]
        changes = [known[found.arm, seed] - known[found.other, seed] for seed in seeds]
        assert found.difference.mean == pytest.approx(fmean(changes))
    assert sum(line.startswith("p: ") for line in folder.table.read_text().splitlines()) == len(results.likely)


def test_a_constant_answer_earns_what_the_most_frequent_reference_answer_does(study):
    folder, results = study
    for stratum, share in results.constant.items():
        answers = [one.answer for one in read_problems(folder.test_problems) if one.cell.stratum == stratum]
        assert share == pytest.approx(100 * max(answers.count(answer) for answer in answers) / len(answers))


def test_runs_are_compared_at_the_processor_time_of_the_shortest(study):
    _, results = study
    ends = [run.curve[-1].processor_seconds for run in results.runs]
    assert results.equal_time == min(ends) > 0
    for run in results.runs:
        spent = [point.processor_seconds for point in run.curve]
        assert spent[0] == 0
        assert spent == sorted(spent)
        if spent[-1] == results.equal_time:
            assert run.at_equal_time == run.curve[-1].valid


def test_the_last_policies_are_judged_on_problems_that_no_run_has_seen(study):
    folder, results = study
    tested = read_problems(folder.test_problems)
    assert len(tested) == results.held_out
    held_out = {problem.key for problem in read_held_out(folder.start)}
    assert not held_out & {problem.key for problem in tested}
    assert {problem.key for problem in read_held_out(RunFolder(folder.folder / "runs" / "fixed-s1"))} == held_out


class Numbers(Environment):
    """Numbers to repeat, of up to three digits: each cell holds the problems of those before it."""

    digits = Knob(name="digits", meaning="digits", low=1, high=3, step=1, reach=1, whole=True)
    space = DesignSpace(("repeat",), (digits,))

    def make(self, cell, rng):
        number = str(rng.randrange(10 ** cell["digits"]))
        return Problem(f"{number}=", number)

    def judge(self, problem, answer):
        return Verdict(answer == problem.answer, float(answer == problem.answer), "wrong")


def test_a_test_has_as_many_different_problems_of_each_cell_as_there_are(tmp_path):
    settings = plan_study(spec_of(tmp_path)).start
    asked = replace(settings, validation=ValidationSettings(boards=30, seed=7))
    problems = Trainee(asked, Numbers()).draw_test(set(map(key_of, range(200))))
    digits = Counter(problem.cell.values[0] for problem in problems)
    assert digits == {3: 30}
    problems = Trainee(asked, Numbers()).draw_test({key_of(3)})
    assert Counter(problem.cell.values[0] for problem in problems) == {1: 9, 2: 30, 3: 30}
    assert len({problem.key for problem in problems} - {key_of(3)}) == 69


def key_of(number: int) -> str:
    """The key of the problem of a number."""
    return hashlib.sha256(f"{number}=".encode()).hexdigest()[:16]


def test_a_test_with_the_seed_of_the_held_out_set_has_other_problems(tmp_path):
    settings = plan_study(spec_of(tmp_path)).start
    held_out = make_trainee(settings).draw_held_out()
    draw_final_test(settings, settings.validation, held_out, tmp_path / "test.jsonl")
    tested = read_problems(tmp_path / "test.jsonl")
    assert len(tested) == len(held_out)
    assert not {problem.key for problem in tested} & {problem.key for problem in held_out}


def test_a_test_without_a_problem_that_is_not_held_out_is_refused(tmp_path):
    (tmp_path / "one.py").write_text(ONE_PROBLEM)
    path = spec_of(tmp_path, f"{HOUSE}/docs/examples/addition.py:Addition", f"{tmp_path}/one.py:OneProblem")
    settings = plan_study(path).start
    held_out = make_trainee(settings).draw_held_out()
    with refused("test: ", "validation.boards"):
        draw_final_test(settings, ValidationSettings(boards=2, seed=7), held_out, tmp_path / "test.jsonl")


ONE_PROBLEM = """
from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict


class OneProblem(Environment):
    space = DesignSpace((0,), (Knob(name="digits", meaning="digits", low=1, high=2, step=1, reach=1, whole=True),))

    def make(self, cell, rng):
        return Problem("1=", "1")

    def judge(self, problem, answer):
        return Verdict(answer == "1", float(answer == "1"), "wrong")
"""


WRONG = {
    "an unknown environment": ("addition.py:Addition", "addition.py:Sum", "settings: environment "),
    "another environment": (
        '"proportional", seeds',
        '"proportional", environment = "lake", seeds',
        "arms.proportional: environment differs, but all arms share it",
    ),
    "an unknown knob": (
        '"proportional", seeds',
        '"proportional", design.2 = { share = 1.0, digit = 2 }, seeds',
        "arms.proportional: design: strata.2.digit is unknown; choose from share, terms, carry",
    ),
    "other strata": (
        '"proportional", seeds',
        '"proportional", design.2 = { share = 1.0, terms = 2, carry = 0.5 }, seeds',
        "arms.proportional: design and settings have different strata",
    ),
    "lists of the lake": ("count = 2\n", "count = 2\nhole_ratios = [0.1]\n", "no knob hole_ratio; leave it out"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_spec_is_reported_in_a_line_before_anything_is_done(tmp_path, capsys, name):
    old, new, content = WRONG[name]
    path = spec_of(tmp_path, old, new)
    assert main(["study", str(path), "--out", str(tmp_path / "out")]) == 2
    line = capsys.readouterr().err
    assert content in line
    assert line.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_all_arms_of_a_seed_begin_with_its_random_design(tmp_path):
    first = {run.name: run.settings.design for run in plan_study(spec_of(tmp_path)).runs}
    assert first["fixed-s0"] == first["proportional-s0"]
    assert first["fixed-s0"] != first["fixed-s1"]


@pytest.mark.deep
def test_random_designs_can_be_arms_of_a_study(tmp_path):
    text = spec_of(tmp_path).read_text().partition("[first_configs]")[0]
    text = text.replace('baseline = "fixed"', "").replace('family = [["proportional", "fixed"]]', "")
    path = tmp_path / "configs.toml"
    path.write_text(f"{text.replace('[0, 1]', '[0]')}[configs]\ncount = 3\n")
    plan = plan_study(path)
    assert [run.name for run in plan.runs] == [f"config-{number:02d}-s0" for number in range(3)]
    assert len({json.dumps(run.settings.design) for run in plan.runs}) == 3
    with quick():
        results, failures = run_study(path, tmp_path / "out")
    assert (failures, len(results.prediction.gains)) == ({}, 3)
    assert [one.design for one in read_prediction(StudyFolder(tmp_path / "out")).candidates] == [
        make_trainee(run.settings).start for run in plan.runs
    ]
    assert "gain in valid answers after training, over 3 designs" in tabulate_results(results)


class Odd(Environment):
    """Many knobs, of which two exclude each other."""

    space = DesignSpace(
        ("a", "b"),
        [Knob(name=f"level_{place}") for place in range(6)]
        + [Knob(name="one", trait=True), Knob(name="two", trait=True)],
        limits={"b": {"one": (0.0, 0.0), "level_0": (0.5, 0.5)}},
    )

    def make(self, cell, rng):
        return Problem(f"{rng.random()}", "")

    def judge(self, problem, answer):
        return Verdict(False, 0.0, "wrong")

    def drawable(self, cell):
        return not (cell.values[-1] and cell.values[-2])


def test_random_designs_of_any_space_are_legal_and_can_be_drawn():
    environment = Odd()
    trainee = Trainee(RunSettings(environment="odd", codec="bytes"), environment)
    designs = [design for _, design in random_configs(Configs(count=40, seed=3), trainee)]
    assert designs == [design for _, design in random_configs(Configs(count=40, seed=3), trainee)]
    assert len({str(design.strata) for design in designs}) == 40
    for design in designs:
        assert environment.space.design(design.strata) == design
        assert all(map(environment.drawable, environment.space.cells(design)))
        assert (design.strata["b"]["one"], design.strata["b"]["level_0"]) == (0, 0.5)
    assert {design.strata["a"]["level_1"] for design in designs} == {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}
    assert {design.strata["a"]["one"] for design in designs} == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_of_many_cells_some_are_held_out_as_many_of_each_stratum_at_all_values_of_their_knobs():
    trainee = Trainee(RunSettings(environment="odd", codec="bytes", validation=ValidationSettings(boards=2)), Odd())
    problems = trainee.draw_held_out()
    assert len(problems) == trainee.count_held_out() == 400
    cells = {problem.cell for problem in problems}
    assert [sum(cell.stratum == stratum for cell in cells) for stratum in "ab"] == [100, 100]
    grid = Odd.space.grid(["a"])
    for place in range(8):
        assert {cell.values[place] for cell in cells if cell.stratum == "a"} == {cell.values[place] for cell in grid}
    assert not any(cell.values[-1] and cell.values[-2] for cell in cells)
    assert problems == trainee.draw_held_out()


def test_values_are_the_points_of_a_level_and_five_shares_of_a_trait():
    assert spread_values(Knob(name="n", low=1, high=4, whole=True), 1, 4) == [1, 2, 3, 4]
    assert spread_values(Knob(name="t", trait=True), 0.0, 0.5) == [0.0, 0.125, 0.25, 0.375, 0.5]
    assert spread_values(Knob(name="t", trait=True), 0.0, 0.0) == [0.0]


def test_a_stratum_of_which_nothing_can_be_drawn_is_refused(monkeypatch):
    trainee = Trainee(RunSettings(environment="odd", codec="bytes"), Odd())
    monkeypatch.setattr(Odd, "drawable", lambda self, cell: cell.stratum != "b")
    with refused("configs: ", " b "):
        list(random_configs(Configs(), trainee))


@pytest.mark.parametrize(("teacher", "taught"), [("self", True), ("coaching", False)])
def test_the_warmup_teaches_the_engineers_part_if_an_arm_asks_the_policy(tmp_path, teacher, taught):
    plan = plan_study(spec_of(tmp_path, 'teacher = "proportional"', f'teacher = "{teacher}"'))
    assert plan.start.teaches_engineer == taught
    assert {planned.settings.teacher for planned in plan.runs} == {"fixed", teacher}, "the arms are as they were"
