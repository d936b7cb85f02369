"""The packages that a run needs: the pins of this project, and those of the extras that its settings use."""

import importlib.metadata
from collections.abc import Callable, Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.models import is_gguf

PROJECT = "lakewright"
# TRL takes this version too, which asks for an older transformers than this project: see docs/gpu-hosts.md.
LIMITS = {"vllm": SpecifierSet("<0.31")}
Versions = Callable[[str], str | None]


def extras_of(settings: RunSettings) -> list[str]:
    """The extras that a run needs."""
    host = settings.grpo.host
    wanted = {
        "vllm": host.vllm != "off",
        "lora": host.lora is not None,
        "structured": settings.answers_in_json,
        "gguf": is_gguf(settings.start),
        "trackers": host.report_to != "none",
    }
    return [extra for extra, needed in wanted.items() if needed]


def needed_packages(settings: RunSettings) -> list[Requirement]:
    """The packages that must be installed, with those that extras of other packages need (TRL's own, for vLLM)."""
    found = [Requirement(PROJECT), *_of(PROJECT, ["", *extras_of(settings)])]
    nested = [part for asked in found if asked.extras for part in _of(asked.name, list(asked.extras))]
    if settings.launch.config.startswith("zero"):
        nested.append(Requirement("deepspeed"))
    if settings.grpo.host.report_to != "none":
        found = [part for part in found if part.name not in {"tensorboard", "wandb", "trackio"}]
        nested.append(Requirement(settings.grpo.host.report_to))
    for part in nested:
        part.specifier &= LIMITS.get(part.name, SpecifierSet())
    return [*found, *nested]


def misfits(settings: RunSettings, version_of: Versions) -> Iterator[str]:
    """One line for each package that is missing or of another version, with the words that install it."""
    for needed in needed_packages(settings):
        there = version_of(needed.name)
        wanted = f"{needed.name}{needed.specifier}"
        if there is None:
            yield f"{needed.name} is not installed: pip install '{wanted}'"
        elif not needed.specifier.contains(there, prereleases=True):
            yield f"{needed.name} is {there}: pip install '{wanted}'"


def _of(package: str, extras: list[str]) -> Iterator[Requirement]:
    """The requirements of a package with these extras, "" for none; nothing where it is not installed."""
    try:
        lines = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for asked in map(Requirement, lines):
        marker = asked.marker
        if "" in extras if marker is None else any(marker.evaluate({"extra": extra}) for extra in extras):
            yield asked
