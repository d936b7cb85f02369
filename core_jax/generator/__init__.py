"""Certified boards by config, seed and index: drawn fairly, solvable, in the stratum that was asked for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
