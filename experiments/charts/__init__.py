"""The appearance of every chart, and the charts of pages as SVG: lines with intervals, stacked bars, heat maps."""
