"""The presets that come with the package, as plain tables.

A file of its own, because the command line lists them without importing a library that the settings need.
"""

from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support import read_raw

FOLDER = Path(__file__).with_name("presets")


def list_presets(kind: str = "") -> list[str]:
    """The names of the presets of runs, or of another kind, a folder of theirs such as `sweeps`."""
    return sorted(file.stem for file in (FOLDER / kind).glob("*.toml"))


def read_preset(preset: str) -> dict[str, Any]:
    """The settings that a preset names. Raises InputError on an unknown one, and on one that cannot be read."""
    if preset not in list_presets():
        raise InputError(f"preset {preset!r} is unknown; {suggest(preset, list_presets())}")
    return read_raw(FOLDER / f"{preset}.toml")
