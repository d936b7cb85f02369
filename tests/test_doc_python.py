"""Every Python block of a page is run: here, in the order of the page, or by a test that is named.

The blocks of a page share their names, as the second may build on the first. The lab has records of their time, and is
left out.
"""

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakewright.experiments.cli import main
from tests.support.processes.commands import HOUSE
from tests.support.tools.own_environments import own_environment, run_there
from tests.test_doc_commands import PAGES_OF_TODAY, list_tests
from tests.test_docs import text_of

# A line of each block that is not run here, by the test that runs the same calls.
ELSEWHERE: dict[str, str] = {
    "tests/core_jax/lake/test_environment.py::test_the_guides_example_runs": "def rollout(key):",
    "tests/experiments/boards/episodes/test_trl_tasks.py::test_the_examples_train_a_tiny_random_model": (
        "lake = LakePrompts(size=4, agents=2, boards=64)"
    ),
    "tests/experiments/loop/test_own_loop.py::test_the_example_of_the_readme_runs_as_it_stands": (
        "engineer = Engineer(Sums())"
    ),
    "tests/experiments/environments/test_environments.py::"
    "test_a_new_environment_and_its_test_pass_at_once_and_are_not_overwritten": (
        "    check_environment(Rhymes(), seconds=5)"
    ),
    "tests/experiments/trainers/test_examples.py::test_trl_redesigns_and_resumes_with_the_same_problems": (
        'tasks = EngineerTasks("runs/e", every=20)'
    ),
    "tests/experiments/trainers/test_real_trainers.py::test_asynchronous_clients_of_openenv": (
        '        client = AsyncEngineerClient(connected, "runs/e", report, index=index, count=8, episodes=4)'
    ),
    "tests/experiments/trainers/test_real_trainers.py::test_the_example_of_openenv": (
        '    client = EngineerClient(connected, "runs/e", report)'
    ),
    "tests/experiments/trainers/test_real_trainers.py::test_the_traces_of_vf_eval": (
        'print(record_traces("runs/e", "runs/evaluated"))  # Copied(recorded=80, before=0, left_out={})'
    ),
    "tests/experiments/trainers/test_trainers_tutorial.py::test_every_command_of_the_tutorial_runs": (
        "tasks = EngineerTasks(folder, every=steps // 6)"
    ),
    "tests/policy/models/test_places.py::test_the_pretrained_policy_plans_better_than_chance": (
        'planner = load_planner("pretrained", samples=8)'
    ),
    "tests/policy/test_text_play.py::test_a_byte_policy_learns_to_add": (
        'model, tokenizer = build_byte_policy("0.6M", seed=0)'
    ),
    "tests/test_example_scripts.py::test_a_script_of_sweeps_runs_with_a_few_boards": (
        "spec = SweepSpec(sizes=(4, 6), agents=(2,), hole_ratios=(0.0, 0.3), boards=8192)"
    ),
}
OF_REASONING_GYM = re.compile(r"\breasoning_gym\b")  # a package that is installed only in an environment of its own

# What a reader has from other pages, by what names it in a block: how it is made.
HAD: dict[str, Callable[[], object]] = {
    "import Rhymes": lambda: main(["new", "environment", "rhymes"]),
    '"runs/e"': lambda: main(["engineer", "begin", "runs/e", "--environment", ADDITION]),
}
ADDITION = f"{HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
# What a reader has of his own, by page; of a loop of a thousand steps the first forty.
OWN: dict[str, dict[str, Any]] = {
    "cluster": {"function": abs, "items": [1, -2]},
    "environments": {"sample": str.upper, "greedy": str.upper, "train": list},
    "trainers": {"range": lambda *bounds: itertools.islice(range(*bounds), 40)},
}


def blocks_of(page: Path) -> list[str]:
    """The Python of a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```", text_of(page), re.M | re.S)


def is_run_here(block: str) -> bool:
    return not OF_REASONING_GYM.search(block) and not set(ELSEWHERE.values()) & set(block.splitlines())


BLOCKS = [(page.stem, block) for page in PAGES_OF_TODAY for block in blocks_of(page)]
HERE = [(name, block) for name, block in BLOCKS if is_run_here(block)]


@pytest.fixture
def new_folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty folder whose modules can be imported, as beside a script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("rhymes", None)


@pytest.mark.parametrize("page", dict.fromkeys(name for name, _ in HERE))
def test_the_blocks_of_a_page_run_as_they_stand(page, new_folder):
    names = {"__name__": "__main__", **OWN.get(page, {})}
    for block in (block for name, block in HERE if name == page):
        for named, make in HAD.items():
            assert named not in block or not make(), named
        exec(compile(block, page, "exec"), names)
    for test in [value for name, value in names.items() if name.startswith("test_")]:
        test()


@pytest.mark.deep
@pytest.mark.parametrize("block", [block for _, block in BLOCKS if OF_REASONING_GYM.search(block)])
def test_the_blocks_of_reasoning_gym_run_with_it(block, tmp_path):
    (tmp_path / "block.py").write_text(block)
    python = own_environment("reasoning_gym", "reasoning-gym==0.1.25")
    assert run_there(python, tmp_path / "block.py").returncode == 0


def test_each_line_that_stands_for_a_block_is_in_one_and_its_test_is_there():
    for test, line in ELSEWHERE.items():
        assert sum(line in block.splitlines() for _, block in BLOCKS) == 1, line
        file, name = test.split("::")
        assert name in list_tests(HOUSE / file), f"{file} has no {name}"


@pytest.mark.parametrize("block", [block for _, block in BLOCKS if "Local(" in block])
def test_a_script_that_starts_processes_may_be_imported_by_them(block):
    assert '\nif __name__ == "__main__":' in block
