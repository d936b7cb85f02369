"""The manifest of a generated file: what it was made from, for making it again and comparing."""

import hashlib
import importlib.metadata
import platform
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator.generator import Acceptance
from lakewright.core_jax.support.jax_settings import describe_settings
from lakewright.core_jax.support.random_keys import IMPLEMENTATION

FORMAT = 1
PACKAGES = ("lakewright", "jax", "jaxlib", "numpy", "python-sat")


class FileManifest(msgspec.Struct, frozen=True):
    """OUT.manifest.json, next to a generated file.

    prng: the implementation of the keys. config_hash: `content_hash` of `config`. acceptance: by stratum. jax:
    the settings that boards were drawn with, whatever the process had set; empty in files of earlier versions.
    """

    format: int
    versions: dict[str, str]
    prng: str
    config: EnvConfig
    config_hash: str
    seed: int
    count: int
    acceptance: list[Acceptance]
    jax: dict[str, str] = {}


def manifest_of(config: EnvConfig, seed: int, count: int, acceptance: Iterable[Acceptance]) -> FileManifest:
    """The manifest of boards drawn here, with these versions.

    Args:
        config, seed, count: see `generate`.
        acceptance: the acceptance of all batches.
    """
    found = pool_acceptance(acceptance)
    return FileManifest(
        FORMAT, versions(), prng(), config, content_hash(config), seed, count, found, describe_settings()
    )


def manifest_path(path: Path) -> Path:
    """The path of the manifest of the file `path`."""
    return path.with_name(f"{path.name}.manifest.json")


def versions() -> dict[str, str]:
    """The versions that boards may depend on."""
    return {name: importlib.metadata.version(name) for name in PACKAGES} | {"python": platform.python_version()}


def prng() -> str:
    """The implementation of the random keys of boards, which no setting of JAX changes."""
    return f"{IMPLEMENTATION}, partitionable"


def content_hash(value: Any) -> str:
    """SHA-256 of canonical JSON: keys sorted, no spaces."""
    plain = msgspec.json.decode(msgspec.json.encode(value))
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


def pool_acceptance(parts: Iterable[Acceptance]) -> list[Acceptance]:
    """The acceptance of each stratum, from several batches' own."""
    strata = defaultdict(list)
    for part in parts:
        strata[part.size, part.agents, part.holes, part.wait].append(part)
    return [_sum_counts(of) for _, of in sorted(strata.items())]


def _sum_counts(parts: list[Acceptance]) -> Acceptance:
    counts = ("drawn", "met", "solvable", "unsolvable", "undecided", "waiting")
    columns = {name: [getattr(part, name) for part in parts] for name in counts}
    known = {name: sum(column) for name, column in columns.items() if None not in column}
    return msgspec.structs.replace(parts[0], **known)
