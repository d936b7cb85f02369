"""Processes that end with the one that started them, even if that one is killed."""

import multiprocessing
import os
import socket
import threading
from multiprocessing.connection import wait

STARTER = "LAKEWRIGHT_LAUNCHER"  # environment variable: host and id of the process that started a program


def starter() -> dict[str, str]:
    """The environment variable by which programs that this process starts, and those that they start, recognise it."""
    return {STARTER: f"{socket.gethostname()} {os.getpid()}"}


def end_with_starter() -> None:
    """Ends this process as soon as the one that started it is gone.

    That is the parent of a process of `multiprocessing`, else the one that `starter` names, if it is on this machine.
    """
    parent = multiprocessing.parent_process()
    host, _, process = os.environ.get(STARTER, "").partition(" ")
    if parent:
        _watch_process(parent.sentinel)
    elif host == socket.gethostname():
        try:
            _watch_process(os.pidfd_open(int(process)))
        except ProcessLookupError:
            os._exit(1)


def _watch_process(sentinel: int) -> None:
    threading.Thread(target=_end_after, args=(sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
