"""The presets that come with the package, as plain tables."""

import tomllib
from importlib import resources
from typing import Any

from lakewright.core_jax.errors import InputError


def presets() -> list[str]:
    """The names of the presets."""
    folder = resources.files("lakewright.experiments") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def preset_table(preset: str) -> dict[str, Any]:
    """The settings that a preset names. Raises InputError on an unknown one."""
    if preset not in presets():
        raise InputError(f"preset {preset!r} is unknown; choose from {', '.join(presets())}")
    return tomllib.loads((resources.files("lakewright.experiments") / "presets" / f"{preset}.toml").read_text())
