"""How every chart looks, and the charts of pages as SVG: lines with intervals, stacked bars, heat maps."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
