"""The house: four wings, their rooms and doors, how small and how large each may be, and what none may hold."""

import ast
import functools
import importlib
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HOUSE = Path(__file__).parents[1]
NAME = "lakewright."  # what the wings are imported by, see setup.py
MAY_KNOW = {
    "core_jax": {"core_jax"},
    "policy": {"policy", "core_jax"},
    "engineer": {"engineer", "core_jax"},
    "experiments": {"experiments", "engineer", "policy", "core_jax"},
}
# Packages of their own for other people's tools: no rooms, as their imports are not here, but as safe.
GUEST_FILES = sorted((HOUSE / "docs" / "integrations").rglob("*.py"))
FILES = sorted(file for wing in MAY_KNOW for file in (HOUSE / wing).rglob("*.py"))
ROOMS = sorted(file.parent for file in FILES if file.name == "__init__.py" and file.parent.parent != HOUSE)
TESTS = sorted((HOUSE / "tests").rglob("test_*.py"))
LONGEST_FUNCTION, LONGEST_FILE = 60, 400  # lines
ROOM_FILES, ROOM_LINES = 3, 200  # a room has at least so many files or so many lines
FILE_LINES, FILE_CALLERS = 40, 2  # a file has at least so many lines or is imported by so many others
# What enters the house from outside: texts that show what a user imports, and the command's entry point.
OUTSIDE = [
    HOUSE / "README.md",
    HOUSE / "pyproject.toml",
    *(HOUSE / "docs").glob("*.md"),
    *(HOUSE / "docs").rglob("*.py"),
]
HEAVY = ("jax", "torch", "transformers", "trl", "pyarrow", "sklearn")
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.save", "np.load", "numpy.load"}
UNSAFE_CALLS |= {"os.system", "importlib.import_module"}
LOOSE = ("trust_remote_code", "allow_pickle", "shell")  # arguments that trust what comes from outside
PLUGINS = HOUSE / "engineer" / "plugins.py"  # which imports what a user names, and nothing else does
ENGINEER_KNOWS = ("errors", "support", "results")  # of core_jax: the lake is one environment of many

ALL_FILES = [*FILES, *GUEST_FILES]


class Parsed(NamedTuple):
    """What the tests ask of a file: reading it again for each of them would take longer than all that they do."""

    docstring: str | None
    imports: list[ast.Import | ast.ImportFrom]  # those inside functions too
    functions: list[tuple[int, str, int]]  # line, name, and number of lines
    calls: list[tuple[int, str, dict[str | None, str]]]  # line, what is called, and arguments in LOOSE
    classes: list[str]


@functools.cache
def parsed(file: Path) -> Parsed:
    found = Parsed(ast.get_docstring(tree := tree_of(file)), [], [], [], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions.append((node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
        elif isinstance(node, ast.ClassDef):
            found.classes.append(node.name)
        elif isinstance(node, ast.Call):
            words = {word.arg: ast.unparse(word.value) for word in node.keywords if word.arg in LOOSE}
            found.calls.append((node.lineno, name_of(node.func), words))
    return found


def name_of(called: ast.expr) -> str:
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name | ast.Attribute):
        return f"{name_of(called.value)}.{called.attr}"
    return called.id if isinstance(called, ast.Name) else ast.unparse(called)


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
ROOM_NAMES = {module_of(room / "__init__.py") for room in ROOMS}
DOORS = {name for name, room in zip(map(module_of, ROOMS), ROOMS, strict=True) if (room / "__init__.pyi").exists()}


def place(module: str) -> str:
    """The room of a module; a module at the top of its wing stands for itself."""
    room = module if module in ROOM_NAMES else module.rpartition(".")[0]
    return room if room in ROOM_NAMES else module


@functools.cache
def offered_by(door: str) -> dict[str, str]:
    """By name that a door offers, the module that it is in."""
    stub = ast.parse((HOUSE / door.removeprefix(NAME).replace(".", "/") / "__init__.pyi").read_text())
    return {
        alias.name: f"{door}.{node.module or alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@functools.cache
def callers() -> dict[str, set[Path]]:
    """By module the files that import it, through a door too."""
    found: dict[str, set[Path]] = {name: set() for name in MODULES}
    for file in [*ALL_FILES, *(HOUSE / "docs").rglob("*.py")]:
        for node in parsed(file).imports:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                behind = offered_by(node.module) if node.module in DOORS else {}
                names = [behind.get(alias.name, f"{node.module}.{alias.name}") for alias in node.names]
                names.append(node.module or "")
            for name in names:
                found.get(name, set()).add(file)
    return found


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
            assert known not in set(MAY_KNOW) - MAY_KNOW.get(wing, set(MAY_KNOW)), (
                f"{file}:{line}: {wing} must not import {name}"
            )
            assert known != "tests", f"{file}:{line}: no room knows the tests"


def test_the_engineer_knows_no_lake():
    for file in (HOUSE / "engineer").rglob("*.py"):
        for node in parsed(file).imports:
            taken = [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            for name in taken or [alias.name for alias in node.names]:
                wing, _, room = name.removeprefix(NAME).partition(".")
                ours = wing != "core_jax" or room.split(".")[0] in ENGINEER_KNOWS
                assert ours, f"{file}:{node.lineno}: of core_jax the engineer knows {ENGINEER_KNOWS}, not {name}"


def test_another_wing_is_entered_by_a_door():
    for file in FILES:
        for line, name in entered(file):
            if wing_of(name) != wing_of(module_of(file)):
                room = place(name)
                inside = room in ROOM_NAMES and name != room
                assert not inside, f"{file}:{line}: {name} is a file of a room of another wing; enter by its door"
                assert room not in ROOM_NAMES or room in DOORS, f"{file}:{line}: {room} has no door"


def test_a_door_is_where_another_wing_or_a_user_enters():
    entering = {name for file in ALL_FILES for _, name in imports(file) if wing_of(name) != wing_of(module_of(file))}
    outside = "\n".join(file.read_text() for file in OUTSIDE)
    for door in DOORS:
        used = door in entering or re.search(rf"\b{re.escape(door)}\b(?!\.)", outside)
        assert used, f"nobody but its own wing enters {door}; delete its __init__.pyi, import the files"


def test_inside_a_wing_one_imports_the_file():
    for file in FILES:
        for line, name in entered(file):
            ours = name in DOORS and wing_of(name) == wing_of(module_of(file))
            assert not ours, f"{file}:{line}: {name} is the door for others; import the file"


def first_level(module: str) -> str:
    """The folder or file of a wing that a module is in, whatever folders are in between."""
    return ".".join(module.split(".")[:3])


@pytest.mark.parametrize("place", [place, first_level], ids=["rooms", "first level"])
def test_no_room_leads_back_to_itself(place: Callable[[str], str]):
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
    for name in sorted(DOORS):
        room, door = HOUSE / name.removeprefix(NAME).replace(".", "/"), importlib.import_module(name)
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


def test_the_engineers_door_stays_light_when_an_engineer_is_taken():
    program = f"""
import sys
import lakewright.engineer
assert lakewright.engineer.Engineer, "it offers none"
heavy = [name for name in {(*HEAVY, "pandas", "scipy")} if name in sys.modules]
assert not heavy, f"an engineer imports {{heavy}}"
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=HOUSE, check=False)
    assert ended.returncode == 0, ended.stderr.splitlines()[-1]


def lines_of(file: Path) -> int:
    return len(file.read_text().splitlines())


def test_a_room_is_worth_its_folder():
    for room in ROOMS:
        files = [file for file in room.glob("*.py") if file.name != "__init__.py"]
        inner = [inner for inner in ROOMS if inner.parent == room]
        large = len(files) >= ROOM_FILES or sum(map(lines_of, files)) >= ROOM_LINES or len(inner) >= ROOM_FILES
        assert large, f"{room} is small; make it a file"


def test_a_file_is_worth_its_name():
    for file in FILES:
        program = file.name.startswith("__") or "__main__" in file.read_text()
        short = not program and lines_of(file) < FILE_LINES
        alone = short and len(callers()[module_of(file)]) < FILE_CALLERS
        assert not alone, f"{file} is short and has one caller; move it there"


def test_no_function_is_long():
    for file in ALL_FILES:
        for line, name, lines in parsed(file).functions:
            assert lines <= LONGEST_FUNCTION, f"{file}:{line}: {name} has {lines} lines; make it two"


def test_no_file_is_long():
    for file in [*ALL_FILES, *TESTS]:
        assert lines_of(file) <= LONGEST_FILE, f"{file} has {lines_of(file)} lines; split it by what it does"


HELPERS = sorted(door.parent for door in (HOUSE / "tests" / "support").rglob("__init__.py"))


def test_every_helper_says_what_it_is():
    for file in (file for room in HELPERS for file in room.glob("*.py")):
        assert parsed(file).docstring, f"{file} has no docstring"


def test_nothing_is_unpickled_or_evaluated():
    for file in ALL_FILES:
        for line, name in imports(file):
            assert name.split(".")[0] not in UNSAFE_MODULES, f"{file}:{line}: {name} runs what it reads"
        for line, called, words in parsed(file).calls:
            allowed = file == PLUGINS and called == "importlib.import_module"
            assert allowed or called not in UNSAFE_CALLS, f"{file}:{line}: {called} runs what it reads"
            for loose in LOOSE:
                assert words.get(loose, "False") == "False", f"{file}:{line}: {loose} trusts what comes from outside"
            if re.fullmatch(r"Auto\w+\.from_(pretrained|config)", called):
                assert "trust_remote_code" in words, f"{file}:{line}: {called} asks whether to run a model's code"


def test_models_are_read_where_all_of_their_weights_are_checked():
    readers = {"policy/models/weights.py"}
    for file in ALL_FILES:
        for line, called, _ in parsed(file).calls:
            reads = re.fullmatch(r"(AutoModel\w*|PeftModel\w*|\w+ForCausalLM|BoardNetwork)\.from_pretrained", called)
            checked = str(file.relative_to(HOUSE)) in readers
            assert checked or not reads, f"{file}:{line}: {called} fills what is missing; use policy.models.read_model"


def asserts(node: ast.AST) -> bool:
    """Whether this is an assertion, an expected error, or a call of a helper that says that it asserts."""
    if isinstance(node, ast.Call):
        called = name_of(node.func).rpartition(".")[2]
        return called in ("raises", "refused", "warns", "expect") or called.startswith("assert_")
    return isinstance(node, ast.Assert)


def test_every_test_says_what_it_asserts():
    for file in TESTS:
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert any(map(asserts, ast.walk(node))), f"{file}:{node.lineno}: {node.name} asserts nothing itself"


def test_every_file_says_what_it_is():
    for file in ALL_FILES:
        assert parsed(file).docstring, f"{file} has no docstring"


def list_arguments(function: ast.FunctionDef) -> list[str]:
    """The names of arguments, without self."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def public_functions(file: Path) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The public functions of a file with their docstrings; a constructor has that of its class, too."""
    tree = tree_of(file)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for holder in (tree, *classes):
        for node in (node for node in holder.body if isinstance(node, ast.FunctionDef)):
            if node.name == "__init__" or not node.name.startswith("_"):
                above = (ast.get_docstring(holder) or "") if node.name == "__init__" else ""
                yield node, f"{above}\n{ast.get_docstring(node) or ''}"


def list_unnamed(function: ast.FunctionDef, text: str) -> list[str]:
    """The arguments that a docstring does not name."""
    return [name for name in list_arguments(function) if not re.search(rf"\b{name}\b", text)]


def is_command(function: ast.FunctionDef) -> bool:
    """Whether it is a command, whose options may have help of their own."""
    return any(re.search(r"\.(command|default)\b", ast.unparse(decorator)) for decorator in function.decorator_list)


def test_four_arguments_or_more_are_listed_in_the_docstring():
    long = [(file, *one) for file in FILES for one in public_functions(file) if len(list_arguments(one[0])) > 3]
    listed = {node.name for _, node, text in long if node.name != "__init__" and not list_unnamed(node, text)}
    for file, node, text in long:
        # An overridden method, or a hook of another library, has arguments that are listed elsewhere.
        elsewhere = is_command(node) or "A hook of" in text or re.search(r"\b(See|Like) `", text) or node.name in listed
        unnamed = list_unnamed(node, text)
        assert elsewhere or not unnamed, f"{file}:{node.lineno}: {node.name} does not list {', '.join(unnamed)}"


def test_the_core_reads_no_training_library():
    for file in (HOUSE / "core_jax").rglob("*.py"):
        known = {name.split(".")[0] for _, name in imports(file)}
        assert not known & {"torch", "transformers", "trl", "datasets"}, f"{file} imports a training library"


def test_the_script_that_counts_the_house_counts_these_files():
    script = runpy.run_path(str(HOUSE / "docs" / "site" / "count_house.py"))
    counted = script["count_house"](script["read_tree"]())
    doors = [file for file in FILES if file.name == "__init__.py" and file.with_suffix(".pyi").exists()]
    assert (counted["files"], counted["doors (.pyi)"]) == (str(len(FILES)), str(len(doors)))
