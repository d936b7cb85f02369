"""The cells of a design space: grids of bins for bandits, the cells of a forecast, and those that tokens state."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from lakewright.engineer.cells import Cell, Knob, Stratum, Value
from lakewright.engineer.design import Design
from lakewright.engineer.windows import find_middle

MOST_CELLS = 64  # of a stratum in a forecast; with more, one knob at a time is varied
MOST_BINNED = 4096  # cells of a grid of bins
MOST_TOLD = 16  # cells of a stratum in tokens


class CellGrid:
    """Strata x knobs as cells.

    strata: by rank. ranks: the rank of each. knobs: levels and traits. ranked: whether strata are ordered from easy to
    hard.
    """

    strata: tuple[Stratum, ...]
    ranks: dict[Stratum, int]
    knobs: tuple[Knob, ...]
    ranked: bool
    _limits: dict[Stratum, dict[str, tuple[float, float]]]

    @property
    def levels(self) -> tuple[int, ...]:
        """The places of the levels among the knobs."""
        return tuple(place for place, knob in enumerate(self.knobs) if not knob.trait)

    @property
    def traits(self) -> tuple[int, ...]:
        """The places of the traits among the knobs."""
        return tuple(place for place, knob in enumerate(self.knobs) if knob.trait)

    def limits(self, stratum: Stratum, knob: Knob) -> tuple[float, float]:
        """The range of a knob in a stratum; of the share 0 to 1."""
        return self._limits.get(stratum, {}).get(knob.name, (knob.low, knob.high))

    def sort_strata(self, strata: Iterable[Stratum]) -> list[Stratum]:
        """Strata by rank."""
        return sorted(strata, key=lambda stratum: self.ranks.get(stratum, len(self.ranks)))

    def grid(self, strata: Iterable[Stratum]) -> list[Cell]:
        """The cells of some strata in which bandits count: for each level the centre of a bin, with and without traits.

        By rank of the strata. With many knobs there are fewer bins, so that there are at most MOST_BINNED cells.
        """
        chosen = self.sort_strata(strata)
        bins = self._choose_bins(chosen)
        ways = ((stratum, self._list_binned_values(stratum, bins)) for stratum in chosen)
        return [Cell(stratum, values) for stratum, way in ways for values in itertools.product(*way)]

    def _choose_bins(self, strata: Sequence[Stratum]) -> int:
        """The largest number of bins of a level such that the grid of some strata has at most MOST_BINNED cells."""
        for bins in range(max((knob.bins for knob in self.knobs), default=1), 1, -1):
            ways = (self._list_binned_values(stratum, bins) for stratum in strata)
            if sum(math.prod(map(len, way)) for way in ways) <= MOST_BINNED:
                return bins
        return 1

    def _list_binned_values(self, stratum: Stratum, bins: int) -> list[list[Value]]:
        return self._list_values(stratum, lambda knob, low, high: knob.list_centres(low, high, min(bins, knob.bins)))

    def _list_values(self, stratum: Stratum, choose: Callable[[Knob, float, float], list[Value]]) -> list[list[Value]]:
        """The values that each knob may have: for a trait those that are allowed, of a level those that are chosen."""
        return [
            self.list_trait_values(stratum, knob) if knob.trait else choose(knob, *self.limits(stratum, knob))
            for knob in self.knobs
        ]

    def list_trait_values(self, stratum: Stratum, knob: Knob) -> list[Value]:
        """The values of a trait that a stratum's problems may have."""
        low, high = self.limits(stratum, knob)
        return [*[False] * (low < 1), *[True] * (high > 0)]

    def allows(self, cell: Cell) -> bool:
        """Whether a cell has only traits that its stratum may have."""
        pairs = ((knob, cell.values[place]) for place, knob in enumerate(self.knobs) if knob.trait)
        return all(bool(value) in self.list_trait_values(cell.stratum, knob) for knob, value in pairs)

    def bin_cell(self, cell: Cell, strata: Iterable[Stratum]) -> Cell:
        """The cell of the grid of `strata` that holds a cell: for each level the bin of its value."""
        ways = self._list_binned_values(cell.stratum, self._choose_bins(self.sort_strata(strata)))
        values = []
        for knob, value, centres in zip(self.knobs, cell.values, ways, strict=True):
            low, high = self.limits(cell.stratum, knob)
            width = (high - low) / len(centres)
            if knob.trait:
                values.append(value)
            # Bins of whole numbers differ in width, so the nearest centre decides.
            elif knob.whole or not width:
                values.append(min(centres, key=lambda centre, value=value: abs(centre - value)))  # type: ignore[misc]
            else:
                # A value on an edge belongs to the upper bin, whatever rounding made of it; the highest to the last.
                values.append(centres[min(len(centres) - 1, int((value - low) / width + 1e-9))])
        return Cell(cell.stratum, tuple(values))

    def siblings(self, cell: Cell) -> list[Cell]:
        """The cells that differ from a cell in their traits alone."""
        ways = [
            self.list_trait_values(cell.stratum, knob) if knob.trait else [value]
            for knob, value in zip(self.knobs, cell.values, strict=True)
        ]
        return [other for way in itertools.product(*ways) if (other := cell._replace(values=way)) != cell]

    def hardness(self, cell: Cell, strata: Iterable[Stratum]) -> float:
        """The difficulty of a cell's problems by rank, 0 to 1.

        That is the mean of the levels and traits of known direction and of the rank of the stratum among `strata`, each
        0 to 1; 0.5 if nothing is known.
        """
        parts = []
        for knob, value in zip(self.knobs, cell.values, strict=True):
            if knob.harder and (knob.trait or knob.span):
                place = float(value) if knob.trait else (value - knob.low) / knob.span
                parts.append(place if knob.harder > 0 else 1 - place)
        ordered = self.sort_strata(strata)
        if self.ranked and len(ordered) > 1:
            parts.append(ordered.index(cell.stratum) / (len(ordered) - 1))
        return sum(parts) / len(parts) if parts else 0.5

    def forecast_cells(self, design: Design) -> list[Cell]:
        """The cells of which the difficulty model gives a forecast, by rank of the design's strata.

        All combinations of `Knob.list_points` of the levels, with and without traits; if a stratum has more than
        MOST_CELLS of them, each knob is varied by itself and the others are as in the design.
        """
        found = []
        for stratum in self.sort_strata(design.strata):
            ways = self._list_values(stratum, Knob.list_points)
            if math.prod(map(len, ways)) <= MOST_CELLS:
                found += [Cell(stratum, values) for values in itertools.product(*ways)]
            else:
                found += self._one_at_a_time(stratum, design.strata[stratum], ways)
        return found

    def _one_at_a_time(self, stratum: Stratum, row: Mapping[str, float], ways: Sequence[list[Value]]) -> list[Cell]:
        usual = self.list_usual(row)
        values = [(*usual[:place], value, *usual[place + 1 :]) for place, way in enumerate(ways) for value in way]
        return [Cell(stratum, way) for way in dict.fromkeys(values)]

    def list_usual(self, row: Mapping[str, float]) -> tuple[Value, ...]:
        """A value of each knob that problems of a row have: of windows the middle, and traits that most have."""
        middles = ((knob, find_middle(row, knob)) for knob in self.knobs)
        return tuple(
            value >= 0.5 if knob.trait else knob.round_value(value) if knob.top in row else value
            for knob, value in middles
        )

    def list_stated_cells(self, stratum: Stratum, cells: Iterable[Cell]) -> list[Cell]:
        """The cells of a stratum whose forecast the tokens state: all combinations of `told` of the levels and traits.

        With more than MOST_TOLD of them, those among `cells`, the cells of the forecast.
        """
        ways = [(False, True) if knob.trait else knob.list_stated_values() for knob in self.knobs]
        if math.prod(map(len, ways)) <= MOST_TOLD:
            return [Cell(stratum, values) for values in itertools.product(*ways)]
        mine = (cell for cell in cells if cell.stratum == stratum)
        return sorted(cell for cell in mine if all(value in way for value, way in zip(cell.values, ways, strict=True)))
