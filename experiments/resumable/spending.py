"""Possible costs of requests to a server, in a file that survives a kill between a request and its answer."""

import errno
import os
from pathlib import Path

import msgspec

from lakewright.experiments.resumable.journal import Journal
from lakewright.policy.inference import Charge, sum_charges


class Spending:
    """The charges of all tries so far; the file is made by the first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def count_tokens(self) -> tuple[int, int]:
        """The tokens in and out that may have been billed. Raises InputError where the file is damaged."""
        if not self._path.exists():
            return 0, 0
        with Journal(self._path, Charge) as journal:
            return sum_charges(journal)

    def add(self, charge: Charge) -> None:
        """Saves a charge, whole or not at all; once this returns it survives a kill."""
        line = msgspec.json.encode(charge) + b"\n"
        with open(self._path, "ab", buffering=0) as lines:
            end = lines.tell()
            try:
                if lines.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
                os.fsync(lines.fileno())
            except OSError:
                lines.truncate(end)
                raise
