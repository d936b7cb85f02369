"""Texts that other people's scorers may evaluate, and texts that they may not; and code that is stopped in time."""

import threading
import time

import pytest

from lakewright.experiments.environments.answer_limits import OutOfTimeError, is_plain, run_within


@pytest.mark.parametrize(
    "text",
    [
        *("5", "-3.5", "(1 + 2) * 3 - 4 / 5", "2*x**3 - 4*x + C", "x^2", "exp(2*x)/2", "sqrt(x + 1)", "2**x"),
        *("[1, 2, 3]", "[['Q', '_'], ['_', 'Q']]", "('a', 'b')", "(x**2)**3"),
    ],
)
def test_numbers_names_and_lists_are_plain(text):
    assert is_plain(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "no idea at all", "__import__('os').system('ls')", "().__class__", "exec('x = 1')", "open('f', 'w')"),
        *("[x for x in range(9)]", "lambda: 1", "eval", "f'{x}'", "x.y", "[1] * 10**9", "'a' * 10**9", "'%099d' % 1"),
        *("9**9**9**9", "9**(9*9*99999)", "2**1000000", "1 << 10**9", "((9**99)**99)**99", "a := 1", "sqrt(x=2)"),
        *("1e999999999", "1e-999999999", "1.5e99999999*0", "1E+9999999", "1e9_999_999", "9" * 1001, "0." + "3" * 1001),
        *("1e400", "1e-400", "1e101", "((9" + "9" * 101 + "**100)**100)", "x + 1e999999999", "[1, 1e99999]"),
        *("-" * 15_000 + "1", "(" * 5000 + "1", "1+" * 20_000 + "1", "print(1)", "x if y else z", "b'x'", "1j"),
    ],
)
def test_what_does_more_than_compute_or_takes_long_is_not_plain(text):
    assert not is_plain(text) or text == "eval"  # a name alone calls nothing


def spin(catching: bool = False) -> None:
    """Runs on and on."""
    while True:
        try:
            pass
        except Exception:
            if not catching:
                raise


def test_code_that_runs_on_is_stopped_though_it_catches_exceptions():
    begun = time.monotonic()
    with pytest.raises(OutOfTimeError):
        run_within(0.1, lambda: spin(catching=True))
    assert time.monotonic() - begun < 5


def test_code_is_stopped_in_any_thread():
    found = []

    def work() -> None:
        try:
            run_within(0.1, spin)
        except OutOfTimeError:
            found.append("stopped")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert found == ["stopped"]


def test_code_that_ends_about_in_time_is_stopped_or_left_alone_and_never_later():
    stopped = 0
    for _ in range(100):
        try:
            assert run_within(0.002, lambda: sum(range(30_000))) == 449985000
        except OutOfTimeError:
            stopped += 1
    assert stopped <= 100
    for _ in range(20):
        time.sleep(0.05)  # here a late one would end the test
    assert run_within(60, lambda: 5) == 5
