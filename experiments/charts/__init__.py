"""How every chart looks, and the charts of pages as SVG: lines with intervals, stacked bars, heat maps."""
