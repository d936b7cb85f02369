"""Sweeps: statistics of millions of boards over a grid of sizes, agents and ratios."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
