"""Names: a class, a type or an imported function has its name to itself, so that the name says which one it is."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.test_house import ALL_FILES, DOORS, FILES, module_of, offered_by, parsed, tree_of


def test_a_public_class_name_is_defined_once():
    names = Counter(name for file in FILES for name in parsed(file).classes if not name.startswith("_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_name_of_a_type_says_which_one_it_is():
    meant: dict[str, set[str]] = {}
    for file in FILES:
        for name in parsed(file).classes:
            meant.setdefault(name, set()).add(f"the class in {file.name}")
        if "solver" not in file.parts:  # whose types are those of its own signatures
            for name, value in aliases(file):
                meant.setdefault(name, set()).add(value)
    assert {name: values for name, values in meant.items() if len(values) > 1 and not name.startswith("_")} == {}


def aliases(file: Path) -> Iterator[tuple[str, str]]:
    """The names at the top of a file that are written like those of classes, each with what it stands for."""
    for node in tree_of(file).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and re.fullmatch("[A-Z][A-Za-z]*[a-z][A-Za-z]*", target.id) and node.value:
            yield target.id, ast.unparse(node.value)


def test_a_function_that_others_import_has_its_name_to_itself():
    defined = {(module_of(file), name) for file in FILES for _, name, _ in parsed(file).functions}
    homes: dict[str, set[str]] = {}
    for node in (node for file in ALL_FILES for node in parsed(file).imports if isinstance(node, ast.ImportFrom)):
        behind = offered_by(node.module) if node.module in DOORS else {}
        for alias in node.names:
            home = behind.get(alias.name, f"{node.module}.{alias.name}").removesuffix(f".{alias.name}")
            if (home, alias.name) in defined:
                homes.setdefault(alias.name, set()).add(home)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
