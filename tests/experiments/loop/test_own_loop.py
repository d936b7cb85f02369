"""A loop of one's own, without any trainer of this project: the examples of README and docs."""

import json
import re
import runpy
from collections.abc import Callable
from typing import Any

import pytest

from lakewright.engineer.plugins import load_class
from tests.support.processes.commands import HOUSE

EXAMPLES = HOUSE / "docs" / "examples"
ROUNDS = 5


@pytest.fixture
def loop(monkeypatch) -> Callable[..., Any]:
    """The loop of the example."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return load_class(f"{EXAMPLES}/own_loop.py:run", {}, "example", ())


def test_a_loop_of_ones_own_redesigns_towards_what_the_policy_learns_from(loop):
    designs, state = loop(ROUNDS)
    assert len(designs) == ROUNDS
    assert [design.version for design in designs] == sorted({design.version for design in designs})
    assert designs[0] != designs[-1]
    assert state["round"] == ROUNDS
    assert state["engineer"]["drawn"] == 32 * ROUNDS


@pytest.mark.parametrize("stop", range(1, ROUNDS))
def test_a_loop_that_is_interrupted_and_restored_makes_the_same_designs(loop, stop):
    whole, end = loop(ROUNDS)
    before, kept = loop(ROUNDS, stop=stop)
    after, state = loop(ROUNDS, json.loads(json.dumps(kept)))
    assert [*before, *after] == whole
    assert state == end


def test_the_example_of_the_readme_runs_as_it_stands(tmp_path, capsys):
    block = re.search(r"^```python\n(.*?)^```", (HOUSE / "README.md").read_text(), re.M | re.S)
    assert block
    (tmp_path / "example.py").write_text(block[1])
    found = runpy.run_path(str(tmp_path / "example.py"))
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert found["engineer"].design.version > 0
