"""The frontier as a picture: P(valid) and p (1 - p) over strata, a level and traits, by the difficulty model."""

from collections.abc import Sequence

from lakewright.engineer.cells import Cell, Stratum, Value
from lakewright.engineer.difficulty import CellForecast, Forecast
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.viewer.charts.frame import escape_text
from lakewright.experiments.viewer.charts.heat import ratio_labels

BOX, LEFT, TOP, GAP = 34, 46, 46, 30  # pixels: a cell, the least margin, the top, and between panels
LETTER, SPACE = 6, 16  # of the names of strata: the width of a letter, and what is around a name
BOLD = 6.5  # the width of a letter of a title
LOW, HIGH = (247, 251, 255), (8, 81, 156)  # the colours of the least and the largest value
DARK = 0.55  # above this share of the scale, numbers are white


def difficulty_svg(forecast: Forecast, space: DesignSpace) -> str:
    """An SVG of two rows, p and the learnability of a cell's problems, with a panel for each combination of traits.

    A number is the value in percent; cells that were drawn from have a frame. The space has one level at most: with
    more, the forecast is a table.
    """
    strata = space.sort_strata({found.cell.stratum for found in forecast.grid})
    values = sorted({_read_level(found.cell, space) for found in forecast.grid})
    kinds = sorted({_read_traits(found.cell, space) for found in forecast.grid})
    axes = _Axes(strata, values, space)
    titles = [", ".join(["", *_name_traits(kind, space)]) for kind in kinds]
    wide = round(max(len(values) * BOX + axes.left + GAP, BOLD * max(map(len, titles), default=0) + BOX + axes.left))
    high = len(strata) * BOX + TOP + GAP
    parts = []
    for row, (name, top) in enumerate((("P(valid)", 1.0), ("p (1 - p)", 0.25))):
        for column, (kind, title) in enumerate(zip(kinds, titles, strict=True)):
            cells = [found for found in forecast.grid if _read_traits(found.cell, space) == kind]
            panel = axes.draw_panel(cells, f"{name}{title}", "p" if not row else "learnability", top)
            parts.append(f'<g transform="translate({column * wide},{row * high})">{panel}</g>')
    size = f'width="{wide * len(kinds)}" height="{2 * high}" viewBox="0 0 {wide * len(kinds)} {2 * high}"'
    style = 'font-family="sans-serif" font-size="11" text-anchor="middle" fill="currentColor"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} role="img">{"".join(parts)}</svg>'


class _Axes:
    """The strata from top to bottom, and the values of the level from left to right."""

    def __init__(self, strata: Sequence[Stratum], values: Sequence[Value], space: DesignSpace) -> None:
        self.strata, self.values, self._space = strata, values, space
        self._rows = [space.words.label(stratum) for stratum in strata]
        self._columns = _label_values(values, space)
        self.left = max(LEFT, LETTER * max(map(len, self._rows), default=0) + SPACE)

    def draw_panel(self, cells: Sequence[CellForecast], title: str, field: str, top: float) -> str:
        """The boxes of one combination of traits. field: for a forecast; top: its darkest value."""
        parts = [f'<text x="{self.left}" y="16" text-anchor="start" font-weight="bold">{escape_text(title)}</text>']
        for place, name in enumerate(self._columns):
            parts.append(f'<text x="{self.left + (place + 0.5) * BOX}" y="{TOP - 6}">{name}</text>')
        for place, name in enumerate(self._rows):
            y = TOP + (place + 0.6) * BOX
            parts.append(f'<text x="{self.left // 2 + 3}" y="{y}">{escape_text(name)}</text>')
        for found in cells:
            x = self.left + self.values.index(_read_level(found.cell, self._space)) * BOX
            y = TOP + self.strata.index(found.cell.stratum) * BOX
            parts.append(_draw_box(found, x, y, getattr(found, field), top))
        return "".join(parts)


def _read_level(cell: Cell, space: DesignSpace) -> Value:
    return cell.values[space.levels[0]] if space.levels else 0


def _read_traits(cell: Cell, space: DesignSpace) -> tuple[bool, ...]:
    return tuple(bool(cell.values[place]) for place in space.traits)


def _name_traits(kind: Sequence[bool], space: DesignSpace) -> list[str]:
    return [space.words.trait(space.knobs[place], has) for place, has in zip(space.traits, kind, strict=True)]


def _label_values(values: Sequence[Value], space: DesignSpace) -> list[str]:
    """The values of the level, with one digit after the point or as many as are needed; empty without a level."""
    if not space.levels:
        return [""]
    if space.knobs[space.levels[0]].whole:
        return [f"{value:g}" for value in values]
    short = [f"{value:.1f}" for value in values]
    return short if len(set(short)) == len(values) else ratio_labels(values)


def _draw_box(found: CellForecast, x: float, y: float, value: float, top: float) -> str:
    share = min(1.0, max(0.0, value / top))
    red, green, blue = (round(low + share * (high - low)) for low, high in zip(LOW, HIGH, strict=True))
    frame = ' stroke="#333" stroke-width="1.5"' if found.groups else ""
    ink = "#fff" if share > DARK else "#222"
    hint = f"p {found.p:.2f} +- {found.deviation:.2f}, {found.groups} groups"
    return (
        f'<rect x="{x + 1}" y="{y + 1}" width="{BOX - 2}" height="{BOX - 2}" fill="rgb({red},{green},{blue})"{frame}>'
        f"<title>{hint}</title></rect>"
        f'<text x="{x + BOX / 2}" y="{y + BOX / 2 + 4}" fill="{ink}">{100 * value:.0f}</text>'
    )
