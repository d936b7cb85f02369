"""Compiled programs of the tests, kept from one run to the next in `build/programs`.

A program is read only for the same source, settings and versions of JAX. A run works in a folder of its own, and only
whole files of a run that passed are kept, as a process that is killed may leave a part of one.
"""

import atexit
import contextlib
import shutil
import tempfile
import zlib
from pathlib import Path

KEPT = Path(__file__).parents[3] / "build" / "programs"
MOST = 256 << 20  # bytes; beyond that all are removed, as programs of older sources are never read again
COMPILED = "-cache"  # the end of the name of what XLA compiled, which JAX compresses


def begin_folder(kept: Path = KEPT) -> Path:
    """A new folder with all that is kept, which is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="lakewright-compiled-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with contextlib.suppress(shutil.Error, FileNotFoundError):  # nothing is kept, or another run removes it
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    return folder


def keep_programs(folder: Path, kept: Path = KEPT, most: int = MOST) -> None:
    """Keeps what a run compiled. folder: of the run. most: bytes."""
    if sum(file.stat().st_size for file in kept.rglob("*") if file.is_file()) > most:
        shutil.rmtree(kept, ignore_errors=True)
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        place = kept / file.relative_to(folder)
        if not place.exists() and _is_whole(file):
            place.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(dir=kept)) / "part"
            shutil.copyfile(file, beside)
            beside.replace(place)
            beside.parent.rmdir()


def _is_whole(file: Path) -> bool:
    """Whether JAX wrote a file to its end; of the others, which are renamed when they are whole, always."""
    if not file.name.endswith(COMPILED):
        return not file.name.endswith(".part")
    try:
        zlib.decompress(file.read_bytes())
    except zlib.error:
        return False
    return True
