"""The state that a kill leaves, where a test does not kill."""

from pathlib import Path

from lakewright.core_jax.support import LISTING


def cut_off(path: Path, lines: int | None = None, then: bytes = b"") -> None:
    """Leaves a file to which lines are added as a kill does: off the list of digests.

    lines: how many of its lines are there, by default all. then: what came of the next one.
    """
    listing = path.with_name(LISTING)
    kept = [
        line
        for line in listing.read_bytes().splitlines(keepends=True)
        if not line.endswith(f"  {path.name}\n".encode())
    ]
    listing.write_bytes(b"".join(kept))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:lines]) + then)
