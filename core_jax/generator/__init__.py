"""Certified boards by config, seed and index: drawn uniformly, solvable, in the requested stratum."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
