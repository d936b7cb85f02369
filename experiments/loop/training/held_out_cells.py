"""The cells of a run that are held out, and the problems of the held-out set and of a final test."""

import functools
import itertools
import random
from collections.abc import Collection

from lakewright.core_jax.support import derive_seed
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment
from lakewright.engineer.guard import is_drawable
from lakewright.engineer.problems import Problem
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.settings.run_settings import ValidationSettings

MOST_CELLS = 200  # that are held out; of a larger grid so many are chosen at random, evenly over the strata
MOST_DRAWS = 20  # of each cell for a test, as a multiple of the problems wanted; a cell may have fewer different ones


class HeldOutCells:
    """The held-out cells of an environment, over the strata of the first design.

    Args:
        environment: draws the problems.
        start: the first design.
        settings: the number of problems of a cell, and their seed.
    """

    def __init__(self, environment: Environment, start: Design, settings: ValidationSettings) -> None:
        self.environment, self.start, self.settings = environment, start, settings

    @functools.cached_property
    def drawable(self) -> list[Cell]:
        """The cells of the grid that can be drawn."""
        cells = self.environment.space.grid(self.start.strata)
        return [cell for cell in cells if is_drawable(self.environment, cell, self.start)]

    def choose(self) -> list[Cell]:
        """The cells that are held out: all that can be drawn, at most MOST_CELLS, or one of each stratum."""
        cells = list(self.drawable)
        if len(cells) <= MOST_CELLS:
            return cells
        random.Random(derive_seed(self.settings.seed, "held-out cells")).shuffle(cells)
        strata = [[cell for cell in cells if cell.stratum == stratum] for stratum in self.start.strata]
        in_turn = [cell for turn in itertools.zip_longest(*strata) for cell in turn if cell]
        return in_turn[: max(MOST_CELLS, len(strata))]

    def draw(self) -> list[Problem]:
        """Different problems of each held-out cell, as many as the settings say."""
        count, cells, problems = self.settings.boards, self.choose(), list[Problem]()
        with progress("held-out problems", len(cells) * count, "problems") as bar:
            for cell in cells:
                problems += self._draw_cell(cell, 0)
                bar.update(count)
        return list({problem.key: problem for problem in problems}.values())

    def draw_new(self, known: Collection[str]) -> list[Problem]:
        """Different problems of each held-out cell, all of them new.

        A problem that several cells draw is of the first of them. A cell has fewer problems if MOST_DRAWS times as many
        draws hold no more.

        Args:
            known: keys of problems to leave out.
        """
        cells, taken, problems = self.choose(), set(known), list[Problem]()
        with progress("problems of the test", len(cells), "cells") as bar:
            for cell in cells:
                new = self._draw_different(cell, taken)
                taken.update(new)
                problems += new.values()
                bar.update(1)
        return problems

    def _draw_different(self, cell: Cell, taken: Collection[str]) -> dict[str, Problem]:
        """The problems of a cell by key, without those whose keys are taken."""
        count, new = self.settings.boards, dict[str, Problem]()
        for first in range(0, count * MOST_DRAWS, count):
            new |= {problem.key: problem for problem in self._draw_cell(cell, first) if problem.key not in taken}
            if len(new) >= count:
                break
        return dict(itertools.islice(new.items(), count))

    def _draw_cell(self, cell: Cell, first: int) -> list[Problem]:
        complete = self.environment.space.complete_cell(cell, self.start)
        seed = derive_seed(self.settings.seed, f"held-out {cell}")
        return self.environment.draw_cell(complete, self.settings.boards, seed, first)
