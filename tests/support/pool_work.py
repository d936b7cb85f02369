"""Works on pieces in two processes: each writes its process id into the folder, and then takes long."""

import os
import sys
import time
from functools import partial
from pathlib import Path

from core_jax.support import write_atomically
from experiments.resumable import work_on


def work(piece: int, folder: Path) -> int:
    """Leaves its process id, and is slow unless the folder says that haste is needed."""
    write_atomically(folder / f"{piece}.pid", str(os.getpid()).encode())
    if not (folder / "hurry").exists():
        time.sleep(600)
    return piece * piece


if __name__ == "__main__":
    where = Path(sys.argv[1])
    found = dict(work_on([1, 2, 3], partial(work, folder=where), workers=2))
    (where / "found").write_text(str(sorted(found.items())))
