"""A disk that is full or read-only whenever a test wants it to be.

It is a file system of its own in memory. Where this process may not mount one, the largest size of a file stands for
the room that is left, and a file in the place of the folder for one that cannot be written.
"""

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

PLENTY = 1 << 30  # bytes


class SmallDisk:
    """The disk at a path. servers: the processes whose children work on it."""

    def __init__(self, path: Path, servers: Sequence[subprocess.Popen]) -> None:
        self.path, self._servers = path, servers
        path.mkdir()
        self._mounted = _mount("--types=tmpfs", f"--options=size={PLENTY}", "lakewright-tests", str(path))

    def leave(self, room: int) -> None:
        """Leaves so many bytes for whatever is begun from now on."""
        if self._mounted:
            used = os.statvfs(self.path)
            size = (used.f_blocks - used.f_bfree) * used.f_frsize + room
            assert self._remount(f"size={max(size, used.f_frsize)}"), "the disk keeps its size"
        else:
            for server in self._servers:
                _, most = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
                resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (room, most))

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """Nothing can be written in the block."""
        if self._mounted:
            assert self._remount("ro"), "the disk stays writable"
            yield
            assert self._remount("rw"), "the disk stays read-only"
        else:
            aside = self.path.rename(self.path.with_name("aside"))
            self.path.write_bytes(b"")
            yield
            self.path.unlink()
            aside.rename(self.path)

    def close(self) -> None:
        """The disk and all on it are gone."""
        if self._mounted:
            subprocess.run(["umount", "--lazy", str(self.path)], check=True)

    def _remount(self, options: str) -> bool:
        return _mount(f"--options=remount,{options}", str(self.path))


def _mount(*words: str) -> bool:
    """Whether this process may mount, and has done it."""
    try:
        return not subprocess.run(["mount", *words], capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False
