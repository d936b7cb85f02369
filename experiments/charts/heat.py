"""A table of shares as SVG, shaded from light to dark, with the number in every field."""

from collections.abc import Sequence

from lakewright.experiments.charts.frame import WIDTH, draw_text, escape_text, wrap_picture

FIELD, LINE, MARGIN, TOP = 58, 30, 64, 46
LIGHT, DARK = (230, 242, 249), (8, 64, 106)


def heat_map(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    said: str = "",
    form: str = "{:.0f}",
    top: float | None = None,
) -> str:
    """A field for each of `rows` and `columns`. said: what the numbers are.

    values: [rows, columns], shaded from 0 to `top`, or to their largest; None is an empty field.
    """
    there = [value for line in values for value in line if value is not None]
    top = top or max(there, default=1) or 1
    parts = [draw_text(MARGIN, 34, said, "start", 'opacity=".75"')]
    parts += [draw_text(MARGIN + FIELD * (n + 0.5), TOP + 10, name, "middle") for n, name in enumerate(columns)]
    for line, (name, cells) in enumerate(zip(rows, values, strict=True)):
        y = TOP + 16 + LINE * line
        parts.append(draw_text(MARGIN - 8, y + LINE / 2 + 3, name, "end"))
        for n, value in enumerate(cells):
            words = f"{name}, {columns[n]}: {form.format(value) if value is not None else 'nothing'}"
            parts.append(_draw_field(MARGIN + FIELD * n, y, value, top, form, words))
    width = MARGIN + FIELD * len(columns) + 8
    return wrap_picture(title, "".join(parts), TOP + 24 + LINE * len(rows), max(width, WIDTH))


def _draw_field(x: float, y: float, value: float | None, top: float, form: str, words: str) -> str:
    box = f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{FIELD - 2}" height="{LINE - 2}" rx="4"'
    if value is None:
        return f'{box} fill="none" stroke="currentColor" opacity=".2"><title>{escape_text(words)}</title></rect>'
    share = min(max(value / top, 0.0), 1.0)
    red, green, blue = (round(low + share * (high - low)) for low, high in zip(LIGHT, DARK, strict=True))
    ink = "#ffffff" if share > 0.5 else "#10202c"
    number = draw_text(x + FIELD / 2, y + LINE / 2 + 4, form.format(value), "middle", f'fill="{ink}"')
    return f'{box} fill="rgb({red},{green},{blue})"><title>{escape_text(words)}</title></rect>{number}'
