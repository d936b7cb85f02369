"""SHA-256 of the files of a folder that we write, listed beside them, and checked whenever one of them is read.

    SHA256SUMS    a line for each listed file, as `sha256sum` writes it: `sha256sum -c SHA256SUMS` checks them too

A file is listed once it is whole, and taken off the list before it is replaced, so that a kill leaves a file unlisted
at most. Files that are not listed, such as files of earlier versions, are read without a check.

A power cut may empty a list to which a file was just added, never leave the digest of a file that was replaced.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support.atomic_files import replacing
from lakewright.core_jax.support.threads import in_threads

LISTING = "SHA256SUMS"
LINE = re.compile(rb"([0-9a-f]{64}) [ *]([^\n]+)\n")


@contextlib.contextmanager
def listed(*paths: Path, writer: str = "", known: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Lists files of one folder once the block has written them whole; until then they are not listed.

    writer: see `replacing`, if several processes may write the same files at the same time. known: digests of files,
    by name, that need not be computed.
    """
    folder, there = paths[0].parent, _read_listing(paths[0].parent)
    # Off the list first, and on the disk: a kill while the file is written leaves it unlisted, which is read without
    # a check, and never listed with the digest of its old contents, which would be refused.
    if any(path.name in there for path in paths):
        names = {path.name for path in paths}
        _write_listing(folder, {name: digest for name, digest in there.items() if name not in names}, writer)
    yield
    written = {path.name: known.get(path.name) or digest_of(path) for path in paths}
    # A power cut may empty this list: then the files are unlisted. Waiting for the disk would double the cost.
    _write_listing(folder, {**_read_listing(folder), **written}, writer, synchronized=False)


@contextlib.contextmanager
def unlisted(path: Path) -> Iterator[None]:
    """Takes a file off the list while the block adds to it; it is listed at the end, also of a block that fails.

    So what is added has to be whole at any moment. A kill leaves the file unlisted.
    """
    with contextlib.ExitStack() as listing:
        listing.enter_context(listed(path))
        try:
            yield
        finally:
            listing.close()


def update_listing(path: Path) -> None:
    """Lists a file that is whole but unlisted in a folder with a list, as a kill just after it was written leaves it.

    Nobody else may write in the folder: what the kill left of the list itself is removed.
    """
    path.with_name(f".{LISTING}.part").unlink(missing_ok=True)
    there = _read_listing(path.parent)
    if there and path.is_file() and path.name not in there:
        with listed(path):
            pass


def record_listing(folder: Path) -> None:
    """Lists all files that lie in a folder, and no others."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name != LISTING)
    digests = in_threads(digest_of, files)
    _write_listing(folder, {file.name: digest for file, digest in zip(files, digests, strict=True)})


def check_digest(path: str | Path) -> None:
    """Raises InputError if a file is not the one that is listed beside it; without a line nothing is checked."""
    path = Path(path)
    wanted = _read_listing(path.parent).get(path.name)
    # File and list are two files, so a reader may see one of them replaced and the other not yet; a second look
    # settles it.
    while wanted and path.is_file() and digest_of(path) != wanted:
        before, wanted = wanted, _read_listing(path.parent).get(path.name)
        if before == wanted:  # else another process has just replaced it
            raise InputError(
                f"{path}: was changed after it was written: its SHA-256 differs from {LISTING}; restore the file or, "
                "if you changed it on purpose, remove its line there"
            )


def check_listed(folder: Path) -> None:
    """Raises InputError if a file of a folder is not the one that is listed there, or is missing."""
    files = [folder / name for name in _read_listing(folder)]
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: is missing, but {LISTING} lists it; restore it, or remove its line")
    in_threads(check_digest, files)


def list_names(folder: Path) -> list[str]:
    """The names of the files of a folder that are listed there, whether they are there or not."""
    return list(_read_listing(folder))


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(path, "rb") as file:  # in pieces, as it may be larger than the memory
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_listing(folder: Path) -> dict[str, str]:
    """The digest of each listed file by name; lines of another form, as of other tools, are passed over."""
    try:
        data = (folder / LISTING).read_bytes()
    except OSError:
        return {}
    lines = (LINE.fullmatch(line) for line in data.splitlines(keepends=True))
    return {found[2].decode(errors="surrogateescape"): found[1].decode() for found in lines if found}


def _write_listing(folder: Path, digests: Mapping[str, str], writer: str = "", synchronized: bool = True) -> None:
    lines = (f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    with replacing(folder / LISTING, writer, synchronized) as beside:
        beside.write_bytes("".join(lines).encode(errors="surrogateescape"))
