"""Shaded tables as SVG, with the number in every field: of shares, and of the difficulty model's forecast."""

from collections.abc import Callable, Sequence

from lakewright.engineer.cells import Cell, Stratum, Value
from lakewright.engineer.difficulty import CellForecast, Forecast
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.viewer.charts.frame import FONT, WIDTH, draw_text, escape_text, wrap_picture

FIELD, LINE, MARGIN, TOP = 58, 30, 64, 46  # a field is wider, and so is the margin, where a label needs it
LETTER, SPACE = 7, 8  # of a label: the width of a letter of this size at most, and what separates two labels
MOST_DIGITS = 6
LIGHT, DARK = (230, 242, 249), (8, 64, 106)


def heat_map(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    said: str = "",
    form: str = "{:.0f}",
    top: float | None = None,
    least: int = WIDTH,
    shade: Callable[[float], float] = float,
) -> str:
    """A shaded table as SVG.

    Args:
        title: text above the map.
        rows: names of the rows.
        columns: names of the columns.
        values: [rows, columns]; None is an empty field.
        said: the meaning of the numbers, for tooltips.
        form: writes a number.
        top: the value with the darkest shade, by default the largest of `values`; 0 has the lightest.
        least: the smallest width of the picture.
        shade: maps a value to the number that decides its shade.
    """
    there = [shade(value) for line in values for value in line if value is not None]
    top = top or max(there, default=1) or 1
    wide, left = max(FIELD, _width(columns)), max(MARGIN, _width(rows))
    parts = [draw_text(left, 34, said, "start", 'opacity=".75"')]
    parts += [draw_text(left + wide * (n + 0.5), TOP + 10, name, "middle") for n, name in enumerate(columns)]
    for line, (name, cells) in enumerate(zip(rows, values, strict=True)):
        y = TOP + 16 + LINE * line
        parts.append(draw_text(left - 8, y + LINE / 2 + 3, name, "end"))
        for n, value in enumerate(cells):
            number = "" if value is None else form.format(value)
            share = None if value is None else min(max(shade(value) / top, 0.0), 1.0)
            words = f"{name}, {columns[n]}: {number or 'nothing'}"
            parts.append(_draw_field(left + wide * n, y, wide, share, number, words))
    width = left + max(wide * len(columns), LETTER * len(said)) + 8
    return wrap_picture(title, "".join(parts), TOP + 24 + LINE * len(rows), max(width, least))


def ratio_labels(ratios: Sequence[float]) -> list[str]:
    """Ratios with two decimals, or as many as it takes to tell them apart."""
    for digits in range(2, MOST_DIGITS):
        names = [f"{round(ratio, digits):g}" for ratio in ratios]
        if len(set(names)) == len(set(ratios)):
            return names
    return [f"{ratio:g}" for ratio in ratios]


def _width(labels: Sequence[str]) -> int:
    """The width of the longest label and the space beside it."""
    return LETTER * max(map(len, labels), default=0) + SPACE


def _draw_field(x: float, y: float, wide: float, share: float | None, number: str, words: str) -> str:
    """A field with its number."""
    box = f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{wide - 2:g}" height="{LINE - 2}" rx="4"'
    if share is None:
        return f'{box} fill="none" stroke="currentColor" opacity=".2"><title>{escape_text(words)}</title></rect>'
    red, green, blue = (round(low + share * (high - low)) for low, high in zip(LIGHT, DARK, strict=True))
    ink = "#ffffff" if share > 0.5 else "#10202c"
    written = draw_text(x + wide / 2, y + LINE / 2 + 4, number, "middle", f'fill="{ink}"')
    return f'{box} fill="rgb({red},{green},{blue})"><title>{escape_text(words)}</title></rect>{written}'


ZOOM = 1.3  # of a panel on a page that has room
BOX, LEFT, GAP = 34, 46, 30  # pixels of a map: a cell, the least margin, and between panels
NAME_LETTER, NAME_SPACE = 6, 16  # of the names of strata: the width of a letter, and what is around a name
TITLE_LETTER = 6.5  # the width of a letter of a title
LOW, HIGH = (247, 251, 255), (8, 81, 156)  # the colours of the least and the largest value
WHITE_FROM = 0.55  # above this share of the scale, numbers are white


def difficulty_panels(forecast: Forecast, space: DesignSpace) -> list[str]:
    """SVGs of p and of the learnability of a cell's problems, a panel for each combination of traits.

    A number is the value in percent; cells that were drawn from have a frame. The space has one level at most: with
    more, the forecast is a table.
    """
    strata = space.sort_strata({found.cell.stratum for found in forecast.grid})
    values = sorted({_read_level(found.cell, space) for found in forecast.grid})
    kinds = sorted({_read_traits(found.cell, space) for found in forecast.grid})
    axes = _Axes(strata, values, space)
    traits = [space.knobs[place] for place in space.traits]
    titles = [", ".join(["", *map(space.words.trait, traits, kind)]) for kind in kinds]
    room = TITLE_LETTER * max(map(len, titles), default=0)
    wide = round(axes.left + max(len(values) * BOX + GAP, room + BOX))
    high = len(strata) * BOX + TOP + 6
    panels = []
    for name, field, top in (("P(valid)", "p", 1.0), ("p (1 - p)", "learnability", 0.25)):
        for kind, title in zip(kinds, titles, strict=True):
            cells = [found for found in forecast.grid if _read_traits(found.cell, space) == kind]
            panel = axes.draw_panel(cells, f"{name}{title}", field, top)
            size = f'viewBox="0 0 {wide} {high}" width="{ZOOM * wide:.0f}" font-size="11" text-anchor="middle"'
            look = f'fill="currentColor" {FONT} role="img"'
            panels.append(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}>{panel}</svg>')
    return panels


class _Axes:
    """The strata from top to bottom, and the values of the level from left to right."""

    def __init__(self, strata: Sequence[Stratum], values: Sequence[Value], space: DesignSpace) -> None:
        self.strata, self.values, self._space = strata, values, space
        self._rows = [space.words.label(stratum) for stratum in strata]
        self._columns = _label_values(values, space)
        self._level = space.knobs[space.levels[0]].short if space.levels else ""
        self.left = max(LEFT, NAME_LETTER * max(map(len, [*self._rows, self._level]), default=0) + NAME_SPACE)

    def draw_panel(self, cells: Sequence[CellForecast], title: str, field: str, top: float) -> str:
        """The boxes of one combination of traits. field: a number of `CellForecast`; top: its darkest value."""
        parts = [f'<text x="{self.left}" y="16" text-anchor="start" font-weight="bold">{escape_text(title)}</text>']
        if self._level:
            parts.append(draw_text(self.left - 8, TOP - 6, self._level, "end", 'opacity=".75"'))
        for place, name in enumerate(self._columns):
            parts.append(f'<text x="{self.left + (place + 0.5) * BOX}" y="{TOP - 6}">{name}</text>')
        for place, name in enumerate(self._rows):
            y = TOP + (place + 0.6) * BOX
            parts.append(draw_text(self.left - 8, y, name, "end"))
        for found in cells:
            x = self.left + self.values.index(_read_level(found.cell, self._space)) * BOX
            y = TOP + self.strata.index(found.cell.stratum) * BOX
            parts.append(_draw_box(found, x, y, getattr(found, field), top))
        return "".join(parts)


def _read_level(cell: Cell, space: DesignSpace) -> Value:
    return cell.values[space.levels[0]] if space.levels else 0


def _read_traits(cell: Cell, space: DesignSpace) -> tuple[bool, ...]:
    return tuple(bool(cell.values[place]) for place in space.traits)


def _label_values(values: Sequence[Value], space: DesignSpace) -> list[str]:
    """The values of the level, with one decimal or as many as needed; empty without a level."""
    if not space.levels:
        return [""]
    if space.knobs[space.levels[0]].whole:
        return [f"{value:g}" for value in values]
    short = [f"{value:.1f}" for value in values]
    return short if len(set(short)) == len(values) else ratio_labels(values)


def _draw_box(found: CellForecast, x: float, y: float, value: float, top: float) -> str:
    share = min(1.0, max(0.0, value / top))
    red, green, blue = (round(low + share * (high - low)) for low, high in zip(LOW, HIGH, strict=True))
    frame = ' stroke="currentColor" stroke-width="2"' if found.groups else ""
    ink = "#fff" if share > WHITE_FROM else "#222"
    hint = f"p {found.p:.2f} ± {found.deviation:.2f}, {found.groups} groups"
    return (
        f'<rect x="{x + 1}" y="{y + 1}" width="{BOX - 2}" height="{BOX - 2}" fill="rgb({red},{green},{blue})"{frame}>'
        f"<title>{hint}</title></rect>"
        f'<text x="{x + BOX / 2}" y="{y + BOX / 2 + 4}" fill="{ink}">{100 * value:.0f}</text>'
    )
