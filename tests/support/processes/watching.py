"""Other processes, watched: which are alive, what they write, and when they are gone."""

import os
import time
from pathlib import Path

PATIENCE = 120  # seconds
LONGEST_GOODBYE = 60.0  # seconds within which workers end after the command that began them; some still import


def alive(process: int) -> bool:
    """Whether a process works, or sleeps, still."""
    return _fields_of(process)[0] != "Z"


def wait_for(path: Path) -> None:
    """Waits until a file or folder is there."""
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.002)


def assert_ends(process: int) -> None:
    """A process ends, at once or soon."""
    _assert_end(lambda: {process} if alive(process) else set())


def assert_session_ends(leader: int, within: float = LONGEST_GOODBYE) -> None:
    """All processes of a session end, at once or within so many seconds."""
    _assert_end(lambda: session(leader), within)


def session(leader: int) -> set[int]:
    """The processes that live in the session that a process leads."""
    found = ((process, _fields_of(process)) for process in map(int, filter(str.isdigit, os.listdir("/proc"))))
    return {process for process, fields in found if fields[0] != "Z" and int(fields[3]) == leader}


def title(process: int) -> str:
    """The words that began a process, or what it calls itself; nothing once it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _assert_end(living, within: float = LONGEST_GOODBYE) -> None:
    deadline = time.monotonic() + within
    while left := living():
        assert time.monotonic() < deadline, f"these processes go on alone: {[title(process) for process in left]}"
        time.sleep(0.02)


def _fields_of(process: int) -> list[str]:
    """State, parent, group and session of a process, from its third field on; one that is gone is a zombie too."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["Z", "0", "0", "0"]
