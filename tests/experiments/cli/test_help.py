"""The help of every command: nothing heavy is imported for it, its example works, its choices are those there are."""

import functools
import re
import shlex
import subprocess
import sys
from importlib.metadata import version

import pytest
from cyclopts import App

from lakewright.engineer.teachers import TEACHERS
from lakewright.experiments.boards.evaluation.answerers import PLANNERS
from lakewright.experiments.cli import bench, build_app, main
from lakewright.experiments.cli.conventions import options
from lakewright.experiments.cli.conventions.options import take_overrides
from lakewright.experiments.loop.trackers import TRACKERS
from tests.campaigns.__main__ import app as campaigns
from tests.support.processes.commands import HOUSE, surroundings

HEAVY = ("jax", "numpy", "torch", "transformers", "trl", "pyarrow", "scipy", "sklearn", "duckdb")
PROMISED = {
    *("generate", "solve", "verify", "run", "report", "bench", "settings", "study", "engineer"),
    *("engineer show", "engineer propose", "engineer replay", "benchmark", "benchmark build", "benchmark eval"),
    *("sweep", "sweep run", "sweep status", "sweep plot"),
}


def commands_of(app: App, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command of a program, those with commands of their own too."""
    found = []
    for name, command in app.resolved_commands().items():
        if not name.startswith("-"):
            found += [(*above, name), *commands_of(command, (*above, name))]
    return found


COMMANDS = commands_of(build_app())
AT_WORK = [words for words in COMMANDS if words not in {("engineer",), ("benchmark",), ("new",)}]
each_command = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


def help_of(capsys, *words: str) -> str:
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def test_every_command_that_was_promised_is_there():
    assert {" ".join(words) for words in COMMANDS} >= PROMISED


def test_help_imports_no_heavy_library():
    program = f"""
import sys
from lakewright.experiments.cli import main
for words in {[(), *COMMANDS]}:
    assert main([*words, "--help"]) == 0
    heavy = [name for name in {HEAVY} if name in sys.modules]
    assert not heavy, f"lakewright {{' '.join(words)}} --help imports {{heavy}}"
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=surroundings(), check=False
    )
    assert ended.returncode == 0, ended.stderr.splitlines()[-1]


@pytest.mark.deep
def test_a_command_on_boards_starts_without_what_only_a_gpu_or_other_processes_need():
    program = """
import sys
from lakewright.experiments.boards import files, sweep
sweep.make_shard
print([name for name in sys.modules if "accelerator" in name or name.endswith(("device_maps", "local_processes"))])
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=surroundings(), check=True
    )
    assert ended.stdout == "[]\n"


@each_command
def test_the_help_of_a_command_has_an_example_that_it_understands(capsys, words):
    _, example = help_of(capsys, *words).split("example: lakewright ")
    _, given = take_overrides(shlex.split(example))
    assert tuple(given[: len(words)]) == words
    command, bound, _ = build_app().parse_args(given, print_error=False, exit_on_error=False)
    assert callable(command)
    assert bound.arguments


@pytest.mark.parametrize("words", AT_WORK, ids=" ".join)
def test_the_help_of_a_command_explains_every_option(words):
    command = functools.reduce(App.__getitem__, words, build_app())
    arguments = [part for part in command.assemble_argument_collection(parse_docstring=True) if part.name != "*"]
    assert arguments
    for argument in arguments:
        assert argument.parameter.help or not argument.parse, f"lakewright {' '.join(words)}: {argument.name} has none"


def test_the_help_of_the_program_names_every_command_and_shell_completion(capsys):
    out = help_of(capsys)
    for words in COMMANDS:
        assert any(line.split()[:1] == list(words[:1]) for line in out.splitlines()), words
    assert "lakewright --install-completion" in out


@pytest.mark.parametrize(
    ("offered", "there"),
    [
        (options.TEACHERS, TEACHERS),
        (options.SOLVERS, PLANNERS),
        (options.TRACKERS, TRACKERS),
    ],
    ids=["teachers", "solvers", "trackers"],
)
def test_the_choices_that_are_offered_are_those_there_are(offered, there):
    assert tuple(offered) == tuple(there), "experiments/cli/conventions/options.py lists other names than the registry"


def test_a_wrong_choice_is_refused_with_the_choices(capsys):
    assert main(["benchmark", "build", "--out", "b", "--tier", "easy"]) == 2
    line = "lakewright benchmark build: --tier is 'easy'; choose from paper, hard; see `lakewright "
    assert capsys.readouterr().err.startswith(line)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["sing"], "lakewright: 'sing' is not a command; choose from "),
        (
            ["engineer", "sing"],
            "lakewright engineer: 'sing' is not a command; choose from show, propose, sample, ",
        ),
        (["bench", "--loud"], "lakewright bench: Unknown option: --loud; see `lakewright bench --help`"),
        (["bench", "--worlds", "--loud"], "lakewright bench worlds: Unknown option: --loud; see "),
        (["bench", "worlds", "--worlds", "1"], "lakewright bench worlds: Unknown option: --worlds; see "),
        (["rn"], "lakewright: 'rn' is not a command; did you mean run? choose from "),
        (
            ["generate", "--out", "-"],
            "lakewright: -: commands read and write files, ",
        ),
        (["view", "nowhere"], "lakewright: nowhere: does not exist; check the path"),
        (
            ["bench", "--campaign", "4"],
            "lakewright: --campaign: is not in the package; in a clone of the repository, run "
            "`python -m tests.campaigns labels --help`",
        ),
        (["solve", "--out", "o.jsonl"], "lakewright solve: IN is missing; give it a value; see "),
        (["sweep", "spec.toml"], "lakewright sweep: --out is missing; give it a value; see "),
        (
            ["benchmark", "eval", "b", "--out", "o"],
            "lakewright benchmark eval: give exactly one of --model, ",
        ),
    ],
)
def test_a_command_line_that_is_not_understood_is_refused_in_one_line(capsys, words, problem):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(problem)


@pytest.mark.parametrize("words", [["sweep", "spec.toml"], ["sweep", "run", "spec.toml"]])
def test_a_sweep_is_short_for_its_run(words):
    command, bound, _ = build_app().parse_args([*words, "--out", "s"], print_error=False, exit_on_error=False)
    assert (command.__name__, str(bound.arguments["spec"])) == ("run", "spec.toml")


@pytest.mark.parametrize("words", ["worlds --seeds 2", "--worlds --seeds 2", "--seeds 2 --worlds"])
def test_a_benchmark_is_a_command_and_its_option_of_former_versions_is_read(words, monkeypatch):
    given = {}
    monkeypatch.setattr(
        "lakewright.experiments.bench.world_scores.score_teachers", lambda *asked: given.update(seeds=asked[2]) or []
    )
    assert main(["bench", *words.split()]) == 0
    assert given == {"seeds": 2}


def test_every_campaign_of_former_versions_is_one_of_the_repository():
    assert {(name,) for name in bench.CAMPAIGNS.values()} <= set(commands_of(campaigns))


def test_of_an_option_given_twice_the_last_counts():
    words = ["generate", "--count", "1", "--out", "a.jsonl", "--seed", "1", "--seed", "2", "--json", "--json"]
    _, bound, _ = build_app().parse_args(words, print_error=False, exit_on_error=False)
    assert (bound.arguments["seed"], bound.arguments["json"]) == (2, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_options_and_choices(shell):
    script = build_app().generate_completion(shell=shell)
    for word in ("generate", "benchmark", "hole-ratio", "domain_randomisation", "prioritized"):
        assert word in script, f"{shell} does not complete {word}"


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{version('lakewright')}\n"


def test_the_table_of_commands_in_the_docs_names_every_command():
    text = (HOUSE / "docs" / "command-line.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z -]+?)(?: [A-Z]+)?`", row)}
    for words in AT_WORK:
        short = words[:1] if words == ("sweep", "run") else words  # which `sweep SPEC` is short for
        assert " ".join(short) in named, f"docs/command-line.md does not name `{' '.join(short)}`"
    assert named <= {" ".join(words) for words in COMMANDS}
