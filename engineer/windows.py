"""Windows: a level of a design may be a range whose values are drawn equally often.

A row names the lower end like the knob, `digits`, and the upper end `digits_high`, unless both are the same. An edit of
`digits` moves the whole window, and one of `digits_high` its upper end beyond that.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import DECIMALS, Knob, Value

MOST_WINDOWS = 6  # of a stratum
MOST_DRAWN = 2**MOST_WINDOWS  # combinations of the levels of a stratum that a design draws


def find_ends(row: Mapping[str, float], column: Knob) -> tuple[float, float]:
    """The lowest and the highest value of a column in a row; of a value without a window twice the same."""
    low = row[column.name]
    return low, row.get(column.top, low)


def find_middle(row: Mapping[str, float], column: Knob) -> float:
    """The value of a column in a row, or the middle of its window, which need not be a whole number."""
    low, high = find_ends(row, column)
    return low if low == high else (low + high) / 2


def make_window(column: Knob, low: float, high: float) -> dict[str, float]:
    """The part of a row for a column from `low` to `high`, or with `low` alone if that is not less."""
    return {column.name: low} | ({column.top: high} if high > low else {})


def replace_window(row: Mapping[str, float], column: Knob, low: float, high: float) -> dict[str, float]:
    """The row with another value or window of a column.

    Args:
        row: has the column.
        column: the column to replace.
        low, high: the ends of the new window; equal for a single value.
    """
    return {name: value for name, value in row.items() if name != column.top} | make_window(column, low, high)


def round_levels(row: Mapping[str, float], knobs: Iterable[Knob]) -> dict[str, float]:
    """The part of a row for knobs, with values that a design can have, the range aside."""
    found: dict[str, float] = {}
    for knob in knobs:
        found |= make_window(knob, *map(knob.round_value, find_ends(row, knob)))
    return found


def list_windowed(row: Mapping[str, float], columns: Iterable[Knob]) -> list[Knob]:
    """The columns of a row that have a window."""
    return [column for column in columns if column.top in row]


def write_ends(row: Mapping[str, float], column: Knob, form: str = ".4g") -> str:
    """The value of a column in a row for people, such as `2` or `2 to 6`."""
    return " to ".join(f"{end:{form}}" for end in dict.fromkeys(find_ends(row, column)))


def map_moves(old: Mapping[str, float], new: Mapping[str, float], columns: Sequence[Knob]) -> dict[str, float]:
    """The edit that leads from one row to another: by column its change and, if its window changes, by how much."""
    moves = {column.name: float(new[column.name] - old[column.name]) for column in columns}
    for column in columns:
        (low, high), (before, until) = find_ends(new, column), find_ends(old, column)
        # The lower end moves by the column's own change, which moves the upper end as well; only what the width
        # changes is left.
        if wider := round((high - low) - (until - before), DECIMALS):
            moves[column.top] = wider
    return moves


def move_row(row: Mapping[str, float], changes: Mapping[str, float], columns: Sequence[Knob]) -> dict[str, float]:
    """The row after an edit: raw sums, with DECIMALS."""
    for column in columns:
        step, further = changes.get(column.name, 0.0), changes.get(column.top, 0.0)
        if step or further:
            low, high = find_ends(row, column)
            low, high = round(low + step, DECIMALS), round(high + step + further, DECIMALS)
            row = replace_window(row, column, low, high)
    return dict(row)


def check_window(row: Mapping[str, float], column: Knob, limits: tuple[float, float], where: str) -> None:
    """Raises InputError if the upper end of a column's window is out of range, or below the lower end.

    Args:
        row: has the column.
        column: a knob, or the share.
        limits: the range of its values.
        where: the field of its lower end, to name in the message.
    """
    if column.top in row:
        column.check_value(row[column.top], (max(limits[0], row[column.name]), limits[1]), f"{where}_high")


def check_size(row: Mapping[str, float], columns: Sequence[Knob], where: str) -> None:
    """Raises InputError if a row has more than MOST_WINDOWS."""
    if len(wide := list_windowed(row, columns)) > MOST_WINDOWS:
        said = f"{where}: {len(wide)} knobs have windows, of which {MOST_WINDOWS} may have one"
        raise InputError(f"{said}; leave out {wide[MOST_WINDOWS].top}")


def map_levels(row: Mapping[str, float], columns: Sequence[Knob]) -> dict[str, list[Value]]:
    """The values of each column that a row draws, by name, at most MOST_DRAWN combinations of them.

    Of a whole level they are all whole numbers in its window, else those a step apart; fewer of them, evenly spread, if
    windows are wide or many.
    """
    wide = list_windowed(row, columns)
    counts = {column.name: _count_values(*find_ends(row, column), column) for column in wide}
    most = max(counts.values(), default=1)
    # The longest windows are thinned first, and both ends stay: two values are the least that a window can draw.
    while most > 2 and math.prod(min(count, most) for count in counts.values()) > MOST_DRAWN:
        most -= 1
    return {
        column.name: _spread_values(*find_ends(row, column), column, min(most, counts.get(column.name, 1)))
        for column in columns
    }


def _count_values(low: float, high: float, column: Knob) -> int:
    apart = 1.0 if column.whole else column.step
    return max(2, min(MOST_DRAWN, math.floor((high - low) / apart + 1e-9) + 1))


def _spread_values(low: float, high: float, column: Knob, count: int) -> list[Value]:
    if count == 1:
        return [low]
    places = (low + number * (high - low) / (count - 1) for number in range(count))
    return list(dict.fromkeys(map(column.round_value, places)))
