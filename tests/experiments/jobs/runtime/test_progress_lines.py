"""Progress of a run without a terminal: a line of each piece of work about once a minute, and none if it is silent."""

import pytest

from lakewright.experiments.jobs.runtime.progress_bars import print_on_terminal, progress, showing_progress
from lakewright.experiments.jobs.runtime.progress_lines import ProgressLines


class Clock:
    """Seconds that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_a_minute_says_what_how_much_how_fast_and_how_long(capsys):
    clock = Clock()
    bar = ProgressLines("GRPO", 40, "steps", clock=clock)
    for _ in range(30):
        clock.now += 5
        bar.set_postfix(valid="0.48", tokens="105000")
        bar.update()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  GRPO: 12 of 40 steps, 0.2 a second, valid 0.48, tokens 105000, 2:20 left",
        "  GRPO: 24 of 40 steps, 0.2 a second, valid 0.48, tokens 105000, 1:20 left",
    ]


def test_minutes_end_the_work_where_they_are_nearer():
    clock = Clock()
    bar = ProgressLines("warm-up", 1_000_000, "steps", minutes=240, clock=clock)
    clock.now += 3600
    bar.update(9000)
    assert bar.describe() == "  warm-up: 9000 of 1000000 steps, 2.5 a second, 3:00:00 left"


def test_steps_of_an_earlier_run_count_in_no_rate():
    clock = Clock()
    bar = ProgressLines("GRPO", 60, "steps", clock=clock)
    bar.initial = 20
    bar.update(20)
    clock.now += 10
    bar.update(10)
    assert ", 1 a second, 0:30 left" in bar.describe()


@pytest.mark.parametrize(("form", "shown"), [("bars", ""), ("lines", "stage 1\n"), ("silent", "")])
def test_only_lines_are_printed_into_a_pipe(form, shown, capsys):
    with showing_progress(form):
        print_on_terminal("stage 1")
        with progress("boards", 3, "boards") as bar:
            bar.update(3)
    print_on_terminal("after the block")
    assert capsys.readouterr().err == shown
