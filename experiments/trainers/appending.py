"""Files to which several processes append lines at the same time, each line in one write."""

import errno
import os
from pathlib import Path

from lakewright.core_jax.support import refuse_pipe

LONGEST = 1 << 20  # bytes of a line


def open_appended(path: Path) -> int:
    """A descriptor of a file that is only appended to, and made if it is not there. Raises InputError on a pipe."""
    refuse_pipe(path)
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


def append_whole(descriptor: int, data: bytes, path: Path) -> None:
    """Appends whole lines by one system call, so that other processes' lines come before or after.

    Raises OSError if the disk took only a part; readers leave out what is left of such a line.
    """
    try:
        written = os.write(descriptor, data)
    except OSError as error:
        error.filename = str(path)
        raise
    if written < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
