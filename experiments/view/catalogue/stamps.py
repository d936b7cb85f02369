"""Stamps: texts that change whenever a file behind a page does, found by names, times and lengths alone."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from lakewright.experiments.view.catalogue.discovery import Item, Kind

UNSEEN = ("report.html", ".scratch")  # what changes without changing any page


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
    """The files and folders in a folder and one folder deeper; none where it is gone."""
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
