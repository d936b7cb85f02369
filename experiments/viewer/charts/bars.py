"""Counts of several kinds stacked, a bar for each place, as SVG."""

from collections.abc import Mapping, Sequence

from lakewright.experiments.viewer.charts.frame import (
    HEIGHT,
    draw_axes,
    draw_legend,
    escape_text,
    make_scales,
    pick_colour,
    wrap_picture,
)


def stacked_bars(
    title: str, names: Sequence[str], kinds: Mapping[str, Sequence[float]], *, x_label: str = "", y_label: str = ""
) -> str:
    """Stacked bars as SVG.

    Args:
        title: Stands above the chart.
        names: The names of the bars.
        kinds: For each kind a height in every bar.
        x_label: Stands below the axis.
        y_label: The unit of the heights.
    """
    tops = [sum(heights[n] for heights in kinds.values()) for n in range(len(names))]
    across, up = make_scales((-0.6, len(names) - 0.4), (0, max([*tops, 1.0]) * 1.04))
    half = min(0.32 * (across(1) - across(0)), 26)
    parts, bottom = [draw_axes(across, up, x_label, y_label, dict(enumerate(names)))], [0.0] * len(names)
    for kind, (name, heights) in enumerate(kinds.items()):
        for n, height in enumerate(heights):
            if height:
                low, high, x = up(bottom[n]), up(bottom[n] + height), across(n) - half
                said = escape_text(f"{names[n]}, {name}: {height:.1f}")
                box = f'<rect x="{x:g}" y="{high}" width="{2 * half:g}" height="{max(low - high, 0.5):g}" rx="1.5"'
                parts.append(f'{box} fill="{pick_colour(kind)}"><title>{said}</title></rect>')
                bottom[n] += height
    square = '<path d="M4-5h12v10h-12z" fill="currentColor"/>'
    below, height = draw_legend(list(kinds), [square] * len(kinds))
    return wrap_picture(title, "".join(parts) + below, HEIGHT + height)
