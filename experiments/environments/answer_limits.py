"""Limits for scorers of other people: the time of a call, and the texts that they may evaluate as Python."""

import ast
import ctypes
import re
import threading
from collections.abc import Callable
from typing import TypeVar

AGAIN = 0.5  # seconds until the next try, where the code caught the first
MOST_DIGITS = 1000  # of a number
LARGE = re.compile(rf"(?<=[\d._])[eE][+-]?[\d_]{{5,}}|[\d_]{{{MOST_DIGITS + 1}}}")  # an exponent, or digits
EXPONENT = re.compile(r"(?<=[\d._])[eE][+-]?[\d_]{3,}")
LONGEST = 20_000  # characters
LARGEST_EXPONENT = 100
LARGEST_NUMBER = 1e100
MOST_POWERS = 2  # inside each other
FUNCTIONS = {
    *("sqrt", "exp", "log", "ln", "Abs", "erf", "sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
}
_PARTS = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop),
)
_LISTS = (ast.List, ast.Tuple)

T = TypeVar("T")


class OutOfTimeError(BaseException):
    """The code took too long. No Exception because retry loops catch those and go on."""


def run_within(seconds: float, work: Callable[[], T]) -> T:
    """Returns the result of `work`. Raises OutOfTimeError inside it once it has taken `seconds`.

    Only Python code can be stopped: a loop inside a library in C ends by itself or not at all.
    """
    thread, ended, lock = ctypes.c_ulong(threading.get_ident()), threading.Event(), threading.Lock()

    def watch() -> None:
        pause = seconds
        while not ended.wait(pause):
            with lock:
                if not ended.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(OutOfTimeError))
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
            except OutOfTimeError:  # it came between: now there is none on its way
                continue


def has_huge_number(text: str) -> bool:
    """Return True if a text has a number with an exponent, or with more digits than any answer needs."""
    return LARGE.search(text) is not None


def is_plain(text: str) -> bool:
    """Whether evaluating a text does nothing but compute, and ends soon: no attributes, no calls but of FUNCTIONS."""
    if len(text) > LONGEST or has_huge_number(text) or EXPONENT.search(text):
        return False
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return all(_is_plain_part(node) for node in ast.walk(tree)) and _count_nested_powers(tree) <= MOST_POWERS
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False


def _is_plain_part(node: ast.AST) -> bool:
    if not isinstance(node, _PARTS):
        return False
    if isinstance(node, ast.Name):
        return "__" not in node.id
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) or (
            isinstance(node.value, int | float) and abs(node.value) <= LARGEST_NUMBER
        )
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords
    if isinstance(node, ast.BinOp):
        return not any(map(_is_no_number, ast.walk(node))) and _is_small_power(node)
    return True


def _is_no_number(node: ast.AST) -> bool:
    return isinstance(node, _LISTS) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_small_power(node: ast.BinOp) -> bool:
    """Whether a power has no large exponent, nothing is shifted, and a remainder formats no text."""
    if isinstance(node.op, ast.LShift | ast.RShift | ast.MatMult):
        return False
    if not isinstance(node.op, ast.Pow):
        return True
    parts = list(ast.walk(node.right))
    numbers = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, int | float)]
    multiplies = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Pow) for part in parts)
    constant = not any(isinstance(part, ast.Name) for part in parts)
    return all(abs(number) <= LARGEST_EXPONENT for number in numbers) and not (multiplies and constant)


def _count_nested_powers(node: ast.AST) -> int:
    inside = max(map(_count_nested_powers, ast.iter_child_nodes(node)), default=0)
    return inside + (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow))
