"""The size of the product in figures: how many files, how long they are, and how much in them is explained.

    python docs/site/count_house.py                  # the working tree
    python docs/site/count_house.py c28e1fc HEAD     # these commits beside it

Counted are the Python files of the four wings, without the tests and without packages of their own, which are called
NAME_lakewright. Special methods such as `__init__` are no function names, and a comment is a line of its own.
"""

import ast
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
WINGS = ("core_jax", "policy", "engineer", "experiments")
GUEST = "_lakewright/"
SHORT = 30  # lines
# Rooms for what the product could not do at commit c28e1fc: other people's trainers, clusters, any environment and its
# check, the reading test, and damaged files.
LATER_ROOMS = (
    *("experiments/trainers/", "experiments/executors/", "experiments/environments/", "experiments/reading/"),
    *("experiments/jobs/executors/", "experiments/studies/reading/", "experiments/corruption/"),
    *("engineer/testing/", "engineer/reading/"),
)
FIGURES: dict[str, Callable[[Mapping[str, str]], str]] = {
    "files": lambda files: str(len(_python(files))),
    "files without later rooms": lambda files: str(len(_python(_drop_later(files)))),
    "files without __init__": lambda files: str(len(_own_files(files))),
    "median lines of those": lambda files: f"{statistics.median(map(_count_lines, _own_files(files))):g}",
    f"of those up to {SHORT} lines": lambda files: str(sum(_count_lines(text) <= SHORT for text in _own_files(files))),
    "lines": lambda files: f"{sum(map(_count_lines, _python(files))):,}",
    "doors (.pyi)": lambda files: str(sum(name.endswith(".pyi") for name in files)),
    "function names of one word": lambda files: f"{_share_of_short_names(_python(files)):.0%}",
    "comment lines": lambda files: f"{_share_of_comments(_python(files)):.1%}",
}


def read_tree() -> dict[str, str]:
    """By path the text of every file of the product in the working tree."""
    paths = (path for wing in WINGS for path in sorted((ROOT / wing).rglob("*.py*")))
    return _select({path.relative_to(ROOT).as_posix(): path for path in paths}, Path.read_text)


def read_commit(commit: str) -> dict[str, str]:
    """The same of a commit."""
    names = _run_git("ls-tree", "-r", "--name-only", commit, "--", *WINGS).splitlines()
    return _select({name: name for name in names}, lambda name: _run_git("show", f"{commit}:{name}"))


def count_house(files: Mapping[str, str]) -> dict[str, str]:
    """Every figure by its name."""
    return {name: count(files) for name, count in FIGURES.items()}


def print_table(columns: Mapping[str, Mapping[str, str]]) -> None:
    """Prints a line for each figure, with a column for each commit or tree."""
    print(f"| | {' | '.join(columns)} |\n{'|---' * (len(columns) + 1)}|")
    for name in FIGURES:
        print(f"| {name} | {' | '.join(found[name] for found in columns.values())} |")


def _select(places: Mapping[str, object], read: Callable) -> dict[str, str]:
    wanted = {name: place for name, place in places.items() if name.endswith((".py", ".pyi")) and GUEST not in name}
    return {name: read(place) for name, place in wanted.items()}


def _run_git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _python(files: Mapping[str, str]) -> list[str]:
    return [text for name, text in files.items() if name.endswith(".py")]


def _drop_later(files: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in files.items() if not name.startswith(LATER_ROOMS)}


def _own_files(files: Mapping[str, str]) -> list[str]:
    return [text for name, text in files.items() if name.endswith(".py") and not name.endswith("__init__.py")]


def _count_lines(text: str) -> int:
    return len(text.splitlines())


def _share_of_short_names(texts: Sequence[str]) -> float:
    functions = (node for text in texts for node in ast.walk(ast.parse(text)))
    names = [node.name for node in functions if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    plain = [name.strip("_") for name in names if not name.startswith("__")]
    return sum("_" not in name for name in plain) / len(plain)


def _share_of_comments(texts: Sequence[str]) -> float:
    lines = [line.lstrip() for text in texts for line in text.splitlines()]
    return sum(line.startswith("#") for line in lines) / len(lines)


if __name__ == "__main__":
    trees = {commit: count_house(read_commit(commit)) for commit in sys.argv[1:]}
    print_table(trees | {"working tree": count_house(read_tree())})
