"""The house: four wings, their rooms, the front doors between them, and what no room may hold."""

import ast
import functools
import importlib
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HOUSE = Path(__file__).parents[1]
NAME = "lakewright."  # what the wings are imported by, see setup.py
MAY_KNOW = {
    "core_jax": {"core_jax"},
    "policy": {"policy", "core_jax"},
    "engineer": {"engineer", "core_jax"},
    "experiments": {"experiments", "engineer", "policy", "core_jax"},
}
# Packages of their own for other people's tools: no rooms, as their imports are not there, but as safe and as polite.
GUESTS = [toml.parent for wing in MAY_KNOW for toml in (HOUSE / wing).rglob("pyproject.toml")]
GUEST_FILES = sorted(file for guest in GUESTS for file in guest.rglob("*.py"))
FILES = sorted({file for wing in MAY_KNOW for file in (HOUSE / wing).rglob("*.py")} - set(GUEST_FILES))
ROOMS = sorted(file.parent for file in FILES if file.name == "__init__.py" and file.parent.parent != HOUSE)
TESTS = sorted((HOUSE / "tests").rglob("test_*.py"))
DOORS = {".".join(room.relative_to(HOUSE).parts) for room in ROOMS}
MANY = {"lakewright.engineer.teachers", "lakewright.engineer.samplers"}  # rooms with a file for each way
MOST_FILES = 12  # of any other room
LONGEST_FUNCTION = 60  # lines
MEDIAN_LINES, LONGEST_FILE, LONGEST_TESTS = 150, 300, 350  # of files
MOST_HELPERS = 10  # of a room of tests/support
HEAVY = ("jax", "torch", "transformers", "trl", "matplotlib", "pyarrow", "sklearn")
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.save", "np.load", "numpy.load"}
UNSAFE_CALLS |= {"os.system", "importlib.import_module"}
PLUGINS = HOUSE / "engineer" / "plugins.py"  # which imports what a user names, and nothing else does
ENGINEER_KNOWS = ("errors", "support", "results")  # of core_jax: the lake is one environment of many

ALL_FILES = [*FILES, *GUEST_FILES]


class Parsed(NamedTuple):
    """What the tests ask of a file: reading it anew for each of them would take longer than all that they do."""

    docstring: str | None
    imports: list[ast.Import | ast.ImportFrom]  # those inside functions too
    functions: list[tuple[int, str, int]]  # line, name, and number of lines
    calls: list[tuple[int, str, dict[str | None, str]]]  # line, what is called, and its arguments by name


@functools.cache
def parsed(file: Path) -> Parsed:
    found = Parsed(ast.get_docstring(tree := tree_of(file)), [], [], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append((node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
        elif isinstance(node, ast.Call):
            found.calls.append(
                (node.lineno, ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords})
            )
    return found


def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imports(file: Path) -> list[tuple[int, str]]:
    """Line and full name of every import."""
    found = []
    for node in parsed(file).imports:
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        else:
            assert not node.level, f"{file}:{node.lineno}: a relative import hides which room it enters"
            found.append((node.lineno, node.module or ""))
    return found


def module_of(file: Path) -> str:
    return NAME + ".".join(file.relative_to(HOUSE).with_suffix("").parts).removesuffix(".__init__")


def wing_of(module: str) -> str:
    """The wing that a module of ours is in; of any other, its first name."""
    return module.removeprefix(NAME).split(".")[0]


MODULES = {module_of(file) for file in FILES if file.name != "__init__.py"}


def place(module: str) -> str:
    """The room of a module; a module at the top of its wing stands for itself."""
    room = module if module in DOORS else module.rpartition(".")[0]
    return room if room in DOORS else module


def entered(file: Path) -> list[tuple[int, str]]:
    """Line and full name of every module of the house that a file imports, files taken through a door too."""
    found = []
    for node in parsed(file).imports:
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names if wing_of(alias.name) in MAY_KNOW]
        elif wing_of(node.module or "") in MAY_KNOW:
            files = [name for alias in node.names if (name := f"{node.module}.{alias.name}") in MODULES]
            found += [(node.lineno, name) for name in files or [node.module or ""]]
    return found


def test_the_house_has_its_four_wings_and_no_other_package():
    packages = {file.parent.name for file in HOUSE.glob("*/__init__.py")}
    assert packages == {*MAY_KNOW, "tests"}
    assert {file.relative_to(HOUSE).parts[0] for file in FILES} == set(MAY_KNOW)


def test_imports_point_one_way():
    for file in ALL_FILES:
        wing = file.relative_to(HOUSE).parts[0]
        for line, name in imports(file):
            known = wing_of(name)
            assert known not in MAY_KNOW or name.startswith(NAME), f"{file}:{line}: {name} is lakewright.{name}"
            assert known not in set(MAY_KNOW) - MAY_KNOW[wing], f"{file}:{line}: {wing} must not import {name}"
            assert known != "tests", f"{file}:{line}: no room knows the tests"


def test_the_engineer_knows_no_lake():
    for file in (HOUSE / "engineer").rglob("*.py"):
        for node in parsed(file).imports:
            taken = [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            for name in taken or [alias.name for alias in node.names]:
                wing, _, room = name.removeprefix(NAME).partition(".")
                ours = wing != "core_jax" or room.split(".")[0] in ENGINEER_KNOWS
                assert ours, f"{file}:{node.lineno}: of core_jax the engineer knows {ENGINEER_KNOWS}, not {name}"


def test_a_room_is_entered_through_its_front_door():
    for file in ALL_FILES:
        here = place(module_of(file))
        for line, name in entered(file):
            inside = name in MODULES and place(name) in DOORS
            ours = not inside or place(name) == here
            assert ours, f"{file}:{line}: {name} is a file of another room; enter by its door"


def test_no_room_leads_back_to_itself():
    leads = {}
    for file in FILES:
        here = place(module_of(file))
        leads.setdefault(here, set()).update(place(name) for _, name in entered(file) if place(name) != here)
    done: set[str] = set()

    def walk(room: str, path: tuple[str, ...]) -> None:
        assert room not in path, f"a circle of imports: {' -> '.join([*path[path.index(room) :], room])}"
        if room not in done:
            for following in sorted(leads.get(room, ())):
                walk(following, (*path, room))
            done.add(room)

    for room in sorted(leads):
        walk(room, ())


def test_a_door_opens_to_all_that_it_offers():
    for room in ROOMS:
        name = NAME + ".".join(room.relative_to(HOUSE).parts)
        door = importlib.import_module(name)
        assert door.__all__, f"{name} offers nothing"
        for offered in door.__all__:
            assert getattr(door, offered) is not None, f"{name} does not hold {offered}"
            hidden = (room / f"{offered}.py").exists() and f"import {offered} as" in (room / "__init__.pyi").read_text()
            whole = f"from . import {offered} as" in (room / "__init__.pyi").read_text()
            assert not hidden or whole, f"{name}.{offered} is a file and something in it; rename the file"


def test_doors_are_light_until_something_is_taken():
    program = f"""
import importlib, sys
for door in {sorted(DOORS)}:
    importlib.import_module(door)
    heavy = [name for name in {HEAVY} if name in sys.modules]
    assert not heavy, f"the door {{door}} imports {{heavy}}"
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=HOUSE, check=False)
    assert ended.returncode == 0, ended.stderr.splitlines()[-1]


def test_the_engineers_door_stays_light_when_a_design_space_is_taken():
    program = f"""
import sys
import lakewright.engineer
assert lakewright.engineer.DesignSpace, "it offers none"
heavy = [name for name in {(*HEAVY, "pandas", "scipy")} if name in sys.modules]
assert not heavy, f"a design space imports {{heavy}}"
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=HOUSE, check=False)
    assert ended.returncode == 0, ended.stderr.splitlines()[-1]


def test_no_room_is_crowded():
    for room in ROOMS:
        files = [file.name for file in room.glob("*.py") if file.name != "__init__.py"]
        name = NAME + ".".join(room.relative_to(HOUSE).parts)
        assert len(files) <= MOST_FILES or name in MANY, f"{name} holds {len(files)} files; make a room of some"


def test_no_function_is_long():
    for file in ALL_FILES:
        for line, name, lines in parsed(file).functions:
            assert lines <= LONGEST_FUNCTION, f"{file}:{line}: {name} has {lines} lines; make it two"


def test_files_are_short():
    for wing in MAY_KNOW:
        lengths = [len(file.read_text().splitlines()) for file in FILES if wing in file.relative_to(HOUSE).parts]
        assert statistics.median(lengths) <= MEDIAN_LINES, f"the files of {wing} are long"
        assert max(lengths) <= LONGEST_FILE, f"a file of {wing} is too long; split it"


def test_rooms_of_tests_are_as_small_as_those_of_code():
    for file in TESTS:
        lines, room = len(file.read_text().splitlines()), [*file.parent.glob("test_*.py")]
        assert lines <= LONGEST_TESTS, f"{file} has {lines} lines; split it by what it tests"
        assert len(room) <= MOST_FILES, f"{file.parent} holds {len(room)} files of tests; make a room of some"


HELPERS = sorted(door.parent for door in (HOUSE / "tests" / "support").rglob("__init__.py"))


def test_no_room_of_helpers_is_crowded_and_each_says_what_it_holds():
    for room in HELPERS:
        files = [file for file in room.glob("*.py") if file.name != "__init__.py"]
        assert len(files) <= MOST_HELPERS, f"{room} holds {len(files)} files; make a room of some"
        for file in (room / "__init__.py", *files):
            assert parsed(file).docstring, f"{file} has no docstring"


def test_nothing_is_unpickled_or_evaluated():
    for file in ALL_FILES:
        for line, name in imports(file):
            assert name.split(".")[0] not in UNSAFE_MODULES, f"{file}:{line}: {name} runs what it reads"
        for line, called, words in parsed(file).calls:
            allowed = file == PLUGINS and called == "importlib.import_module"
            assert allowed or called not in UNSAFE_CALLS, f"{file}:{line}: {called} runs what it reads"
            for loose in ("trust_remote_code", "allow_pickle", "shell"):
                assert words.get(loose, "False") == "False", f"{file}:{line}: {loose} trusts what comes from outside"
            if re.fullmatch(r"Auto\w+\.from_(pretrained|config)", called):
                assert "trust_remote_code" in words, f"{file}:{line}: {called} asks whether to run a model's code"


def asserts(node: ast.AST) -> bool:
    """Whether this is an assertion, an expected error, or a call of a helper that says that it asserts."""
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        return called in ("raises", "warns", "expect") or called.startswith("assert_")
    return isinstance(node, ast.Assert)


def test_every_test_says_what_it_asserts():
    for file in TESTS:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert any(map(asserts, ast.walk(node))), f"{file}:{node.lineno}: {node.name} asserts nothing itself"


def test_every_file_says_what_it_is():
    for file in ALL_FILES:
        assert parsed(file).docstring, f"{file} has no docstring"


def test_the_core_reads_no_training_library():
    for file in (HOUSE / "core_jax").rglob("*.py"):
        known = {name.split(".")[0] for _, name in imports(file)}
        assert not known & {"torch", "transformers", "trl", "datasets"}, f"{file} imports a training library"
