"""Discovery of items under the given paths. Pages name items found here, never paths of their own.

Stamps are texts that change whenever a file behind a page does, found by names, times and lengths alone.
"""

import enum
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lakewright.core_jax.errors import InputError

SECONDS = 1.0  # for which a listing is cached
MISSED = 0.05  # and where an item is not among them, which may be new
DEEPEST = 6  # folders below a given one
MOST_FOLDERS = 20_000
BOARD_FILES = (".jsonl", ".parquet")
MAP_FILES = (".map", ".scen")  # boards of another format, that are converted first
UNSEEN = ("report.html", ".scratch")  # what changes without changing any page
# A run without a stage yet has config.json and one of these. A model's checkpoint has a config.json too, but none.
BEGUN = ("validation.parquet", "held_out.jsonl", "warmup", ".lock")
STUDY_FOLDERS = frozenset({"start", "runs"})  # folders of a study that hold items


class Kind(enum.StrEnum):
    """The kind of an item."""

    RUN = "run"
    STUDY = "study"
    ENGINEER = "engineer"
    SWEEP = "sweep"
    EVALUATION = "evaluation"
    BENCHMARK = "benchmark"
    BOARDS = "boards"


# The files of a folder that say what it is; the first kind whose files are all there.
MARKS = {
    Kind.STUDY: ("study.json",),
    Kind.ENGINEER: ("engineer.json", "versions"),
    Kind.SWEEP: ("manifest.json", "shards"),
    Kind.BENCHMARK: ("manifest.json", "benchmark.parquet"),
    Kind.EVALUATION: ("job.json",),
    Kind.RUN: ("config.json", "stage_00"),
}


class MissingError(InputError):
    """An item or file that a page names doesn't exist, or no longer."""


class Item(NamedTuple):
    """Something to look at. name: its path from the given folder, with that folder's name first."""

    kind: Kind
    name: str
    path: Path
    changed: float


class Catalogue:
    """The items below the given folders and files, found again when they are asked for.

    Raises InputError if a given path is not there, or a file that holds no boards.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.exists():
                raise InputError(f"{path}: does not exist; check the path")
            if not (path.is_dir() or _holds_boards(path)):
                convert = f"lakewright convert {path} --out boards.jsonl"
                remedy = f"run `{convert}` first" if path.suffix in MAP_FILES else "choose a folder or such a file"
                raise InputError(f"{path}: is no .jsonl or .parquet file; {remedy}")
        self._roots = _name_roots([path.resolve() for path in paths])
        self._found: dict[tuple[Kind, str], Item] = {}
        self._read = -SECONDS
        self.summaries: dict[str, tuple[str, dict[str, Any]]] = {}  # of runs, by path, with the stamps of their files

    def items(self) -> list[Item]:
        """All items, those last changed first."""
        return sorted(self._refresh_items().values(), key=lambda item: -item.changed)

    def hash_items(self) -> int:
        """A number that changes when items are added or removed."""
        return hash(tuple(self._refresh_items()))

    def find(self, kind: Kind, name: str) -> Item:
        """The item of that kind and name. Raises MissingError."""
        found = self._refresh_items().get((kind, name)) or self._refresh_items(MISSED).get((kind, name))
        if found is None:
            raise MissingError(f"{kind} {name!r:.80} not found; return to the index")
        self.check_inside(found.path)
        return found

    def check_inside(self, path: Path) -> None:
        """Raises MissingError if a path, or a link in it or right below it, leads out of the given folders."""
        for each in _with_links(path):
            if not any(each.resolve().is_relative_to(root) for root in self._roots.values()):
                raise MissingError(f"{path.name!r:.80} points outside the folders that are shown; it is not followed")

    def holds(self, path: Path) -> bool:
        """Whether a file lies in the given folders."""
        return path.exists() and any(path.resolve().is_relative_to(root) for root in self._roots.values())

    def roots(self) -> list[str]:
        """The names of the given paths."""
        return list(self._roots)

    def maps(self) -> list[str]:
        """The files of another format, below the given paths, by name; they are not shown."""
        found = []
        for called, entries in (level for name, root in self._roots.items() for level in _walk_levels(root, name)):
            found += [f"{called}/{entry.name}" for entry in entries if Path(entry.name).suffix in MAP_FILES]
        return found

    def _refresh_items(self, oldest: float = SECONDS) -> dict[tuple[Kind, str], Item]:
        """The items as they were at most `oldest` seconds ago."""
        if time.monotonic() - self._read > oldest:
            found = (item for name, root in self._roots.items() for item in _walk_root(root, name))
            self._found = {(item.kind, item.name): item for item in found}
            self._read = time.monotonic()
        return self._found


def _walk_root(root: Path, name: str) -> Iterator[Item]:
    """The items at and below a path. Nothing inside an item is one, except the runs of a study."""
    if not root.is_dir():
        yield from _board_file(root, name)
        return
    waiting, folders = [(root, name, 0)], 0
    while waiting and folders < MOST_FOLDERS:
        folder, called, depth = waiting.pop()
        folders += 1
        entries = _list_entries(folder)
        names = {entry.name for entry in entries}
        kind = _find_kind(names)
        if kind:
            yield Item(kind, called, folder, _read_time(folder))
            names = names & STUDY_FOLDERS if kind is Kind.STUDY else set()
        for entry in entries:
            if _is_hidden(entry.name) or entry.is_symlink() or entry.name not in names:
                continue
            if entry.is_dir(follow_symlinks=False) and depth < DEEPEST:
                waiting.append((Path(entry.path), f"{called}/{entry.name}", depth + 1))
            elif not kind:
                yield from _board_file(Path(entry.path), f"{called}/{entry.name}")


def _walk_levels(root: Path, name: str) -> Iterator[tuple[str, list[os.DirEntry]]]:
    """A folder and those below it, each with its name and what lies in it."""
    waiting, folders = [(root, name, 0)], 0
    while waiting and folders < MOST_FOLDERS:
        folder, called, depth = waiting.pop()
        folders += 1
        entries = [entry for entry in _list_entries(folder) if not _is_hidden(entry.name)]
        yield called, entries
        if depth < DEEPEST:
            inner = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
            waiting += [(Path(entry.path), f"{called}/{entry.name}", depth + 1) for entry in inner]


def _holds_boards(path: Path) -> bool:
    """Return True if a path is a file of boards by its name; a pipe, which can be read only once, is not one."""
    return path.suffix in BOARD_FILES and path.is_file()


def _board_file(path: Path, name: str) -> Iterator[Item]:
    if _holds_boards(path):
        yield Item(Kind.BOARDS, name, path, _read_time(path))


def _find_kind(names: set[str]) -> Kind | None:
    for kind, marks in MARKS.items():
        if names.issuperset(marks):
            return kind
    return Kind.RUN if "config.json" in names and names.intersection(BEGUN) else None


def _with_links(path: Path) -> Iterator[Path]:
    """A path, and the links in the folder and one folder deeper."""
    yield path
    if path.is_dir():
        for entry in _list_entries(path):
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir():
                yield from (Path(inner.path) for inner in _list_entries(Path(entry.path)) if inner.is_symlink())


def _list_entries(folder: Path) -> list[os.DirEntry]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # gone, or not ours to read: it is not listed
        return []


def _read_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _is_hidden(name: str) -> bool:
    """Whether a file is hidden: unfinished files, locks, and names that no address can hold."""
    return name.startswith(".") or not name.isprintable()


def _name_roots(roots: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for root in dict.fromkeys(roots):
        name, number = root.name or "root", 2
        while name in found:
            name, number = f"{root.name}-{number}", number + 1
        found[name] = root
    return found


def stamp_of(folder: Path) -> str:
    """The stamp of a folder and the folders in it; logs that grow are among its files."""
    return _digest_states(_stamp_file(path) for path in files_of(folder))


def stamp_of_item(item: Item) -> str:
    """The stamp of an item. Shards of a sweep come and go by name, so that their folder shows it."""
    if item.kind is Kind.BOARDS:
        return _stamp_file(item.path)
    if item.kind is Kind.SWEEP:
        return _digest_states(
            _stamp_file(path) for path in (item.path, item.path / "shards", item.path / "manifest.json")
        )
    if item.kind is Kind.STUDY:
        runs = item.path / "runs"
        inner = sorted(runs.iterdir()) if runs.is_dir() else []
        return _digest_states(stamp_of(folder) for folder in (item.path, item.path / "start", *inner))
    return stamp_of(item.path)


def files_of(folder: Path) -> list[Path]:
    """The files and folders in a folder and one folder deeper; empty if it is gone."""
    try:
        names = [path for path in folder.iterdir() if path.name not in UNSEEN]
        inner = [path for part in names if part.is_dir() for path in part.iterdir() if path.name not in UNSEEN]
        return [path for path in (*names, *inner) if path.exists()]
    except OSError:
        return []


def _stamp_file(path: Path) -> str:
    stat = path.stat()
    return f"{path.name}:{stat.st_mtime_ns}:{stat.st_size}"


def _digest_states(states: Iterable[str]) -> str:
    return hashlib.blake2b("/".join(states).encode(errors="replace"), digest_size=12).hexdigest()
