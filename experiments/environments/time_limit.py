"""A limit to the time that other people's Python code may take, in any thread."""

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

AGAIN = 0.5  # seconds until the next try, where the code caught the first
Result = TypeVar("Result")


class OutOfTime(BaseException):
    """The code took too long. No Exception because retry loops catch those and go on."""


def run_within(seconds: float, work: Callable[[], Result]) -> Result:
    """The result of `work` returns. Raises OutOfTime inside it once it has taken `seconds`.

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

    try:
        threading.Thread(target=watch, daemon=True).start()
        return work()
    finally:
        while True:
            try:
                with lock:
                    ended.set()
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # one on its way is for `work` alone
                break
            except OutOfTime:  # it came between: now there is none on its way
                continue
