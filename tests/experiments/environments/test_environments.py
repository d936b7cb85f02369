"""Environments by name, the tutorial's environment, and the commands that check one and begin one."""

import itertools
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.engineer.testing import check_environment
from lakewright.experiments.cli.check import check
from lakewright.experiments.cli.new import environment as begin_environment
from lakewright.experiments.environments.lake import Lake, design_of
from lakewright.experiments.environments.registry import load_environment
from tests.support.refusals import refused

ADDITION = f"{Path(__file__).parents[3] / 'docs' / 'examples' / 'addition.py'}:Addition"
FILE = """
import sys
from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict

class Own(Environment):
    space = DesignSpace(("all",), (Knob(name="size", low=1, high=9, whole=True),))

    def __init__(self, size=3):
        self.size = size

    def make(self, cell, rng):
        if cell["size"] == 9:
            raise ValueError("too large")
        return Problem(str(rng.random()), "1")

    def judge(self, problem, answer):
        return Verdict(answer == "1", 0.0, "" if answer == "1" else "wrong")

def make_own():
    return Own(4)

class Needs(Own):
    def __init__(self, size, *rest):
        self.size = size

class Unfinished(Environment):
    space = Own.space

class Spaceless(Own):
    space = None

class Fails(Own):
    def __init__(self):
        raise KeyError("size")

class Exits(Own):
    def __init__(self):
        sys.exit(0)

class Other:
    pass

def make_other():
    return 3
"""
REFUSED = {
    "nothing": "is unknown; choose from lake, reasoning_gym:TASK, FILE.py:Class and module:Class",
    "own.py:Nobody": "own.py has no 'Nobody'; correct the name",
    "none.py:Own": "none.py is not a file; check the path",
    "no_such_module:Own": "no_such_module cannot be imported (ModuleNotFoundError",
    "own.py:Other": "is not an Environment; derive it from lakewright.engineer.Environment",
    "own.py:make_other": "gave 3, which is not an Environment; return one",
    "own.py:Needs": "its constructor needs size; give defaults, or name a function without arguments",
    "own:Own": "own cannot be imported (ModuleNotFoundError: No module named 'own'); write own.py:CLASS",
    "lak": "is unknown; did you mean lake? choose from lake",
    "own.py:Unfinished": "it has no judge and no make; write them",
    "own.py:Spaceless": "it has no space; give it a DesignSpace as its attribute space",
    "own.py:Fails": "cannot be made (KeyError: 'size'); correct its constructor",
    "own.py:Exits": "cannot be made (SystemExit: 0); correct its constructor",
    "bad_space.py:Own": "space: it has no strata; name at least one",
    "exits.py:Own": "exits.py cannot be imported (SystemExit: 3); correct exits.py:1",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files of environments, in which one works."""
    (tmp_path / "own.py").write_text(FILE)
    (tmp_path / "bad_space.py").write_text(FILE.replace('("all",)', "()"))
    (tmp_path / "exits.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_environment_is_found_by_the_name_of_ours_a_class_or_a_function(folder):
    assert isinstance(load_environment("lake"), Lake)
    assert load_environment("own.py:Own").size == 3
    assert load_environment("own.py:make_own").size == 4
    assert load_environment(ADDITION).space.strata == (1, 2, 3, 4)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_environment_is_refused_in_one_line(folder, name):
    with pytest.raises(InputError) as refused:
        load_environment(name)
    assert str(refused.value).startswith(f"environment '{name}': ")
    assert REFUSED[name] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_whose_import_failed_is_imported_again(folder):
    for _ in range(2):
        with refused("later.py cannot be imported", "ModuleNotFoundError"):
            (folder / "later.py").write_text(f"import no_such_module\n{FILE}")
            load_environment("later.py:Own")
    (folder / "later.py").write_text(FILE)
    assert load_environment("later.py:Own").size == 3


def test_tasks_without_their_package_are_refused_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with refused("not installed", "lakewright[reasoning-gym"):
        load_environment("reasoning_gym:chain_sum")


def test_addition_meets_what_its_cells_ask_for():
    addition, rng = load_environment(ADDITION), random.Random(0)
    for digits, terms, carry in itertools.product(addition.space.strata, range(2, 5), (False, True)):
        cell, counts = addition.space.cell(digits, terms=terms, carry=carry), set()
        for _ in range(20):
            problem = addition.make(cell, rng)
            parts = problem.prompt.removesuffix("=").split("+")
            counts.add(len(parts))
            assert {len(part) for part in parts} == {digits}
            assert any(sum(map(int, column)) > 9 for column in zip(*parts, strict=True)) is carry
            assert int(problem.answer) == sum(map(int, parts))
            assert addition.judge(problem, problem.answer).valid
        assert counts == set(range(2, terms + 1))


def test_addition_passes_its_check():
    report = check_environment(load_environment(ADDITION), seconds=0.5)
    assert (report.cells, report.drawn, report.undrawable) == (24, 24, {})


def test_check_prints_the_smallest_case_and_exits_with_1(folder, capsys):
    assert check("own.py:Own", seconds=0.1) == 1
    assert "make raised ValueError: too large; correct it; smallest case: cell all 9, seed 0" in capsys.readouterr().out
    assert check("own.py:Own", seconds=0.1, json=True) == 1
    (fault,) = msgspec.json.decode(capsys.readouterr().out)["faults"]
    assert fault["case"] == "cell all 9, seed 0, index 0"


def test_check_refuses_a_wrong_number_and_names_what_is_not_installed(monkeypatch):
    with refused("--seconds", -1):
        check("lake", seconds=-1)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused("pip install 'lakewright[testing]'"):
        check("lake")


def test_a_new_environment_and_its_test_pass_at_once_and_are_not_overwritten(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    begin_environment("my_words")
    assert "next: lakewright check my_words.py:MyWords" in capsys.readouterr().out
    test = tmp_path / "test_my_words.py"
    test.write_text(test.read_text().replace("seconds=5", "seconds=0.1"))
    ended = subprocess.run([sys.executable, "-m", "pytest", "-q"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert check("my_words.py:MyWords", seconds=0.1) == 0
    (tmp_path / "my_words.py").unlink()
    before = test.read_text()
    with refused("test_my_words.py:"):
        begin_environment("my_words")
    assert test.read_text() == before
    assert not (tmp_path / "my_words.py").exists()


@pytest.mark.parametrize(
    "name", ["My", "a-b", "../a", "class", "1a", "", "random", "problem", "verdict", "knob", "design_space", "none"]
)
def test_a_name_that_python_cannot_import_or_that_hides_another_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="NAME is "):
        begin_environment(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("teams", [(), pytest.param((2, 3), marks=pytest.mark.deep)])
def test_the_lake_draws_the_cells_of_its_largest_hole_ratio_as_they_are_counted(teams):
    lake = Lake(teams=teams)
    design = design_of(EnvConfig({size: SizeConfig(0.25, MAX_HOLE_RATIO, 0.5) for size in (3, 4, 5, 6)}, 2))
    cells = [cell for cell in lake.mix(design) if lake.drawable(cell)]
    assert max(cell.values[0] for cell in cells) > MAX_HOLE_RATIO  # of 3x3 for two agents: three of five cells
    for cell in cells:
        (problem,) = lake.draw_cell(cell, 1, seed=0)
        assert lake.canonical(problem.cell) == cell


@pytest.mark.deep
def test_the_lake_passes_its_check():
    command = [sys.executable, "-m", "lakewright.experiments.cli", "check", "lake", "--seconds", "60", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    report = msgspec.json.decode(ended.stdout)
    assert report["drawn"] > 100
    assert report["faults"] == []
