"""Studies: many runs from one warm-up under one budget, and their results."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
