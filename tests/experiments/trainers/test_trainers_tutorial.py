"""The tutorial of trainers: its commands run as they stand on the page, and what it says is so."""

import json
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from lakewright.engineer.evidence import token_estimate
from lakewright.experiments.cli import main
from lakewright.experiments.trainers.folder import EngineerFolder
from tests.support.processes.commands import HOUSE
from tests.support.servers.chat_server import saying, serving
from tests.test_docs import code_blocks

PAGE = (HOUSE / "docs" / "trainers-tutorial.md").read_text()
SERVER = "http://localhost:8000/v1"
EDIT = {"share": 0.05, "top": 1, "last": 0, "reason": "they fail less than they might"}
ANSWER = json.dumps({"reasoning": "More of the short ones.", "edits": {"2": EDIT}})


def list_commands() -> list[list[str]]:
    """The words of each command of the page, in order."""
    lines = [line for block in code_blocks(PAGE) for line in block.splitlines()]
    return [shlex.split(line) for line in lines if line.strip().startswith(("lakewright ", "python "))]


def edit_by_hand(file: Path) -> None:
    """As the page says: a few shares of the design are exchanged."""
    design = json.loads(file.read_text())
    first, *_, last = design["strata"].values()
    first["share"], last["share"] = last["share"] - 0.01, first["share"] + 0.01
    file.write_text(json.dumps(design))


def run_commands(commands, monkeypatch, url, *more):
    """Runs commands here. url: in place of the page's server. more: further words for scripts."""
    for program, *words in commands:
        told = [word.replace(SERVER, url) for word in words]
        if words[:2] == ["engineer", "next"]:
            edit_by_hand(Path(words[2]) / "design.json")
        if program == "lakewright":
            assert main(told) == 0, told
        else:
            monkeypatch.setattr(sys, "argv", [*told, *more])
            runpy.run_path(told[0], run_name="__main__")


@pytest.mark.usefixtures("quick_endpoint")
@pytest.mark.parametrize("steps", [("12",), pytest.param((), marks=pytest.mark.deep)], ids=["short", "whole"])
def test_every_command_of_the_tutorial_runs(tmp_path, monkeypatch, capsys, steps):
    (tmp_path / "docs").symlink_to(HOUSE / "docs")
    monkeypatch.chdir(tmp_path)
    commands = list_commands()
    assert [words[1] for words in commands] == [
        *("check", "engineer", "docs/examples/trl_tutorial.py", "engineer", "engineer", "engineer", "engineer"),
        *("engineer", "docs/examples/trl_tutorial.py"),
    ]
    with serving(saying(ANSWER)) as server:
        run_commands(commands if not steps else commands[1:], monkeypatch, server.url, *steps)
    by_rule, by_model = EngineerFolder("runs/largest"), EngineerFolder("runs/asked")
    assert by_rule.files.read_version(by_rule.files.newest()).by == "undo"
    assert by_rule.status().spent.trials > 0
    decisions = [
        note for version in by_model.files.list_versions() for note in by_model.files.read_version(version).decisions
    ]
    asked = [attempt["proposal"] for note in decisions for attempt in note["attempts"]]
    assert len(asked) == 6
    sizes = [token_estimate(proposal["prompt"]) for proposal in asked]
    assert 800 < min(sizes) <= max(sizes) < 2100, "as the page says"
    assert by_model.status().spent.engineer == 6 * 50
    assert (tmp_path / "runs" / "asked" / "spending.jsonl").exists()
    if not steps:
        # How many of the six proposals are taken depends on the processor's floats.
        assert by_rule.files.newest() >= 2, "a design of the user, and the way back"
        assert 5_000 < by_rule.status().spent.trials < 20_000, "as the page says"


def test_the_environment_on_the_page_is_the_example():
    (shown,) = re.findall(r"^```python\n(from lakewright.engineer import DesignSpace.*?)^```", PAGE, re.M | re.S)
    example = (HOUSE / "docs" / "examples" / "largest.py").read_text()
    example = re.sub(r'^ *""".*?"""\n\n', "", example, flags=re.M | re.S)
    assert example.strip() == shown.strip()


def test_a_script_of_trl_needs_at_most_six_added_lines():
    page = (HOUSE / "docs" / "trainers.md").read_text()
    (shown,) = re.findall(r"^```diff\n(.*?)^```", page, re.M | re.S)
    assert sum(line.startswith("+") for line in shown.splitlines()) <= 6
    assert "+tasks.attach(trainer)" in shown
