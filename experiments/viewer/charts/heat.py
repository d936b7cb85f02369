"""A table of shares as SVG, shaded from light to dark, with the number in every field."""

from collections.abc import Callable, Sequence

from lakewright.experiments.viewer.charts.frame import WIDTH, draw_text, escape_text, wrap_picture

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
        title: Stands above the map.
        rows: Their names.
        columns: Their names.
        values: [rows, columns]; None is an empty field.
        said: What the numbers are.
        form: How a number is written.
        top: What is shaded darkest, by default the largest of `values`; 0 is shaded lightest.
        least: The least width of the picture.
        shade: What of a value is shaded.
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
    """Ratios with two digits after the point, or with as many as tell them apart."""
    for digits in range(2, MOST_DIGITS):
        names = [f"{round(ratio, digits):g}" for ratio in ratios]
        if len(set(names)) == len(set(ratios)):
            return names
    return [f"{ratio:g}" for ratio in ratios]


def _width(labels: Sequence[str]) -> int:
    """The width that the longest label takes, with the space beside it."""
    return LETTER * max(map(len, labels), default=0) + SPACE


def _draw_field(x: float, y: float, wide: float, share: float | None, number: str, words: str) -> str:
    """A field with its number.

    Args:
        x, y: Its upper left corner.
        wide: Its width.
        share: How dark it is, 0 to 1; None leaves it empty.
        number: What is written into it.
        words: Its tooltip.
    """
    box = f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{wide - 2:g}" height="{LINE - 2}" rx="4"'
    if share is None:
        return f'{box} fill="none" stroke="currentColor" opacity=".2"><title>{escape_text(words)}</title></rect>'
    red, green, blue = (round(low + share * (high - low)) for low, high in zip(LIGHT, DARK, strict=True))
    ink = "#ffffff" if share > 0.5 else "#10202c"
    written = draw_text(x + wide / 2, y + LINE / 2 + 4, number, "middle", f'fill="{ink}"')
    return f'{box} fill="rgb({red},{green},{blue})"><title>{escape_text(words)}</title></rect>{written}'
