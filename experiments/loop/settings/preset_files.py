"""The presets that come with the package, as plain tables."""

from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_raw

FOLDER = Path(__file__).parents[2] / "presets"


def presets() -> list[str]:
    """The names of the presets."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def preset_table(preset: str) -> dict[str, Any]:
    """The settings that a preset names. Raises InputError on an unknown one, and on one that cannot be read."""
    if preset not in presets():
        raise InputError(f"preset {preset!r} is unknown; choose from {', '.join(presets())}")
    return read_raw(FOLDER / f"{preset}.toml")
