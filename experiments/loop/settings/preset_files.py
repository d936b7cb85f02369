"""The presets that come with the package, as plain tables.

A file of its own, because the command line lists them without importing a library that the settings need.
"""

from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_raw

FOLDER = Path(__file__).parents[2] / "presets"


def list_presets() -> list[str]:
    """The names of the presets."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def read_preset(preset: str) -> dict[str, Any]:
    """The settings that a preset names. Raises InputError on an unknown one, and on one that cannot be read."""
    if preset not in list_presets():
        raise InputError(f"preset {preset!r} is unknown; choose from {', '.join(list_presets())}")
    return read_raw(FOLDER / f"{preset}.toml")
