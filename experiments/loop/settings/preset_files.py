"""The presets that come with the package, as plain tables.

A file of its own, because the command line lists them without importing a library that the settings need.
"""

import tomllib
from importlib import resources
from typing import Any

from lakewright.core_jax.errors import InputError


def list_presets() -> list[str]:
    """The names of the presets."""
    folder = resources.files("lakewright.experiments") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def read_preset(preset: str) -> dict[str, Any]:
    """The settings that a preset names. Raises InputError on an unknown one."""
    if preset not in list_presets():
        raise InputError(f"preset {preset!r} is unknown; choose from {', '.join(list_presets())}")
    return tomllib.loads((resources.files("lakewright.experiments") / "presets" / f"{preset}.toml").read_text())
