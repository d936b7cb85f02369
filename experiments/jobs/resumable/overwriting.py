"""Protection of inputs: an output that would replace an input is refused before any work."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from lakewright.core_jax.errors import InputError

Named: TypeAlias = tuple[str, Path]
"""A path, and before it what a message calls it, such as `--out`."""


def refuse_overwriting(outputs: Iterable[Named], inputs: Iterable[Named]) -> None:
    """Raises InputError if an output is also an input, or another output, by whatever path or link."""
    others = list(inputs)
    for name, path in outputs:
        for other, there in others:
            if _is_same(path, there):
                raise InputError(f"{path}: is also {other}, which {name} would replace; choose another {name}")
        others.append((name, path))


def refuse_within(folder: Path, inputs: Iterable[Named]) -> None:
    """Raises InputError if an input lies in `folder`, whose files the command removes."""
    for name, path in inputs:
        if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise InputError(f"{path}: {name} is in {folder}, which is removed at the end; move it elsewhere")


def _is_same(path: Path, other: Path) -> bool:
    """Return True if two paths are one file or folder; of those that do not exist yet, if they will be."""
    try:
        return os.path.samefile(path, other)  # follows symbolic links, and knows hard links by their number
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)
