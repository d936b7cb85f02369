"""The frontier as a picture: P(valid) and p (1 - p) over size, hole ratio and forced wait, by the difficulty model."""

from typing import Any

from lakewright.core_jax.support import convert
from lakewright.engineer.difficulty import CellForecast, Forecast

BOX, LEFT, TOP, GAP = 34, 46, 46, 30  # pixels: a cell, the margins, and between panels
LOW, HIGH = (247, 251, 255), (8, 81, 156)  # the colours of the least and the largest value
DARK = 0.55  # above this share of the scale, numbers are white


def difficulty_svg(model_json: Any) -> str:
    """An SVG of two rows, p and the learnability of a cell's boards, without a forced wait and with one.

    model_json: the plain data of a stage's difficulty.json. A number is the value in percent; cells that were drawn
    from have a frame. Raises InputError where it is not of that form.
    """
    known = convert(model_json, Forecast, "difficulty.json")
    sizes = sorted({found.cell.size for found in known.grid})
    holes = sorted({found.cell.hole_ratio for found in known.grid})
    strata = sorted({found.cell.forced for found in known.grid})
    wide, high = len(holes) * BOX + LEFT + GAP, len(sizes) * BOX + TOP + GAP
    parts = []
    for row, (name, top) in enumerate((("P(valid)", 1.0), ("p (1 - p)", 0.25))):
        for column, forced in enumerate(strata):
            cells = [found for found in known.grid if found.cell.forced == forced]
            title = f"{name}, {'a forced wait' if forced else 'no forced wait'}"
            panel = _draw_panel(cells, sizes, holes, title, "p" if not row else "learnability", top)
            parts.append(f'<g transform="translate({column * wide},{row * high})">{panel}</g>')
    size = f'width="{wide * len(strata)}" height="{2 * high}" viewBox="0 0 {wide * len(strata)} {2 * high}"'
    style = 'font-family="sans-serif" font-size="11" text-anchor="middle" fill="currentColor"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} role="img">{"".join(parts)}</svg>'


def _draw_panel(
    cells: list[CellForecast], sizes: list[int], holes: list[float], title: str, field: str, top: float
) -> str:
    parts = [f'<text x="{LEFT}" y="16" text-anchor="start" font-weight="bold">{title}</text>']
    for place, hole in enumerate(holes):
        parts.append(f'<text x="{LEFT + (place + 0.5) * BOX}" y="{TOP - 6}">{hole:.1f}</text>')
    for place, size in enumerate(sizes):
        parts.append(f'<text x="{LEFT - 20}" y="{TOP + (place + 0.6) * BOX}">{size}x{size}</text>')
    for found in cells:
        x, y = LEFT + holes.index(found.cell.hole_ratio) * BOX, TOP + sizes.index(found.cell.size) * BOX
        parts.append(_draw_box(found, x, y, getattr(found, field), top))
    return "".join(parts)


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
