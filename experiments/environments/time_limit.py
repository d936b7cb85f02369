"""A limit to the time that other people's Python code may take, in any thread."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

AGAIN = 0.5  # seconds until the next try, where the code caught the first


class OutOfTime(BaseException):
    """The code took too long. No Exception, as retry loops catch those and go on."""


@contextlib.contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raises OutOfTime inside the block once it has taken so many seconds.

    Only Python code can be stopped: a loop inside a library in C ends by itself or not at all.
    """
    thread, ended, lock = ctypes.c_ulong(threading.get_ident()), threading.Event(), threading.Lock()

    def watch() -> None:
        pause = seconds
        while not ended.wait(pause):
            with lock:
                if not ended.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(OutOfTime))
            pause = AGAIN

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with lock:
            ended.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # one that is on its way is for this block alone
        watcher.join()
