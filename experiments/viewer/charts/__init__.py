"""Charts as SVG: lines with intervals, rows of marks, stacked bars, heat maps."""
