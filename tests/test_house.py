"""Which room may know which, and what no room may hold."""

import ast
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
MAY_KNOW = {
    "core_jax": {"core_jax"},
    "policy": {"policy", "core_jax"},
    "engineer": {"engineer", "core_jax"},
    "experiments": {"experiments", "engineer", "policy", "core_jax"},
}
FILES = sorted(file for room in MAY_KNOW for file in (HOUSE / room).rglob("*.py"))
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.save", "np.load", "numpy.load"}
UNSAFE_CALLS |= {"os.system", "importlib.import_module"}

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(HOUSE)))


def imports(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and full name of every import, those inside functions too."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: a relative import hides which room it enters"
            found.append((node.lineno, node.module or ""))
    return found


def tree_of(file: Path) -> ast.AST:
    return ast.parse(file.read_text())


def test_the_house_has_its_four_rooms_and_no_other_package():
    packages = {file.parent.name for file in HOUSE.glob("*/__init__.py")}
    assert packages == set(MAY_KNOW)
    assert {file.relative_to(HOUSE).parts[0] for file in FILES} == set(MAY_KNOW)


@each_file
def test_imports_point_one_way(file):
    room = file.relative_to(HOUSE).parts[0]
    for line, name in imports(tree_of(file)):
        entered = name.split(".")[0]
        assert entered not in set(MAY_KNOW) - MAY_KNOW[room], f"{file}:{line}: {room} must not import {name}"
        assert entered != "tests", f"{file}:{line}: no room knows the tests"


@each_file
def test_nothing_is_unpickled_or_evaluated(file):
    tree = tree_of(file)
    for line, name in imports(tree):
        assert name.split(".")[0] not in UNSAFE_MODULES, f"{file}:{line}: {name} runs what it reads"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in UNSAFE_CALLS, f"{file}:{node.lineno}: {called} runs what it reads"
            loose = [word.arg for word in node.keywords if word.arg in ("trust_remote_code", "allow_pickle", "shell")]
            assert not loose, f"{file}:{node.lineno}: {loose[0]} trusts what comes from outside"


@each_file
def test_every_file_says_what_it_is(file):
    assert ast.get_docstring(ast.parse(file.read_text())), f"{file} has no docstring"


def test_the_core_reads_no_training_library():
    for file in (HOUSE / "core_jax").glob("*.py"):
        entered = {name.split(".")[0] for _, name in imports(tree_of(file))}
        assert not entered & {"torch", "transformers", "trl", "datasets"}, f"{file} imports a training library"
