"""The docs: every file, name, setting, command and option that a page mentions is there."""

import ast
import contextlib
import functools
import io
import itertools
import re
import runpy
import shlex
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lakewright.engineer import Engineer
from lakewright.engineer.samplers import SAMPLERS
from lakewright.engineer.teachers import TEACHERS
from lakewright.experiments.cli import main
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop.redesign.run_engineer import FILES
from lakewright.experiments.loop.settings.run_settings import RunSettings

HOUSE = Path(__file__).parents[1]
LAB = HOUSE / "docs" / "lab"
STUDIES = sorted(page for page in LAB.glob("*.md") if page.stem != "index")
PAGES = [HOUSE / "README.md", *sorted((HOUSE / "docs").glob("*.md")), *sorted(LAB.glob("*.md"))]
WINGS = ("core_jax", "policy", "engineer", "experiments")
FILE = re.compile(r"(?<![\w/.<>~-])((?:[\w-]+/)+[\w-]+\.(?:pyi?|toml|md|svg|png|yml))\b")
MADE_BY_COMMANDS = ("runs", "studies", "sweeps", "benchmark")  # folders of examples
NAME = re.compile(rf"(?<![\w/.-])((?:lakewright\.)?(?:{'|'.join(WINGS)})(?:\.(?!(?:md|json)\b)\w+)+)")
SETTING = re.compile(r"(?<![\w/.-])(?:--)?([a-z_]\w*(?:\.\w+)*)=")
MODULE = re.compile(r"(?<!\w)-m (lakewright\.[\w.]+)")
GROUPS = ("benchmark", "engineer", "new", "sweep")  # commands with commands of their own
WRITTEN_TABLES = {  # of docs/results.md and of the studies in docs/lab, by first line, with the reason
    "| prompt | answer | |": "answers of the small language model with what they mean: examples, no results",
    "| warm-up | GRPO | `fixed` | `difficulty`, no trial |": "pilots of a regime, whose results were not saved",
    "| learning rate | rises in, steps | groups of a step | answers to each | k tokens | greedy | sampled |": (
        "pilots of a regime, whose results were not saved"
    ),
    "| seed | warm-up | `fixed` | `gain-default` | greedy, `fixed` | greedy, `gain-default` | along, `fixed` | "
    "along, `gain-default` |": "a study that time ended after a few seeds",
    "| runs of | least possible | abilities | regression | one prediction for all | abilities better |": (
        "means of docs/data/forecast_losses.json, which docs/site/forecast_losses.py writes"
    ),
    "| work | agents | size | GPU | 16 cores | ratio |": "medians of docs/data/gpu/core.json, on a lent machine",
    "| phase | before | now |": "seconds and rates of docs/data/gpu/small-language-model.json, on a lent machine",
    "| phase | tensors | held | estimate | without recordings |": (
        "peaks of the same file, and what `lakewright estimate` prints"
    ),
    "| case | before | now | why |": "ratios that the tests of the estimate print",
    "| phase | estimate | tensors | held |": "peaks of docs/data/gpu/language-model.json, on the same machine",
    "| nodes | runs at a time | tasks/s | operations/s | in the busiest 10 s | MB/s | files opened to sum up |": (
        "printed by docs/examples/thousand_nodes.py"
    ),
    "| run | steps | the rest of training | drawing | validation | trial | evidence, forecast, proposal |": (
        "shares of the time of three runs, noted by hand"
    ),
}
# Pages of the lab that copy what commands printed, or what was noted by hand.
LOGS = ("benchmarks-log", "reliability-log", "stated-probabilities", "corruption-campaign", "six-tasks")
LONGEST = 200  # lines of a page, except in the lab
DEEPER = (["study", "check-trials"], ["view", "bundle"], ["bench", "worlds"], ["bench", "sampling"])

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def text_of(page: Path) -> str:
    """A page without its comments."""
    return re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.S)


def code_blocks(text: str) -> Iterator[str]:
    """Fenced and indented code; lines that end in a backslash are joined with the next."""
    joined = re.sub(r" *\\\n *", " ", text)
    yield from re.findall(r"^```\w*\n(.*?)^```", joined, re.M | re.S)
    yield from re.findall(r"(?:^ {4}\S.*\n?)+", re.sub(r"^```.*?^```", "", joined, flags=re.M | re.S), re.M)


def commands(text: str) -> Iterator[list[str]]:
    """The words of every `lakewright ...` in code."""
    inline = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    lines = [line for block in code_blocks(text) for line in block.splitlines()]
    for line in [*lines, *inline]:
        for found in re.findall(r"(?:^|\s|; do )lakewright ([a-z][^#;|)]*)", line):
            yield split_words(found)


def split_words(command: str) -> list[str]:
    """The words of a command, also of one that is cut off within quotes."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.replace("'", " ").replace('"', " ").split()


def command_of(words: list[str]) -> tuple[str, ...]:
    """The command, with its group where it has one; `sweep SPEC` is `sweep run SPEC`."""
    if words[0] == "sweep" and "." in "".join(words[1:2]):
        return "sweep", "run"
    two = words[0] in GROUPS or words[:2] in DEEPER
    return tuple(words[:2] if two else words[:1])


def settings_named(text: str) -> set[str]:
    """Settings given as `name=value` to `lakewright run` or in a line of code on their own."""
    words = {word for line in commands(text) if line[:1] == ["run"] for word in line}
    given = {word for word in words if re.match(r"(--)?[a-z_]+[\w.]*=", word)}
    inline = {code for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text) if re.match(r"[a-z_]+\.[\w.]+=", code)}
    first = {SETTING.match(code)[1] for code in given}  # a value may hold more of them, such as options of a launcher
    return first | {name for code in inline for name in SETTING.findall(code)}


def has_setting(path: str) -> bool:
    """Whether a run has the setting, such as `grpo.steps`."""
    kinds: list[Any] = [RunSettings]
    for part in path.split("."):
        if any(typing.get_origin(kind) is dict or kind is Any for kind in kinds):
            return True  # names that a teacher, a sampler or a config chooses
        structs = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
        hints = [typing.get_type_hints(struct).get(part) for struct in structs]
        kinds = [inner for hint in hints if hint is not None for inner in alternatives(hint)]
    return bool(kinds)


def alternatives(hint: Any) -> list[Any]:
    """The members of a union; any other type as it is."""
    return list(typing.get_args(hint)) if "Union" in str(typing.get_origin(hint) or type(hint)) else [hint]


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of the house, or something that one defines or offers."""
    if not name.startswith("lakewright."):
        return False
    name = name.removeprefix("lakewright.")
    place = HOUSE.joinpath(*name.split("."))
    if place.is_dir() or place.with_suffix(".py").exists():
        return True
    module, _, last = name.rpartition(".")
    return bool(module) and last in names_in(HOUSE.joinpath(*module.split(".")))


def is_of_an_engineer(name: str) -> bool:
    """Whether a dotted name is a member of the variable `engineer` of an example."""
    variable, member, *_ = name.split(".")
    return variable == "engineer" and hasattr(
        Engineer(load_environment(f"{HOUSE}/docs/examples/addition.py:Addition")), member
    )


@functools.cache
def names_in(module: Path) -> set[str]:
    """What a module, given without its ending, or the door of a room defines or offers."""
    files = [module.with_suffix(".py"), module / "__init__.py", module / "__init__.pyi"]
    found: set[str] = set()
    for node in [node for file in files if file.exists() for node in ast.parse(file.read_text()).body]:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


@functools.cache
def help_of(*command: str) -> str:
    """What a command prints with --help; empty where there is no such command."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main([*command, "--help"])
        except SystemExit as ended:
            code = ended.code
    return printed.getvalue() if not code else ""


@each_page
def test_every_file_that_a_page_names_is_there(page):
    for name in FILE.findall(text_of(page)):
        if name.split("/")[0] not in MADE_BY_COMMANDS:
            places = [HOUSE / name, page.parent / name]
            assert any(place.exists() for place in places), f"{page.name} names {name}, which does not exist"


@each_page
def test_every_dotted_name_is_in_the_house(page):
    text = text_of(page)
    for name in {*NAME.findall(text), *MODULE.findall(text)}:
        known = resolves(name) or has_setting(name) or is_of_an_engineer(name)
        assert known, f"{page.name} names {name}, which does not exist"


@each_page
def test_every_name_in_a_file_is_defined_there(page):
    file = ""
    for name, found in re.findall(r"`(\w+)` in (`[\w/]+\.py`|the same file)", text_of(page)):
        file = found.strip("`") if found.startswith("`") else file
        known = names_in(HOUSE / file.removesuffix(".py"))
        assert name in known, f"{page.name} names {name} in {file}; it is not there"


def calls_of(functions: dict[str, ast.FunctionDef], name: str) -> list[str]:
    """The names that a function calls, in order; a function of its own file stands for what that calls."""
    called = []
    calls = [node for node in ast.walk(functions[name]) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda node: (node.lineno, -node.col_offset)):
        inner = ast.unparse(node.func)
        called += calls_of(functions, inner) if inner in functions else [inner]
    return called


def test_the_walk_of_a_design_follows_the_steps_of_a_stage():
    loop = ast.parse((HOUSE / "experiments" / "loop" / "closed_loop.py").read_text())
    functions = {node.name: node for node in loop.body if isinstance(node, ast.FunctionDef)}
    walk = (HOUSE / "docs" / "architecture.md").read_text().split("## A design")[1].split("\n1. ")[1].split("\n## ")[0]
    steps = re.findall(r"`lakewright\.experiments\.loop\.training\.\w+\.(\w+)`", walk)
    calls = calls_of(functions, "_run_stage")
    assert len(steps) == 3
    assert [name for name in calls if name in steps] == steps
    decided = (HOUSE / "engineer" / "redesign.py").read_text()
    files = [FILES.get(step, step) for step in re.findall(r"journal\.note\(\s*\"(\w+)\"", decided)]
    assert "journal.note_next(" in decided
    assert re.findall(r"`(\w+)\.json`", walk[walk.index("RunEngineer") :]) == [*files, "next", "done"]


@each_page
def test_every_import_in_an_example_is_offered(page):
    for block in re.findall(r"^```python\n(.*?)^```", text_of(page), re.M | re.S):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("lakewright.", *WINGS)):
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    assert resolves(name), f"{page.name} imports {name}, which does not exist"


@each_page
def test_every_setting_is_one_of_a_run(page):
    for name in settings_named(text_of(page)):
        assert has_setting(name), f"{page.name} names the setting {name}, which no run has"


@each_page
def test_every_command_and_option_is_one_of_the_command_line(page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for words in commands(text_of(page)):
        command = command_of(words)
        help_text = help_of(*command)
        assert help_text, f"{page.name} names the command lakewright {' '.join(command)}, which does not exist"
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        for option in [option for option in options if "." not in option]:  # with dots it is a setting
            known = re.search(rf"{re.escape(option)}(?![\w-])", help_text)
            assert known, f"{page.name}: lakewright {' '.join(command)} has no option {option}"


@each_page
def test_no_merge_was_left_half_done(page):
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(), re.M), page


@each_page
def test_every_row_of_a_table_has_as_many_cells_as_its_header(page):
    prose = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S))
    for table in re.findall(r"(?:^\|.*\n)+", prose, re.M):
        header, *rows = table.splitlines()
        cells = header.replace(r"\|", "").count("|")
        for row in rows:
            assert row.replace(r"\|", "").count("|") == cells, f"{page.name}: {row}"


def test_the_picture_of_the_house_shows_it_as_it_is():
    script = HOUSE / "docs" / "site" / "rooms.py"
    rooms = runpy.run_path(str(script))
    drawn = rooms["PICTURE"].read_text()
    assert drawn == rooms["picture"](), f"the rooms have changed: run `python {script.relative_to(HOUSE)}`"


def test_tables_and_pictures_of_results_are_those_of_the_raw_results(monkeypatch):
    script = HOUSE / "docs" / "site" / "results.py"
    monkeypatch.syspath_prepend(script.parent)  # as Python does for a script
    made = runpy.run_path(str(script))["made"]()
    assert made, "nothing is made"
    for path, content in made.items():
        assert path.read_text() == content, f"{path} is stale: run `python {script.relative_to(HOUSE)}`"


def test_every_table_of_results_is_made():
    written = set()
    for page in [HOUSE / "docs" / "results.md", *(study for study in STUDIES if study.stem not in LOGS)]:
        text = re.sub(r"<!-- made: .*?<!-- end -->", "", page.read_text(), flags=re.S)
        lines = [line.strip() for line in text.splitlines()]
        written |= {head for head, rule in itertools.pairwise(lines) if re.fullmatch(r"\|[-:| ]+\|", rule)}
    assert written == WRITTEN_TABLES.keys(), "make it in docs/site/results.py, or say here why it is written"


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.stem)
def test_a_study_begins_with_its_question_and_is_in_the_index_with_its_tables(study):
    text = study.read_text()
    if study.stem not in LOGS:
        assert re.match(r"# .*\n\n\*\*Question\.\*\* [^*]+\n\n\*\*Answer\.\*\* ", text)
    tables = ", ".join(f"`{name}`" for name in re.findall(r"<!-- made: ([\w-]+) -->", text))
    row = rf"^\| \[[^]]+\]\({study.name}\) \| \S.* \| {re.escape(tables)} +\|$"
    assert len(re.findall(row, (LAB / "index.md").read_text(), re.M)) == 1, f"docs/lab/index.md lacks {study.name}"


def test_every_picture_is_shown():
    shown = "".join(page.read_text() for page in PAGES)
    assert [path.name for path in sorted((HOUSE / "docs" / "images").glob("*.svg")) if path.name not in shown] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != LAB], ids=lambda page: page.name)
def test_a_page_outside_the_lab_is_short(page):
    assert len(page.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("name", [*TEACHERS, *SAMPLERS])
def test_every_teacher_and_sampler_is_described(name):
    described = (HOUSE / "docs" / "teachers.md").read_text()
    assert re.search(rf"^\| `{name}` \| \S", described, re.M), f"docs/teachers.md has no row for {name}"
